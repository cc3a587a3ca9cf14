"""The same answers in less time."""
