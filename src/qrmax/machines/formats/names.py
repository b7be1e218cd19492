"""Fresh names for states."""

from __future__ import annotations


def unused(name: str, taken: set[str]) -> str:
    """A fresh name: the one given, extended if it is taken.

    >>> unused("done", {"done", "start"})
    'done_'
    """
    while name in taken:
        name += "_"
    return name
