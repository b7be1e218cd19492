r"""Tables as LaTeX: a `tabular` in the paper's layout, for documents that load `booktabs`.

Confidence intervals and reference values stand below our numbers, smaller. Learners that cannot be
distinguished from the best are bold; if those are all of them, none is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from qrmax.report.findings import Findings
from qrmax.report.table_rows import latex_row as _line
from qrmax.report.wording import (
    Row,
    counted,
    final_heads,
    final_rows,
    heads,
    how_many_are_close,
    interval_text,
    resolution_text,
    rows,
)

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
        "µ": r"$\mu$",
        "≥": r"$\geq$",
        "∞": r"$\infty$",
        "—": "---",
    }
)


def tabular(findings: Findings) -> str:
    """The whole `tabular`; that of the last policies if there are no steps to count."""
    layout = findings.layout
    if not layout.counts_steps:
        return _last_policies(findings)
    names = heads(findings)
    lines = [f"\\begin{{tabular}}{{ll{'l' * layout.has_reference}{'r' * len(names)}}}", r"\toprule"]
    first = [r"\multicolumn{2}{l}{\textbf{Problem}}", *[""] * layout.has_reference]
    lines.append(_line([*first, *(f"\\textbf{{{escaped(name)}}}" for name in names)]))
    lines += [r"\midrule", *_body(findings)]
    if last := how_many_are_close(findings):
        first = [f"\\multicolumn{{2}}{{l}}{{{escaped(last.name)}}}", *[""] * layout.has_reference]
        lines += [r"\midrule", _line([*first, *map(escaped, last.cells)])]
    width = 2 + layout.has_reference + len(names)
    return "\n".join([*lines, r"\bottomrule", _note(findings, width), r"\end{tabular}"]) + "\n"


def _last_policies(findings: Findings) -> str:
    names = final_heads(findings)
    lines = [f"\\begin{{tabular}}{{ll{'r' * (len(names) - 2)}}}", r"\toprule"]
    lines += [_line(f"\\textbf{{{escaped(name)}}}" for name in names), r"\midrule"]
    lines += [_line(map(escaped, row)) for row in final_rows(findings)]
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
        ours, *others = rows(findings, problem)
        best = findings.best(problem)
        whose = [escaped(ours.name)] * layout.has_reference
        cells = [
            _styled(cell, bold=label in best)
            for label, cell in zip_longest(layout.labels, ours.cells)  # no label: the optimum
        ]
        yield _line([escaped(group), escaped(name), *whose, *cells])
        for row in (_intervals(findings, problem), *others):
            whose = [_styled(row.name, small=True)] * layout.has_reference
            yield _line(["", "", *whose, *(_styled(cell, small=True) for cell in row.cells)])


def _intervals(findings: Findings, problem: str) -> Row:
    """The 95 % confidence intervals of our numbers."""
    cells = [interval_text(cell) for cell in findings.row(problem)]
    return Row("95 %", (*cells, *[""] * (len(heads(findings)) - len(cells))))


def _note(findings: Findings, width: int) -> str:
    """The notes below the table, as wide as the text."""
    notes = [_explained(findings), resolution_text(findings), findings.layout.levels]
    shown = " ".join(filter(None, notes))
    return _line(
        [f"\\multicolumn{{{width}}}{{p{{0.95\\linewidth}}}}{{\\footnotesize {escaped(shown)}}}"]
    )


def _explained(findings: Findings) -> str:
    layout, cells = findings.layout, findings.cells.values()
    each = counted(max(cell.expected for cell in cells), "run")
    parts = [
        f"{layout.unit.capitalize()}: mean ± standard deviation of the runs that met the "
        f"stopping rule, {each} each; below it in brackets the 95 % bootstrap interval of the mean."
    ]
    if any(cell.summary and cell.summary.censored for cell in cells):
        parts.append(
            "If runs hit their budget the mean is not known: the median is given in its place."
        )
    if any(findings.best(problem) for problem in layout.problems):
        parts.append("Bold: the smallest mean and those whose interval overlaps with its own.")
    return " ".join(parts)


def _styled(text: str, *, bold: bool = False, small: bool = False) -> str:
    shown = escaped(text)
    if bold:
        shown = f"\\textbf{{{shown}}}"
    if small and shown:
        shown = f"{{\\scriptsize {shown}}}"
    return shown
