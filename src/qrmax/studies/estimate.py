"""Estimates of the time and the memory that a study takes.

A run takes as long as the complete runs of its kind (agent and problem). If there is none, the
estimate is the time of its whole budget, at a rate that is measured on this machine, briefly.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections import Counter, defaultdict
from typing import NamedTuple

from qrmax.errors import QRMaxWarning
from qrmax.studies.futility import Futility
from qrmax.studies.store import Store
from qrmax.studies.study import LIMITS, Cell, RunSpec, Study
from qrmax.studies.work import curve_as_parquet
from qrmax.training.run import make_session
from qrmax.training.stopping import as_rule

PROBE = 0.25  # seconds

Kind = tuple[str, str]  # labels of a problem and an agent


class Pace:
    """Mean durations of runs, by kind."""

    def __init__(self) -> None:
        self.left: Counter[Kind] = Counter()
        self._seen: dict[Kind, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def expect(self, run: RunSpec) -> None:
        """Add a run that remains to be done."""
        self.left[kind_of(run)] += 1

    def note(self, run: RunSpec, seconds: float) -> None:
        """Record the duration of a complete run."""
        count, total = self._seen[kind_of(run)]
        self._seen[kind_of(run)] = count + 1, total + seconds

    def mean(self, kind: Kind) -> float | None:
        """The mean duration of runs of this kind; of any kind if none of this one has ended."""
        seen = [self._seen[kind]] if kind in self._seen else [*self._seen.values()]
        count, total = (sum(part) for part in zip(*seen, strict=True)) if seen else (0, 0.0)
        return total / count if count else None

    def knows(self, kind: Kind) -> bool:
        """Whether a run of this kind is complete."""
        return kind in self._seen

    def seconds_left(self, workers: int) -> float | None:
        """The time that all remaining runs take; None if no run has ended yet."""
        if not self._seen:
            return None
        return sum((self.mean(kind) or 0.0) * n for kind, n in self.left.items()) / workers


def kind_of(run: RunSpec) -> Kind:
    """The key of runs that differ only in their seed."""
    return run.cell.problem.label, run.cell.label


class Estimate(NamedTuple):
    """Estimated time and memory of the rest of a study."""

    seconds: float
    at_most: bool  # an upper bound, as some kinds of runs have no complete run yet
    worker_bytes: int  # memory of one worker process
    table_bytes: int  # the part of it that the largest agent's tables take
    largest: Cell  # the cell with the largest tables


def estimate(study: Study, store: Store, workers: int) -> Estimate:
    """Estimate the time and the memory of the rest of a study on this machine."""
    pace, futility = Pace(), Futility(study)
    for run in study.runs():
        record = store.record(run.id)
        if record.state == "done":
            pace.note(run, record.data["timing"]["total"])
            futility.note(run, record.data["outcome"])
        elif futility.verdict(run) != "leave out":
            pace.expect(run)
    rates: dict[str, float] = {}  # steps per second by agent's label, on its largest problem
    seconds, at_most = 0.0, False
    largest_first = sorted(study.cells, key=_table_bytes, reverse=True)
    for cell in largest_first:
        kind = cell.problem.label, cell.label
        if not pace.left[kind]:
            continue
        if pace.knows(kind):
            seconds += pace.left[kind] * (pace.mean(kind) or 0.0)
            continue
        at_most = True
        if cell.label not in rates:
            rates[cell.label] = _steps_per_second(study, cell)
        seconds += pace.left[kind] * study.max_steps / rates[cell.label]
    return Estimate(
        seconds / workers,
        at_most,
        worker_bytes=_peak_bytes(),
        table_bytes=_table_bytes(largest_first[0]),
        largest=largest_first[0],
    )


def _steps_per_second(study: Study, cell: Cell) -> float:
    """Measure the steps per second of the beginning of a run, evaluations included."""
    training = study.training_of(cell)
    plain = {key: training.pop(key) for key in LIMITS if key in training}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)
        session = make_session(
            cell.agent, cell.problem.make(), stop=as_rule(**training), **plain, **cell.settings
        )
    events = session.events()
    next(events)  # may compile
    first, began = session.progress.step, time.perf_counter()
    for _ in events:
        if time.perf_counter() - began > PROBE:
            break
    rate = max(session.progress.step - first, 1) / (time.perf_counter() - began)
    session.evaluator.close()
    session.domain.close()
    return rate


def _table_bytes(cell: Cell) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)
        session = make_session(cell.agent, cell.problem.make(), **cell.settings)
    return session.agent.nbytes


def _peak_bytes() -> int:
    """Peak memory of this process, which has loaded all that a worker loads."""
    curve_as_parquet([])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
