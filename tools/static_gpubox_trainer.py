#!/usr/bin/env python3
"""PaddleRec's gpubox trainer: regatta train; the YAML's sync_mode says gpubox."""
import runner

runner.become("train")
