"""Rows of tables in Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def markdown_head(names: Sequence[str], left: int) -> Iterator[str]:
    """The first two lines of a table in Markdown, whose first `left` columns are text."""
    yield markdown_row(names)
    yield "|" + "---|" * left + "---:|" * (len(names) - left)


def markdown_row(cells: Iterable[str]) -> str:
    r"""A line of a table in Markdown.

    >>> print(markdown_row(["a|b", "1"]))
    | a\|b | 1 |
    """
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def latex_row(cells: Iterable[str]) -> str:
    r"""A row of a `tabular`; its cells are LaTeX already.

    >>> print(latex_row(["a", "1"]))
    a & 1 \\
    """
    return " & ".join(cells) + r" \\"
