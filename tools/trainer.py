#!/usr/bin/env python3
"""PaddleRec's dygraph trainer: regatta train."""
import runner

runner.become("train")
