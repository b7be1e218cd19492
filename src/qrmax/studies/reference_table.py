"""Published reference values, from a CSV file: a column `problem`, and one for each agent."""

from __future__ import annotations

import csv
from pathlib import Path

from qrmax.errors import StudyError, shown
from qrmax.source import Source

Reference = dict[str, dict[str, float]]
"""By problem, and by agent's label."""


def read_reference(path: Path) -> Reference:
    """Read the file; an empty field means that there is no reference value."""
    rows = csv.DictReader(Source.read(path).text.splitlines())
    if "problem" not in (rows.fieldnames or ()):
        raise StudyError(f"{path}: has no column 'problem'; needed: that, and one for each agent")
    found: Reference = {}
    for row in rows:
        numbers = found.setdefault(row.pop("problem"), {})
        for column, value in row.items():
            try:
                numbers |= {column: float(value)} if value else {}
            except (TypeError, ValueError):
                raise StudyError(
                    f"{path}, line {rows.line_num}, column {column!r}: {shown(value)}: not a number"
                ) from None
    return found
