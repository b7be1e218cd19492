"""Tables as tidy CSV: one row for each problem and learner, one number in each field."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from qrmax.report.findings import Cell, Findings

Field = str | int | float | None


def text(findings: Findings) -> str:
    """The whole file. Unknown values are empty fields.

    `mean` and `std` are those of the uncensored runs, of which there are `n` minus `censored`. A
    censored median or IQM is `inf`, which CSV readers parse as a number. `resolution` is the steps
    between evaluations, empty if unknown: steps are up to as many too large, and the lower ends of
    confidence intervals account for that. `off_by` is relative to the reference: 0.1 is 10 % more.
    """
    rows = list(_rows(findings))
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _rows(findings: Findings) -> Iterator[dict[str, Field]]:
    for problem in findings.layout.problems:
        for label, cell in zip(findings.layout.labels, findings.row(problem), strict=True):
            yield {"problem": problem, "label": label, **_numbers(cell)}


def _numbers(cell: Cell) -> dict[str, Field]:
    known = cell.summary
    nothing = (None, None, None)
    median, median_low, median_high = known.median if known else nothing
    iqm, iqm_low, iqm_high = known.iqm if known else nothing
    mean_low, mean_high = (known and known.mean_interval) or (None, None)
    return {
        "n": cell.n,
        "failed": cell.failed,
        "censored": known.censored if known else 0,
        "budget": known.budget if known else None,
        "resolution": known.resolution if known else None,
        "mean": known.mean if known else None,
        "std": known.std if known else None,
        "mean_low": mean_low,
        "mean_high": mean_high,
        "median": median,
        "median_low": median_low,
        "median_high": median_high,
        "iqm": iqm,
        "iqm_low": iqm_low,
        "iqm_high": iqm_high,
        "reference": cell.reference,
        "off_by": cell.off_by,
    }
