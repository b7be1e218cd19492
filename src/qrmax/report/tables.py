"""Tables of steps, problems by learners, beside the reference values of a paper.

    results, layout ──gather──> Findings ──> Markdown, LaTeX, CSV

`results` has one row for each run, with the columns of `findings.Run`; other columns are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qrmax.report import latex, markdown, tidy
from qrmax.report.findings import Findings, gather
from qrmax.report.layout import Layout

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Layout", "Table", "make_table"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be written in several formats."""

    findings: Findings

    def markdown(self) -> str:
        """A page to read: the table, its provenance, dispersion, probability of improvement."""
        return markdown.page(self.findings)

    def latex(self) -> str:
        r"""A `tabular` for a document with `\usepackage{booktabs}`.

        The smallest mean of a problem is bold, and all whose 95 % confidence interval overlaps with
        its own; if those are all of them, none is.
        """
        return latex.tabular(self.findings)

    def csv(self) -> str:
        """One row for each problem and learner; `inf` for quantiles that are right-censored.

        `mean` and `std` are those of the other runs.
        """
        return tidy.text(self.findings)


def make_table(results: pl.DataFrame, layout: Layout) -> Table:
    r"""The table of these results, one row for each run, in this layout.

    >>> import polars as pl
    >>> runs = {"seed": [0, 1, 2], "steps": [400, 500, 1000], "reached": [True, True, False]}
    >>> same = {"problem": "office/map1/exp1", "label": "qrmax", "status": "done"}
    >>> same |= {"max_steps": 1000, "version": "0.1.0", "commit": None}
    >>> results = pl.DataFrame(runs).with_columns(**{k: pl.lit(v) for k, v in same.items()})
    >>> layout = Layout(title="Steps", problems=("office/map1/exp1",), labels=("qrmax",))
    >>> print(make_table(results, layout).latex())  # doctest: +ELLIPSIS
    \begin{tabular}{llr}
    \toprule
    \multicolumn{2}{l}{\textbf{Problem}} & \textbf{qrmax} \\
    \midrule
    map1 & exp1 & 450 $\pm$ 71, and 1 of 3 $\geq$ 1,000 \\
     &  & {\scriptsize median 500 {[}400 to $\infty$]} \\
    \bottomrule
    \multicolumn{3}{p{0.95\linewidth}}{\footnotesize Steps: mean ...} \\
    \end{tabular}
    <BLANKLINE>
    """
    return Table(gather(results, layout))
