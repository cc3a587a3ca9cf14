"""A disk that is soon full, for a process that can be thrown away.

Only a process without threads may have such a disk, and importing pyarrow starts some: a test that
asks for one imports it nowhere above.
"""

from __future__ import annotations

import ctypes
import os
import resource
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def small_disk(place: Path) -> Callable[[], object]:
    """Mount a disk of 1 MB that only this process sees; gives what fills it to the last block.

    Where no process may mount one, a limit on the size of files stands in, and a warning says so.
    """
    if mounted(place):
        return lambda: fill(place / "filler")
    if MOUNTS:
        raise RuntimeError("a disk can be mounted here, but not by this process: it has threads")
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def mounted(place: Path, size: str = "1m") -> bool:
    new_user, new_mount = 0x10000000, 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
    root = {"setgroups": "deny", "uid_map": f"0 {os.getuid()} 1", "gid_map": f"0 {os.getgid()} 1"}
    libc = ctypes.CDLL(None)
    if libc.unshare(new_user | new_mount) != 0:
        return False
    for name, line in root.items():
        Path("/proc/self", name).write_text(line)
    answer: int = libc.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, f"size={size}".encode())
    return answer == 0


def resize(place: Path, size: str) -> None:
    """Give a disk that this process mounted another size."""
    options, again = f"size={size}".encode(), 32  # MS_REMOUNT
    if ctypes.CDLL(None).mount(b"tmpfs", str(place).encode(), b"tmpfs", again, options) != 0:
        raise RuntimeError(f"{place} cannot be mounted again")


def can_mount() -> bool:
    """Whether a process without threads, as a fresh fork is, may mount a disk here."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if mounted(Path(tempfile.gettempdir())) else 1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


MOUNTS = can_mount()
FULL = "No space left" if MOUNTS else "File too large"
"""What the system says when nothing more fits."""
if not MOUNTS:
    warnings.warn("no disk can be mounted: a limit on the size of files stands in", stacklevel=1)
