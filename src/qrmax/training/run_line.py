"""The progress line of a run: steps, gap, success rate, known share, time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qrmax.live_line import LiveLine, Part, duration, live_line
from qrmax.planning.compile_notice import compile_notice
from qrmax.training.trainer import Event, Session, Stopped


@contextmanager
def follow_run(session: Session, progress: bool | None) -> Iterator[Callable[[Event], None]]:
    """A callback for the events of a session, which shows the progress line; see `live_line`."""
    with compile_notice(progress), live_line(progress) as line:
        yield ProgressLine(session, line).see


class ProgressLine:
    """The progress of a session, and the last evaluation of its policy."""

    def __init__(self, session: Session, line: LiveLine) -> None:
        self.session = session
        self.line = line
        self._since: tuple[float, float] | None = None  # time and share at the first event
        self._gap: float | None = None
        self._success: float | None = None
        for point in session.curve[-1:]:  # if the run is resumed
            self._gap, self._success = point.gap, point.success

    def see(self, event: Event) -> None:
        """Record an event, and update the line if it is due."""
        point = getattr(event, "point", None)
        if point is not None:
            self._gap, self._success = point.gap, point.success
        if self._since is None:  # compilation has finished by now
            self._since = time.monotonic(), self.session.share
        if isinstance(event, Stopped):
            self.line.close(self.parts())
        elif self.line.is_due():
            self.line.show(self.parts(), self.session.share if self._takes_all else None)

    def parts(self) -> list[Part]:
        """The parts of the line, in order; `rank` is their importance."""
        session = self.session
        step, training = session.progress.step, session.training
        known, success = session.agent.known(), self._success_text()
        of = f" of {training.max_steps:,}" if self._takes_all else ""
        parts = [Part(f"{step:,}{of} steps")]
        if training.max_episodes is not None:
            begun = f"{session.player.episodes:,} of {training.max_episodes:,}"
            parts.append(Part(f"{begun} episodes", 6))
        if self._gap is not None:
            parts.append(Part(f"gap {_percent(self._gap)}", 1))
        if success:
            parts.append(Part(success, 2))
        if known is not None and known.of:
            parts.append(Part(f"known {_percent(known.pairs / known.of)}", 3))
        parts.append(Part(duration(self.line.elapsed), 4))
        if left := self._left():
            parts.append(Part(left, 5))
        return parts

    @property
    def _takes_all(self) -> bool:
        """Whether no stopping rule can end the run before its budget does."""
        return self.session.training.stop.takes_budget

    def _success_text(self) -> str:
        """The success rate of the policy, or of recent training episodes."""
        if self._success is None or not self.session.domain.machine.success:
            return ""
        return f"{self.session.evaluator.success_word} {_percent(self._success)}"

    def _left(self) -> str:
        """The time left at the rate so far; an upper bound if a stopping rule may end it sooner."""
        share = self.session.share
        since, first = self._since or (0.0, share)
        if not first < share < 1.0:
            return ""
        left = (time.monotonic() - since) / (share - first) * (1.0 - share)
        return f"{'' if self._takes_all else 'at most '}{duration(left)} left"


def _percent(share: float) -> str:
    return f"{100.0 * min(share, 1.0):.1f} %"
