"""The bytes of a run's file, read only after its header and its size have been checked.

A safetensors file begins with the length of its header (8 bytes), then the header: JSON with the
range of bytes of each array. So the memory that a file needs is known from its first bytes,
whatever it claims to hold.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import IO

from qrmax.errors import CheckpointError

LENGTH = 8  # bytes
LONGEST_HEADER = 100_000_000  # bytes; safetensors reads no longer ones
COPIES = 3  # of all arrays in memory at once: the file, its arrays, and the agent's own


def read_run_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; a `CheckpointError` if it holds no run, or one too large to load.

    Reads only the header until it is clear that there is memory for the rest.
    """
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise CheckpointError(f"{path}: there is no such file{_NEEDED}") from error
    if not stat.S_ISREG(status.st_mode):
        what = "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file"
        raise CheckpointError(f"{path}: {what}{_NEEDED}")
    try:
        with Path(path).open("rb") as file:
            problem = _wrong_with(file, status.st_size) or _too_large(status.st_size)
            if not problem:
                return file.read()
    except MemoryError:
        problem = f"holds {_shown(status.st_size)}, for which there is not enough memory"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise CheckpointError(f"{path}: {problem}")


_NEEDED = "; needed: the file of a run, as written by run.save(...) and `qrmax run --save`"


def _wrong_with(file: IO[bytes], size: int) -> str:
    """The reason why a header does not fit a file of this size, or nothing; rewinds the file."""
    length = int.from_bytes(file.read(LENGTH), "little")
    if not 2 <= length <= min(size - LENGTH, LONGEST_HEADER):
        return f"is damaged, or was not written by run.save(...) (a header of {length} bytes)"
    try:
        header = json.loads(file.read(length))
        parts = [part["data_offsets"] for name, part in header.items() if name != "__metadata__"]
        end = max((int(end) for _, end in parts), default=0)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return f"is damaged, or was not written by run.save(...) ({error!r})"
    if "qrmax" not in (header.get("__metadata__") or {}):
        return "is a safetensors file, but not a run of qrmax"
    if LENGTH + length + end != size:
        return (
            f"is damaged: its header declares {_shown(end)} of arrays, and there are "
            f"{_shown(size - LENGTH - length)}"
        )
    file.seek(0)
    return ""


def _too_large(size: int) -> str:
    """The reason why there is no memory for a file of this size, or nothing."""
    free = free_memory()
    if free is None or COPIES * size <= free:
        return ""
    return (
        f"holds {_shown(size)}; to load it takes {_shown(COPIES * size)} of memory, and "
        f"{_shown(free)} are free: use a machine with more"
    )


def free_memory() -> int | None:
    """The bytes that this process can still allocate, swap included; None if unknown."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in _parted(lines)}
        found.append(sizes["MemAvailable"] + sizes.get("SwapFree", 0))
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if limit.isdecimal():
            found.append(max(int(limit) - used, 0))
    except (OSError, LookupError, ValueError):  # another system, or no such group
        pass
    return min(found, default=None)


def _parted(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in lines]


def _shown(size: int) -> str:
    """A number of bytes in a readable unit."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} bytes"
