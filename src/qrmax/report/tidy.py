"""Tables as tidy CSV: one row for each problem and learner, one number in each field."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from qrmax.report.findings import Cell, Final, Findings, Own

Field = str | int | float | None


def text(findings: Findings) -> str:
    """The whole file. Unknown values are empty fields.

    `mean` and `std` are those of the uncensored runs, of which there are `n` minus `censored`. A
    censored median or IQM is `inf`, which CSV readers parse as a number. `resolution` is the steps
    between evaluations, empty if unknown: steps are up to as many too large, and the lower ends of
    confidence intervals account for that. `off_by` is relative to the reference: 0.1 is 10 % more.
    Studies on environments, those with runs of other tools and those that are stopped by their
    budget alone have the final policies as well: means of `gap`, `success` and `episode_return`,
    and the number of runs that have `reached` the rule. If learners have objectives of their own,
    `own_gap` is the mean final gap by that, and `own_reached` and `own_mean` are the number of runs
    that met the rule by it and their mean steps. With `give_up_after`, `not_run` is the number of
    runs that were left out. `information` is what a learner is told of the task.
    """
    rows = list(_rows(findings))
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _rows(findings: Findings) -> Iterator[dict[str, Field]]:
    finals = {(final.problem, final.label): final for final in findings.finals}
    owns = {(own.problem, own.label): own for own in findings.own}
    for problem in findings.layout.problems:
        for label in (*findings.layout.labels, *findings.layout.others):
            cell, final = findings.cells.get((problem, label)), finals.get((problem, label))
            if cell is not None:
                numbers = _numbers(cell)
                if findings.layout.give_up_after is not None:
                    numbers["not_run"] = cell.not_run
            elif final is not None:
                numbers = _numbers_of_others(final)
            else:  # another tool's, on other problems
                continue
            last = _last_policies(final) if finals else {}
            last |= _own_objective(owns.get((problem, label))) if owns else {}
            told = findings.layout.information
            level = {"information": told.get(label)} if told else {}
            yield {"problem": problem, "label": label, **level, **numbers, **last}


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


def _numbers_of_others(final: Final) -> dict[str, Field]:
    """The numbers of another tool's runs, as far as they are known."""
    nothing = _numbers(Cell(steps=None, summary=None, failed=0, missing=0, reference=None))
    return {
        **nothing,
        "n": final.n,
        "censored": final.judged - final.reached if final.judged else None,
        "mean": final.steps.value if final.steps else None,
    }


def _own_objective(own: Own | None) -> dict[str, Field]:
    gap, low, high = own.gap if own else (None, None, None)
    return {
        "own_gap": gap,
        "own_gap_low": low,
        "own_gap_high": high,
        "own_reached": own.reached if own else None,
        "own_mean": own.steps.value if own and own.steps else None,
    }


def _last_policies(final: Final | None) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for name in ("gap", "success", "episode_return"):
        mean = getattr(final, name, None) or (None, None, None)
        found |= dict(zip((name, f"{name}_low", f"{name}_high"), mean, strict=True))
    return {**found, "reached": final.reached if final and final.judged else None}
