"""Tables of any measure: texts for people, and a record of numbers for each cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from qrmax.report.latex import escaped
from qrmax.report.table_rows import latex_row, markdown_head, markdown_row

Field = str | int | float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainTable:
    r"""A table that can be written in several formats.

    >>> table = PlainTable(
    ...     title="Steps",
    ...     notes=("Means over 3 runs.",),
    ...     head=("problem", "qrmax"),
    ...     rows=(("map1 exp1", ">= 450"),),
    ...     records=({"problem": "office/map1/exp1", "label": "qrmax", "at_least": 450.0},),
    ... )
    >>> print(table.markdown())
    # Steps
    <BLANKLINE>
    Means over 3 runs.
    <BLANKLINE>
    | problem | qrmax |
    |---|---:|
    | map1 exp1 | >= 450 |
    <BLANKLINE>
    >>> print(table.csv())
    problem,label,at_least
    office/map1/exp1,qrmax,450.0
    <BLANKLINE>
    """

    title: str
    notes: tuple[str, ...]  # paragraphs: what the numbers are
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    records: tuple[Mapping[str, Field], ...]  # for CSV; all with the same keys
    left: int = 1  # columns of text, before those of numbers

    def markdown(self) -> str:
        """A page to read: what the numbers are, and the table."""
        lines = [*markdown_head(self.head, self.left), *map(markdown_row, self.rows)]
        paragraphs = [f"# {self.title}", *filter(None, self.notes), "\n".join(lines)]
        return "\n\n".join(paragraphs) + "\n"

    def latex(self) -> str:
        r"""A `tabular` for a document with `\usepackage{booktabs}`."""
        width = len(self.head)
        columns = "l" * self.left + "r" * (width - self.left)
        note = escaped(" ".join(filter(None, self.notes)).replace("`", ""))
        lines = [
            f"\\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            latex_row(f"\\textbf{{{escaped(name)}}}" if name else "" for name in self.head),
            r"\midrule",
            *(latex_row(map(escaped, row)) for row in self.rows),
            r"\bottomrule",
            latex_row(
                [f"\\multicolumn{{{width}}}{{p{{0.95\\linewidth}}}}{{\\footnotesize {note}}}"]
            ),
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """One record for each cell; unknown values are empty fields."""
        file = io.StringIO()
        writer = csv.DictWriter(file, self.records[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return file.getvalue()
