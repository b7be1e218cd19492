"""Compiled code: its decorators, numba's cache, and the time that compilation takes.

    compiled   a kernel that Python calls
    inner      a function that kernels call; calling it from Python crashes
    inlined    a function that is written out wherever a kernel calls it

Compiling takes seconds, many of them for the passage of arrays between Python and machine code:
none is built for functions that only kernels call.

While numba compiles, in the main thread, Ctrl-C is put off until the kernel is done: LLVM calls
back into Python, and an exception there is printed and lost. Garbage collection waits as well, as
it takes a tenth of the time and finds next to nothing.
"""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event, types

from qrmax.planning.compile_notice import notice

_njit: Any = njit  # whose types do not know all options
F = TypeVar("F", bound=Callable[..., Any])

_ALL: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def compiled(function: F) -> F:
    """Compile a kernel when Python first calls it."""
    return cast("F", _njit(**_ALL)(function))


def inner(function: F) -> F:
    """Compile what kernels call, and nothing else: Python must not."""
    return cast("F", _njit(**_ALL, no_cpython_wrapper=True)(function))


def inlined(function: F) -> F:
    """Write a function out wherever a kernel calls it."""
    return cast("F", _njit(**_ALL, inline="always")(function))


def is_compiled(kernel: Any, *, with_last: bool | None = None) -> bool:
    """Whether numba's disk cache holds a kernel as it is now, for this machine.

    `with_last`: in the form with, or without, a last argument that may be left out.
    """
    if not hasattr(kernel, "py_func"):
        return True  # compilation is switched off: there is nothing to wait for
    try:
        # as numba looks for it; the names are its own, and may change
        machine = kernel.targetctx.codegen().magic_tuple()
        forms = [key[0] for key in kernel._cache._cache_file._load_index() if key[1] == machine]
    except (AttributeError, OSError):
        return False
    if with_last is None:
        return bool(forms)
    return any(isinstance(form[-1], types.BaseTuple) is with_last for form in forms)


class _Compilations(event.Listener):
    """Follows numba's compiler lock, which is held to compile and to load from the cache."""

    def __init__(self) -> None:
        self._here = threading.local()  # `depth` of nested locks, `since` when, `seconds` in all
        self._collects = False  # whether garbage is to be collected again
        self._handler: Any = None  # of Ctrl-C, to be given back
        self._presses = 0

    @property
    def seconds(self) -> float:
        """The time that the current thread has spent in the compiler."""
        return float(getattr(self._here, "seconds", 0.0))

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        here = self._here
        here.depth = getattr(here, "depth", 0) + 1
        if here.depth == 1:
            here.since = time.perf_counter()
            if threading.current_thread() is threading.main_thread():
                self._hold_back()

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        here = self._here
        depth = getattr(here, "depth", 0)
        if depth == 0:
            return  # it began before anybody listened
        here.depth = depth - 1
        if here.depth == 0:
            here.seconds = self.seconds + time.perf_counter() - here.since
            if threading.current_thread() is threading.main_thread():
                self._let_go()

    def _hold_back(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()
        self._presses, self._handler = 0, signal.getsignal(signal.SIGINT)
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._note)

    def _let_go(self) -> None:
        if self._collects:
            gc.enable()
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._handler)
            for _ in range(self._presses):
                signal.raise_signal(signal.SIGINT)

    def _note(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._presses += 1


class _Announcements(event.Listener):
    """Announces which kernel is compiled, so that whoever waits for a first call knows why."""

    def on_start(self, event: Any) -> None:
        notice.begin(event.data["dispatcher"])

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        notice.end()


_compilations = _Compilations()
event.register("numba:compiler_lock", _compilations)  # type: ignore[no-untyped-call]
event.register("numba:compile", _Announcements())  # type: ignore[no-untyped-call]


def seconds_compiling() -> float:
    """The time that the current thread has spent on compiling, or on loading what was compiled."""
    return _compilations.seconds
