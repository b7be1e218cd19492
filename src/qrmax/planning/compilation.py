"""Whether the first call will be quick."""

from __future__ import annotations

from typing import Any


def is_compiled(kernel: Any) -> bool:
    """Whether numba's disk cache holds a kernel in its present form."""
    if not hasattr(kernel, "py_func"):
        return True  # compilation is switched off: there is nothing to wait for
    try:
        # as numba looks for it; the names are its own, and may change
        return bool(kernel._cache._cache_file._load_index())
    except (AttributeError, OSError):
        return False
