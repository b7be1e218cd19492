"""Names for states that a file has none for."""

from __future__ import annotations


def unused(name: str, taken: set[str]) -> str:
    """A name that is free: the one given, or a longer one where it is taken.

    >>> unused("done", {"done", "start"})
    'done_'
    """
    while name in taken:
        name += "_"
    return name
