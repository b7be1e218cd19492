"""Text tables of automata."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table with aligned columns.

    >>> for line in aligned(["from", "to"], [["start", "end"]]):
    ...     print(line)
    from   to
    -----  ---
    start  end
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
