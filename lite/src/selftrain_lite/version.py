"""The version of both distributions, selftrain and selftrain-lite: it stands here alone."""

__version__ = "0.1.0"
