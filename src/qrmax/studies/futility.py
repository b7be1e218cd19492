"""Cells whose first seeds are enough: later seeds that would tell nothing more are not run.

With `give_up_after = 3`, the first three seeds of an agent on a problem decide. Its other seeds are
not run

    futile    if none of these runs meets the stopping rule
    agreed    with `agree_within = 0.2` as well: if all of them meet it, the slowest after at most
              1.2 times the steps of the quickest

and begin only once that is known, so that the runs of a study do not depend on the number of
workers, nor on interruptions. A run that failed decides nothing: the others wait until a further
sweep has run it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Literal

from qrmax.studies.study import RunSpec, Study

Decision = Literal["futile", "agreed"]
Verdict = Literal["run", "wait", "leave out"]


def decide(steps: Collection[int | None], agree_within: float | None) -> Decision | None:
    """Decide on a cell by the steps of its first seeds; None for those that hit their budget.

    >>> decide([None, None], None), decide([100, None], 0.2), decide([100, 120], 0.2)
    ('futile', None, 'agreed')
    """
    reached = [each for each in steps if each is not None]
    if not reached:
        return "futile"
    agree = agree_within is not None and max(reached) <= (1.0 + agree_within) * min(reached)
    return "agreed" if agree and len(reached) == len(steps) else None


class Futility:
    """The cells of a study whose first seeds are enough."""

    def __init__(self, study: Study) -> None:
        count = study.give_up_after
        self._first = frozenset(study.seeds if count is None else study.seeds[:count])
        self._agree_within = study.agree_within
        self._steps: dict[tuple[str, str], dict[int, int | None]] = defaultdict(dict)

    def note(self, run: RunSpec, outcome: Mapping[str, Any]) -> None:
        """Record the outcome of a complete run."""
        if run.seed in self._first:
            steps = outcome["steps"] if outcome.get("reached") else None
            self._steps[_cell(run)][run.seed] = steps

    def decision(self, run: RunSpec) -> Decision | None:
        """The reason why the later seeds of a cell are not run, once it is known."""
        found = self._steps[_cell(run)]
        if len(found) < len(self._first) or run.training["stop"] == "budget":  # which no run meets
            return None
        return decide(found.values(), self._agree_within)

    def verdict(self, run: RunSpec) -> Verdict:
        """Decide on a run, as far as the first seeds of its cell are known."""
        found = self._steps[_cell(run)]
        if run.seed in self._first or run.training["stop"] == "budget":
            return "run"
        if len(found) == len(self._first):
            return "leave out" if self.decision(run) else "run"
        reached = [steps is not None for steps in found.values()]
        may_agree = self._agree_within is not None and all(reached)
        return "wait" if may_agree or not any(reached) else "run"


def _cell(run: RunSpec) -> tuple[str, str]:
    return run.cell.problem.label, run.cell.label
