"""The progress of a sweep as a line: runs, failures, steps per second, time."""

from __future__ import annotations

import time
from collections.abc import Callable

from qrmax.errors import warn
from qrmax.live_line import LiveLine, Part, duration, is_watched, live_line
from qrmax.planning.compile_notice import compile_notice
from qrmax.studies.interrupt import interruptible
from qrmax.studies.sweep import (
    Advanced,
    Begun,
    Event,
    Failed,
    Finished,
    GivenUp,
    Noted,
    Sweep,
    Warned,
)


def follow_sweep(
    sweep: Sweep,
    progress: bool | None,
    *,
    each_run: bool = False,
    on_event: Callable[[Event], None] | None = None,
) -> bool:
    """Sweep to the end, or until Ctrl-C, and show the line; return whether no run is left."""
    with (
        compile_notice(progress),
        live_line(progress) as line,
        interruptible() as interrupted,
    ):
        shown = SweepLine(sweep, line, each_run=each_run)
        for event in sweep.events():
            shown.see(event)
            if isinstance(event, Warned) and not is_watched(progress):
                warn(event.message)
            if on_event is not None:
                on_event(event)
            if interrupted and not sweep.stopping:
                shown.announce_stop()
                sweep.stop()
        shown.close()
    return not (interrupted and sweep.summary().left)


class SweepLine:
    """The progress line of a sweep; optionally with a line for each run that ends."""

    def __init__(self, sweep: Sweep, line: LiveLine, *, each_run: bool = False) -> None:
        self.sweep = sweep
        self.line = line
        self.each_run = each_run
        self._since: float | None = None  # start of the first run, after compilation
        self._steps = 0  # taken by this sweep
        self._trained: dict[str, int] = {}  # steps of the runs under way

    def see(self, event: Event) -> None:
        """Process an event, and update the line if it is due."""
        match event:
            case Begun(done=done):
                if done:
                    self.line.say(f"{done} of {len(self.sweep.study)} runs are complete already")
                return
            case Noted(message=message) | Warned(message=message):
                self.line.say(f"warning: {message}")
            case Advanced(run=run, trained=trained):
                self._count(run.id, trained)
            case Failed(run=run, error=error):
                self.line.say(f"failed: {run} ({run.id}): {_reason(error)}")
            case GivenUp(problem=problem, label=label, runs=runs, why=why):
                study = self.sweep.study
                found = "hit their budget" if why == "futile" else "agree"
                key = "give_up_after" if why == "futile" else "agree_within"
                self.line.say(
                    f"{label} on {problem}: the first {study.give_up_after} runs {found}; {runs} "
                    f"more are not run ({key} = {getattr(study, key)})"
                )
            case Finished(run=run, outcome=outcome, seconds=seconds):
                self._count(run.id, outcome["trained"])
                self._trained.pop(run.id)
                if self.each_run:
                    met = outcome["reason"] if outcome["reached"] else "at the budget"
                    self.line.say(f"{run}: {outcome['steps']:,} steps, {met}, {seconds:.2f} s")
        if self._since is None:
            self._since = time.monotonic()
        if self.line.is_due():
            self.line.show(self.parts(), self._share)

    def announce_stop(self) -> None:
        """Explain the effect of the first Ctrl-C."""
        self.line.say("stopping: the runs under way are checkpointed (Ctrl-C: at once)")

    def close(self) -> None:
        """End the line."""
        self.line.close(self.parts())

    def parts(self) -> list[Part]:
        """The parts of the line, in order; `rank` is their priority."""
        sweep = self.sweep
        parts = [Part(f"{sweep.done + sweep.failed:,} of {sweep.total:,} runs")]
        if sweep.failed:
            parts.append(Part(f"{sweep.failed:,} failed", 1, "red"))
        working = time.monotonic() - (self._since or self.line.began)
        parts.append(Part(f"{self._steps / max(working, 0.1):,.0f} steps/s", 4))
        parts.append(Part(duration(self.line.elapsed), 3))
        left = sweep.pace.seconds_left(sweep.backend.workers)
        if left is not None and sweep.done + sweep.failed < sweep.total:
            parts.append(Part(f"{duration(left)} left", 2))
        return parts

    @property
    def _share(self) -> float:
        return (self.sweep.done + self.sweep.failed) / self.sweep.total

    def _count(self, run_id: str, trained: int) -> None:
        # a resumed run's first report includes the unknown number of steps of earlier sweeps
        self._steps += trained - self._trained.get(run_id, 0)
        self._trained[run_id] = trained


def _reason(error: str) -> str:
    """The exception of a traceback; the rest of a message of several lines is indented."""
    lines = error.strip().splitlines()
    return next((line for line in reversed(lines) if not line.startswith(" ")), lines[-1])
