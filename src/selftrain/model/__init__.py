"""Encoder + tuning + reader = Classifier."""
