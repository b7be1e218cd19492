"""Numeric literals in text formats."""

from __future__ import annotations

import re

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"

_NUMBER = re.compile(NUMBER, re.ASCII)


def number_of(text: str) -> float | None:
    """The value of a numeric literal, or None; stricter than float()."""
    return float(text) if _NUMBER.fullmatch(text) else None
