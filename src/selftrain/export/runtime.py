"""onnxruntime without its telemetry.

From 1.29 on its packages report each session to their makers, and keep a name for the machine in
the user's cache. selftrain-lite has the same few lines: it imports nothing of selftrain.
"""

from __future__ import annotations

import os
from typing import Any


def quiet_onnxruntime() -> Any:
    """The module onnxruntime, told not to report its use."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # counts only before its first import
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for a program that had imported it already
    return onnxruntime
