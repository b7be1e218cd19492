"""A notice when numba compiles one of our kernels: the first call takes longer than the others.

numba says when it compiles, and says nothing when it finds a kernel in its cache, so the notice
tells the truth whatever it was that was called.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from qrmax.live_line import is_watched, say

NOTICE = "compiling (once, under a minute) ..."  # numba's cache keeps it
PAUSE = 5.0  # seconds: kernels that follow upon one another are told of once

_progress: list[bool | None] = []  # what was asked for; the outermost call decides


@contextlib.contextmanager
def compile_notice(progress: bool | None) -> Iterator[None]:
    """Announce compilation, if watched; see `qrmax.live_line` for `progress`."""
    _progress.append(progress)
    try:
        yield
    finally:
        _progress.pop()


class Notice:
    """Announces compilation, once for a series of kernels."""

    def __init__(self) -> None:
        self.depth = 0  # a kernel that calls another one has that compiled first
        self.ended = -PAUSE  # when the last compilation was over

    def begin(self, kernel: Any) -> None:
        """A kernel is about to be compiled."""
        ours = getattr(getattr(kernel, "py_func", None), "__module__", "").startswith("qrmax.")
        rested = self.depth == 0 and time.monotonic() - self.ended >= PAUSE
        self.depth += 1
        if ours and rested and is_watched(_progress[0] if _progress else None):
            say(NOTICE)

    def end(self) -> None:
        """It is done."""
        self.depth -= 1
        self.ended = time.monotonic()


notice = Notice()
"""Told by `compilation.py` of what numba does."""
