r"""A table as LaTeX: a `tabular` of the paper's shape, for documents that load `booktabs`.

What is not ours stands below our numbers, smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qrmax.report.findings import Findings
from qrmax.report.wording import heads, how_many_are_close, rows

AS_LATEX = str.maketrans(
    {
        **{char: f"\\{char}" for char in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "[": "{[}",  # after a line's end it would begin an option, and so would a star
        "*": "{*}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "±": r"$\pm$",
        "≥": r"$\geq$",
        "∞": r"$\infty$",
        "—": "---",
    }
)


def tabular(findings: Findings) -> str:
    """The whole `tabular`."""
    layout = findings.layout
    names = heads(findings)
    lines = [f"\\begin{{tabular}}{{ll{'l' * layout.has_reference}{'r' * len(names)}}}", r"\toprule"]
    first = [r"\multicolumn{2}{l}{\textbf{Problem}}", *[""] * layout.has_reference]
    lines.append(_line([*first, *(f"\\textbf{{{escaped(name)}}}" for name in names)]))
    lines += [r"\midrule", *_body(findings)]
    if last := how_many_are_close(findings):
        first = [f"\\multicolumn{{2}}{{l}}{{{escaped(last.name)}}}", *[""] * layout.has_reference]
        lines += [r"\midrule", _line([*first, *map(escaped, last.cells)])]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escaped(text: str) -> str:
    r"""A text in LaTeX, without any command.

    >>> print(escaped("v_max 10, 5 % off, >= 2,000"))
    v\_max 10, 5 \% off, $\geq$ 2,000
    """
    if text.startswith("-"):  # a minus, not a hyphen
        return "$-$" + escaped(text[1:])
    return text.replace(">=", "≥").translate(AS_LATEX)


def _body(findings: Findings) -> Iterator[str]:
    layout = findings.layout
    before = None
    for problem in layout.problems:
        group, name = layout.place(problem)
        if before not in (None, group):
            yield r"\addlinespace"
        before = group
        quickest = _quickest(findings, problem)
        for number, row in enumerate(rows(findings, problem)):
            ours = number == 0
            cells = [
                _styled(cell, bold=ours and column == quickest, small=not ours)
                for column, cell in enumerate(row.cells)
            ]
            whose = [_styled(row.name, small=not ours)] * layout.has_reference
            where = [escaped(group), escaped(name)] if ours else ["", ""]
            yield _line([*where, *whose, *cells])


def _quickest(findings: Findings, problem: str) -> int | None:
    """The column of the smallest mean, where it is known to be the smallest.

    A mean is not known where runs hit the budget, but it is at least what it would be if these had
    taken just that.
    """
    summaries = [cell.summary for cell in findings.row(problem)]
    least = [summary.mean_at_least if summary else None for summary in summaries]
    known = [value for value in least if value is not None]
    column = least.index(min(known)) if known else None
    if column is None or findings.row(problem)[column].mean is None:
        return None
    return column


def _styled(text: str, *, bold: bool = False, small: bool = False) -> str:
    shown = escaped(text)
    if bold:
        shown = f"\\textbf{{{shown}}}"
    if small and shown:
        shown = f"{{\\scriptsize {shown}}}"
    return shown


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
