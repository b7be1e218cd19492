"""Sizes of tests, with the compiler and without it."""

from __future__ import annotations

import os

PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"
"""Whether kernels are plain Python, which is a hundred times as slow, and checks every index."""


def amount(compiled: int, *, plain: int) -> int:
    """So many examples, steps or seeds with the compiler, and so many without."""
    return plain if PLAIN else compiled
