#!/usr/bin/env python3
"""PaddleRec's parameter-server trainer: regatta train, in the role that fleetrun's environment gives."""
import runner

runner.become("train")
