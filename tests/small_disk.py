"""A disk that is soon full, for a process that can be thrown away.

Only a process without threads may have such a disk, and importing pyarrow starts some: a test that
asks for one imports it nowhere above.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def small_disk(place: Path) -> Callable[[], object]:
    """Mount a disk of 1 MB that only this process sees; gives what fills it to the last block.

    Where mounting is forbidden, a limit on the size of files stands in for it.
    """
    new_user, new_mount = 0x10000000, 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
    root = {"setgroups": "deny", "uid_map": f"0 {os.getuid()} 1", "gid_map": f"0 {os.getgid()} 1"}
    libc = ctypes.CDLL(None)
    if libc.unshare(new_user | new_mount) == 0:
        for name, line in root.items():
            Path("/proc/self", name).write_text(line)
        if libc.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, b"size=1m") == 0:
            return lambda: fill(place / "filler")
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
