"""Numbers as they stand in texts."""

from __future__ import annotations

import re

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"

_NUMBER = re.compile(NUMBER, re.ASCII)


def number_of(text: str) -> float | None:
    """The number that the text is, and None where it is none: float() takes far more."""
    return float(text) if _NUMBER.fullmatch(text) else None
