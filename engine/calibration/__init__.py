"""Measure this machine with a loaded model: probes, fit, placement, prediction, check."""
