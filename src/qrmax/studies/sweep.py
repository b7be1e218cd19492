"""`qrmax.sweep`: execute all runs of a study, each of them once.

A `Sweep` yields events, from which callers show progress or interrupt it. Complete runs in the
folder are skipped, and runs with a checkpoint are resumed. A run that raises is recorded as failed,
and run again by the next sweep; a run whose worker dies is resumed by another, from its last
checkpoint. If a whole cluster dies, the sweep raises a `ClusterError`, and no run counts as failed.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from qrmax.agents.registry import agent_class
from qrmax.errors import (
    ClusterError,
    ParameterError,
    StoreError,
    UnknownNameError,
    check_range,
    shown,
)
from qrmax.studies.backends import Backend, Reply, make_backend
from qrmax.studies.estimate import Pace, kind_of
from qrmax.studies.expand import load_study
from qrmax.studies.futility import Decision, Futility
from qrmax.studies.outside_code import module_folders
from qrmax.studies.problem_specs import Environment
from qrmax.studies.store import Store
from qrmax.studies.study import FILTERS, RunSpec, Study
from qrmax.studies.work import Assignment, Report

RESULTS = "results"
CHECKPOINT_EVERY = 10.0  # seconds
POLL_SECONDS = 0.2  # seconds to wait for a reply before an event `Waited`
MAX_RETRIES = 3  # worker deaths after which a run has failed
MAX_RESTARTS = 2  # damaged checkpoints after which a run is executed in one stretch
NODES = 10  # node deaths after which a run has failed: mostly the run is not the cause


Only = Mapping[str, str | int | Iterable[str | int]]  # patterns for problem, agent and seed


class Begun(NamedTuple):
    """The folder has been scanned."""

    done: int  # runs that are complete already
    todo: int


class Noted(NamedTuple):
    """A message for the user."""

    message: str


class Warned(NamedTuple):
    """A problem of the study is suspicious."""

    message: str


class Finished(NamedTuple):
    """A run is complete."""

    run: RunSpec
    outcome: Mapping[str, Any]
    seconds: float


class Failed(NamedTuple):
    """A run has raised an error."""

    run: RunSpec
    error: str


class GivenUp(NamedTuple):
    """The remaining seeds of a cell are not run, since its first ones are enough."""

    problem: str
    label: str
    runs: int  # that are not run
    why: Decision = "futile"


class Advanced(NamedTuple):
    """A run has been checkpointed."""

    run: RunSpec
    trained: int


class Waited(NamedTuple):
    """No reply has come for `POLL_SECONDS`."""


Event = Begun | Noted | Warned | Finished | Failed | GivenUp | Advanced | Waited


class Summary(NamedTuple):
    """Counts of done, failed and remaining runs."""

    folder: Path
    done: int  # complete, those of earlier sweeps included
    failed: int
    left: int
    given_up: int = 0  # not run, by `give_up_after` of the study


def default_folder(study: Study) -> Path:
    """The default results folder of a study."""
    name = study.name.rpartition("/")[2]
    return Path(RESULTS) / (f"{name}-{study.protocol}" if study.protocol else name)


def sweep(
    study: str | os.PathLike[str] | Study,
    *,
    protocol: str | None = None,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    only: Only | None = None,
    folder: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    checkpoint_every: float = CHECKPOINT_EVERY,
    on_event: Callable[[Event], None] | None = None,
    progress: bool | None = None,
) -> Summary:
    """Execute all runs of a study, in parallel; runs that are complete are skipped.

    Args:
        study: the name of a built-in study, the path of your own TOML file, or a `Study`.
        protocol: the protocol of a study given by name or path, in place of its own.
        workers: the number of worker processes; by default, that of the cores.
        backend: "local" for processes of this machine, or "ray" for Ray.
        address: the address of a Ray cluster; if None, Ray is started here unless it is running.
        only: patterns that select runs by problem, agent and seed, such as
            `{"problem": "office/map1/*", "agent": ["qrmax", "rmax"]}`.
        folder: the results folder, `results/NAME-PROTOCOL` by default; `qrmax.results` reads it.
        fresh: whether the selected runs are deleted first, complete ones included.
        checkpoint_every: seconds between two checkpoints of a run.
        on_event: called with each event of the sweep.
        progress: whether to show a progress line; if None, on a terminal and in a notebook. True
            writes a plain line to stderr every ten seconds if there is neither.

    Results depend on the study alone, not on workers or backend. The first Ctrl-C has unfinished
    runs checkpointed, to be resumed by the next sweep; the second ends the sweep at once.
    """
    from qrmax.studies.sweep_line import follow_sweep  # it listens to the events of this module

    whole = study if isinstance(study, Study) else load_study(study, protocol)
    with open_sweep(
        whole,
        workers=workers,
        backend=backend,
        address=address,
        only=only or {},
        folder=folder,
        fresh=fresh,
        checkpoint_every=checkpoint_every,
    ) as running:
        finished = follow_sweep(running, progress, on_event=on_event)
    if not finished:
        raise KeyboardInterrupt
    return running.summary()


@contextmanager
def open_sweep(
    study: Study,
    *,
    workers: int | None,
    backend: str,
    address: str | None,
    only: Only,
    folder: str | os.PathLike[str] | None,
    fresh: bool,
    checkpoint_every: float,
) -> Iterator[Sweep]:
    """Open the sweep that `sweep` executes, with the same arguments; its folder is locked."""
    check_range("checkpoint_every", checkpoint_every, above=0.0)
    part = select(study, only)
    for agent in {cell.agent for cell in part.cells}:
        agent_class(agent).check_installed()
    store = Store(default_folder(study) if folder is None else folder)
    with closing(make_backend(backend, workers, address)) as workplace, store.lock():
        prepare(store, study)
        yield Sweep(part, store, workplace, fresh=fresh, checkpoint_every=checkpoint_every)


def select(study: Study, only: Only) -> Study:
    """The part of a study that matches these patterns."""
    if not isinstance(only, Mapping):
        raise ParameterError(f"only is {shown(only)}; needed: such as {{'agent': 'qrmax'}}")
    patterns: dict[str, list[str]] = {}
    for key, given in only.items():
        if key not in FILTERS:
            raise UnknownNameError("filter", str(key), FILTERS)
        if isinstance(given, Iterable) and not isinstance(given, str):
            patterns[key] = [*map(str, given)]
        else:
            patterns[key] = [str(given)]
        if given is None or not patterns[key]:
            raise ParameterError(f"only: {key} is {shown(given)}; needed: a pattern or several")
    return study.only(**patterns)


def prepare(store: Store, study: Study) -> None:
    """Write the study into its folder; raise a `StoreError` if that has another study."""
    before = store.study_if_whole() or study
    if (before.name, before.protocol) != (study.name, study.protocol):
        raise StoreError(
            f"{store.folder}: has results of {before.full_name}, not of {study.full_name}; give "
            "another folder with -o"
        )
    store.write_study(study)


def _compile(runs: Iterable[RunSpec]) -> None:
    """Compile the kernels of these runs once, so that workers find them in numba's cache."""
    from qrmax.training.warm_up import needs_compiling, warm_up

    agents = {
        run.cell.agent
        for run in runs
        if run.cell.source is None and not isinstance(run.cell.problem, Environment)
    }
    for agent in sorted(agents):
        if needs_compiling(agent):
            warm_up(agent)


@dataclass(slots=True)
class _UnderWay:
    """A run that is being executed."""

    run: RunSpec
    checkpoint: bytes
    seconds: float = 0.0  # so far
    cpu_seconds: float = 0.0
    deaths: int = 0  # deaths of workers
    nodes: int = 0  # deaths of nodes
    restarts: int = 0  # after checkpoints that could not be resumed

    @property
    def timing(self) -> dict[str, float]:
        """Its times since this sweep began."""
        return {"total": self.seconds, "cpu": self.cpu_seconds}


@dataclass
class Sweep:
    """A running sweep. Its caller holds the folder's lock, and closes the backend."""

    study: Study
    store: Store
    backend: Backend
    fresh: bool = False
    checkpoint_every: float = CHECKPOINT_EVERY
    done: int = 0
    failed: int = 0
    given_up: int = 0
    stopping: bool = False
    pace: Pace = field(default_factory=Pace)
    _under_way: dict[str, _UnderWay] = field(default_factory=dict)
    _odd: set[str] = field(default_factory=set)  # problems that were warned of
    _cautions: list[str] = field(default_factory=list)  # not yet reported

    @cached_property
    def _futility(self) -> Futility:
        return Futility(self.study)

    @property
    def total(self) -> int:
        """The number of runs, without those that have been given up."""
        return len(self.study) - self.given_up

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders of the modules that the study needs from outside the library."""
        return module_folders(self.study.modules)

    def events(self) -> Iterator[Event]:
        """Execute the remaining runs."""
        todo: list[RunSpec] = []
        for run in self.study.runs():
            yield from self._look_at(run, todo)
        yield Begun(self.done, len(todo))
        _compile(todo)
        while True:
            yield from self._give_up(todo)
            while not self.stopping and len(self._under_way) < self.backend.capacity:
                ready = (run for run in todo if self._futility.verdict(run) == "run")
                if (following := next(ready, None)) is None:
                    break
                todo.remove(following)
                self._begin(following)
            if not self._under_way:
                break
            reply = self._wait()
            yield Waited() if reply is None else self._take(*reply)
            yield from map(Warned, self._cautions)
            self._cautions.clear()

    def _give_up(self, todo: list[RunSpec]) -> Iterator[GivenUp]:
        """Take runs off the list whose cells need no more seeds."""
        if self.study.give_up_after is None:
            return
        unneeded = [run for run in todo if self._futility.verdict(run) == "leave out"]
        for run in unneeded:
            todo.remove(run)
            self.given_up += 1
            self.pace.left[kind_of(run)] -= 1
        reasons = {kind_of(run): self._futility.decision(run) or "futile" for run in unneeded}
        for kind, count in Counter(map(kind_of, unneeded)).items():
            yield GivenUp(*kind, count, reasons[kind])

    def stop(self) -> None:
        """Start no more runs, and have the running ones checkpointed."""
        self.stopping = True
        for key in self.backend.stop():
            del self._under_way[key]

    def summary(self) -> Summary:
        """The counts so far."""
        left = self.total - self.done - self.failed
        return Summary(self.store.folder, self.done, self.failed, left, self.given_up)

    def _look_at(self, run: RunSpec, todo: list[RunSpec]) -> Iterator[Event]:
        """Queue a run unless it is complete."""
        if self.fresh:
            self.store.discard(run.id)
        record = self.store.record(run.id)
        if record.state == "done":
            self.done += 1
            self.pace.note(run, record.data["timing"]["total"])
            self._futility.note(run, record.data["outcome"])
            return
        if record.state == "damaged":
            yield Noted(f"{self.store.runs / run.id}: {record.reason}; is run again ({run})")
            self.store.discard(run.id)
        todo.append(run)
        self.pace.expect(run)

    def _begin(self, run: RunSpec) -> None:
        self._under_way[run.id] = _UnderWay(run, self.store.checkpoint(run.id))
        self._submit(run.id)

    def _submit(self, key: str) -> None:
        state = self._under_way[key]
        assignment = Assignment(
            state.run.config(),
            state.checkpoint,
            math.inf if state.restarts >= MAX_RESTARTS else self.checkpoint_every,
            self.folders,
        )
        self.backend.submit(key, assignment)

    def _wait(self) -> Reply | None:
        """Return the next reply; if the cluster is gone, the error says how to resume."""
        try:
            return self.backend.wait(POLL_SECONDS)
        except ClusterError as error:
            without = " without --fresh" if self.fresh else ""
            raise ClusterError(
                f"{error}\n  {self.done:,} of {len(self.study):,} runs are done, and none has "
                f"failed: when the cluster is back, the same command{without} resumes"
            ) from error

    def _take(self, key: str, report: Report) -> Event:
        """Store the report of a run, and resubmit the run if it is unfinished."""
        state = self._under_way[key]
        state.seconds += report.seconds
        state.cpu_seconds += report.cpu_seconds
        if report.kind == "unfinished":
            self.store.write_checkpoint(key, report.blob)
            state.checkpoint = report.blob
            self._go_on(key)
            return Advanced(state.run, report.data["trained"])
        if report.kind == "interrupted":
            self._go_on(key)
            return Noted(
                f"{state.run}: interrupted after {report.data['trained']:,} steps; it restarts "
                "in the next sweep, as an environment cannot be restored"
            )
        if report.kind == "damaged":
            self.store.discard(key)
            state.checkpoint = b""
            state.restarts += 1
            self._go_on(key)
            folder, error = self.store.runs / key, report.data["error"]
            return Noted(f"{folder}: {error}; restarted ({state.run})")
        if report.kind in ("lost", "displaced"):
            state.deaths += report.kind == "lost"
            state.nodes += report.kind == "displaced"
            if state.deaths < MAX_RETRIES and state.nodes < NODES:
                self._go_on(key)
                return Noted(f"{state.run}: {report.data['error']}; resumed by another")
        del self._under_way[key]
        return self._finish(state, report)

    def _go_on(self, key: str) -> None:
        if self.stopping:
            del self._under_way[key]
        else:
            self._submit(key)

    def _caution(self, run: RunSpec, oddity: str) -> None:
        """Queue a warning about what a run has shown, unless there was one about its problem."""
        problem = run.cell.problem.label
        if oddity and problem not in self._odd:
            self._odd.add(problem)
            self._cautions.append(f"{run}: {oddity}")

    def _finish(self, state: _UnderWay, report: Report) -> Event:
        self.pace.left[kind_of(state.run)] -= 1
        self.pace.note(state.run, state.seconds)
        if report.kind != "done":
            self.failed += 1
            error = report.data["error"]
            self.store.write_failure(state.run, error, timing=state.timing)
            return Failed(state.run, error)
        self.done += 1
        outcome = dict(report.data)
        self._futility.note(state.run, outcome)
        timing = {"learning": outcome.pop("learning_seconds"), **state.timing}
        origin = outcome.pop("made_by")
        self._caution(state.run, outcome.pop("oddity"))
        self.store.write_outcome(state.run, outcome, report.blob, timing=timing, origin=origin)
        return Finished(state.run, outcome, state.seconds)
