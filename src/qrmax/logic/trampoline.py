"""Recursion without Python's call stack, for deeply nested input."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")

Steps = Generator["Steps[Any]", Any, Result]
"""A recursive function as a generator: `x = yield f(...)` is what `x = f(...)` would be."""


def trampoline(steps: Steps[Result]) -> Result:
    """Run a recursive function written as a generator, and return its result.

    >>> def depth(n: int) -> Steps[int]:
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> trampoline(depth(100_000))
    100000
    """
    waiting, result = [steps], None
    while waiting:
        try:
            waiting.append(waiting[-1].send(result))
            result = None
        except StopIteration as done:
            waiting.pop()
            result = done.value
    return result  # type: ignore[return-value]  # of the outermost call
