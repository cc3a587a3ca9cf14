"""Answers of a model that selftrain exported, with onnxruntime, tokenizers and numpy alone.

from selftrain_lite import load

model = load("model")
model.predict(["a moving and funny film"])
"""

from __future__ import annotations

from selftrain_lite.errors import LiteError
from selftrain_lite.model import Model, load
from selftrain_lite.version import __version__

__all__ = ["LiteError", "Model", "__version__", "load"]
