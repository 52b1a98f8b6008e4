#!/usr/bin/env python3
"""PaddleRec's static trainer: regatta train."""
import runner

runner.become("train")
