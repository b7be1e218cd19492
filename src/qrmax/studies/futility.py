"""Futility: later seeds of a cell are not run once its first ones have all hit their budget.

With `give_up_after = 3`, the first three seeds of an agent on a problem decide: if none of these
runs meets the stopping rule, the others are not run. They begin only once that is known, so that
the runs of a study do not depend on the number of workers, nor on interruptions. A run that failed
decides nothing: the others wait until a further sweep has run it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

from qrmax.studies.study import RunSpec, Study

Verdict = Literal["run", "wait", "give up"]


class Futility:
    """The cells of a study whose first seeds have all hit their budget."""

    def __init__(self, study: Study) -> None:
        count = study.give_up_after
        self._first = frozenset(study.seeds if count is None else study.seeds[:count])
        self._reached: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)

    def note(self, run: RunSpec, outcome: Mapping[str, Any]) -> None:
        """Record the outcome of a complete run."""
        if run.seed in self._first:
            self._reached[_cell(run)][run.seed] = bool(outcome.get("reached"))

    def verdict(self, run: RunSpec) -> Verdict:
        """Decide on a run, as far as the first seeds of its cell are known."""
        found = self._reached[_cell(run)]
        no_rule = run.training["stop"] == "budget"  # which no run meets
        if no_rule or run.seed in self._first or any(found.values()):
            return "run"
        return "give up" if len(found) == len(self._first) else "wait"


def _cell(run: RunSpec) -> tuple[str, str]:
    return run.cell.problem.label, run.cell.label
