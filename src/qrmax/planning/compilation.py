"""Whether the first call will be quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def is_compiled(kernel: Any) -> bool:
    """Whether numba's disk cache holds a kernel in its present form."""
    if not hasattr(kernel, "py_func"):
        return True  # compilation is switched off: there is nothing to wait for
    cache = getattr(kernel, "_cache", None)  # numba names it so; without it, say no
    folder = Path(getattr(cache, "cache_path", "."))
    source = Path(kernel.py_func.__code__.co_filename)
    pattern = f"{source.stem}.{kernel.py_func.__name__}-*.nbi"
    written = [index.stat().st_mtime for index in folder.glob(pattern)]
    return max(written, default=0.0) > source.stat().st_mtime
