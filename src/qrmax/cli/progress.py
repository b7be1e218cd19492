"""A line on stderr that says how far work has come; on a terminal it is rewritten in place."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import percent

if TYPE_CHECKING:
    from qrmax.studies.sweep import Event as SweepEvent
    from qrmax.studies.sweep import Sweep
    from qrmax.training.trainer import Event, Session

EVERY = 0.1  # seconds between two looks at a terminal
EVERY_PLAIN = 10.0  # between two lines elsewhere
BAR = 24  # characters


class Line:
    """A line that is shown now and then."""

    def __init__(self) -> None:
        self.began = self.shown = time.monotonic()
        self.on_terminal = sys.stderr.isatty()
        self.width = 0

    def is_due(self) -> bool:
        """Whether it is time to show it again."""
        return time.monotonic() - self.shown >= (EVERY if self.on_terminal else EVERY_PLAIN)

    def show(self, text: str) -> None:
        """Show it."""
        self.shown = time.monotonic()
        if self.on_terminal:
            click.echo("\r" + text.ljust(self.width), nl=False, err=True)
            self.width = len(text)
        else:
            click.echo(text, err=True)

    def say(self, text: str) -> None:
        """Say something that stays; on a terminal the line comes back below it at once."""
        self.clear()
        click.echo(text, err=True)
        if self.on_terminal:
            self.shown = 0.0

    def clear(self) -> None:
        """Leave nothing behind on a terminal."""
        if self.on_terminal and self.width:
            click.echo("\r" + " " * self.width + "\r", nl=False, err=True)
            self.width = 0


class ProgressLine:
    """Shows the progress of a session, on a terminal as a bar."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.gap: float | None = None
        self.line = Line()
        self.first = session.share

    def see(self, event: Event) -> None:
        """Take note of an event, and show it if it is time."""
        point = getattr(event, "point", None)
        if point is not None:
            self.gap = point.gap
        if self.line.is_due():
            self.line.show(self.text())

    def clear(self) -> None:
        """Leave nothing behind on a terminal."""
        self.line.clear()

    def text(self) -> str:
        """The line: a bar, steps, known pairs, the gap, the time left at most."""
        step, most = self.session.progress.step, self.session.training.max_steps
        parts = [f"{step:,} of {most:,} steps"]
        if self.session.training.max_episodes is not None:
            begun, episodes = self.session.player.episodes, self.session.training.max_episodes
            parts.append(f"{begun:,} of {episodes:,} episodes")
        known = self.session.agent.known()
        if known is not None:
            parts.append(f"known {known.pairs:,} of {known.of:,}")
        if self.gap is not None:
            parts.append(f"gap {percent(min(self.gap, 1.0), digits=1)}")
        share = self.session.share
        if share > self.first:
            left = (time.monotonic() - self.line.began) / (share - self.first) * (1.0 - share)
            parts.append(f"at most {duration(left)} left")
        return f"{_bar(share)} " + "  ".join(parts)


class SweepLine:
    """Shows the progress of a sweep; a line for each run that ends, if so wished."""

    def __init__(self, sweep: Sweep, *, each_run: bool) -> None:
        self.sweep = sweep
        self.each_run = each_run
        self.line = Line()
        self.steps = 0  # taken by this sweep
        self.trained: dict[str, int] = {}  # steps of the runs under way

    def see(self, event: SweepEvent) -> None:
        """Take note of an event, and show it if it is time."""
        from qrmax.studies.sweep import Advanced, Begun, Failed, Finished, Noted

        match event:
            case Begun(done=done) if done:
                self.line.say(f"{done} of {len(self.sweep.study)} runs are complete already")
            case Noted(message=message):
                self.line.say(f"warning: {message}")
            case Advanced(run=run, trained=trained):
                self._count(run.id, trained)
            case Failed(run=run, error=error):
                self.line.say(f"failed: {run} ({run.id}): {error.strip().splitlines()[-1]}")
            case Finished(run=run, outcome=outcome, seconds=seconds):
                self._count(run.id, outcome["trained"])
                self.trained.pop(run.id)
                if self.each_run:
                    met = outcome["reason"] if outcome["reached"] else "at the budget"
                    self.line.say(f"{run}: {outcome['steps']:,} steps, {met}, {seconds:.2f} s")
        if self.line.is_due():
            self.line.show(self.text())

    def clear(self) -> None:
        """Leave nothing behind on a terminal."""
        self.line.clear()

    def text(self) -> str:
        """The line: a bar, runs, failures, steps per second, the time left."""
        sweep = self.sweep
        total, ended = len(sweep.study), sweep.done + sweep.failed
        parts = [f"{ended:,} of {total:,} runs"]
        if sweep.failed:
            parts.append(f"{sweep.failed:,} failed")
        elapsed = time.monotonic() - self.line.began
        parts.append(f"{self.steps / elapsed:,.0f} steps/s")
        left = sweep.pace.seconds_left(sweep.backend.workers)
        if left is not None:
            parts.append(f"{duration(left)} left")
        return f"{_bar(ended / total)} " + "  ".join(parts)

    def announce_stop(self) -> None:
        """Say what a first Ctrl-C does."""
        self.line.say("stopping: the runs under way are checkpointed (Ctrl-C: at once)")

    def _count(self, run_id: str, trained: int) -> None:
        # what an earlier sweep has trained is not known of a run's first stretch, and is counted in
        self.steps += trained - self.trained.get(run_id, 0)
        self.trained[run_id] = trained


def duration(seconds: float) -> str:
    """A time as people read it.

    >>> duration(75), duration(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _bar(share: float) -> str:
    full = round(BAR * share)
    return f"[{'#' * full}{'.' * (BAR - full)}]"
