"""Measure this machine with a loaded model: probes, fit, placement, prediction, check.

Imports torch: import it where a model is loaded. What it results in (`Probe`, `Profile`) is torch-free and
lives in `engine.profile`.
"""

from __future__ import annotations

from engine.calibration.run import calibrate

__all__ = ["calibrate"]
