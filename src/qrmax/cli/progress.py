"""A line on stderr that says how far a run is; on a terminal it is rewritten in place."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from qrmax.training.trainer import Event, Session

EVERY = 0.1  # seconds between two looks at a terminal
EVERY_PLAIN = 10.0  # between two lines elsewhere
BAR = 24  # characters


class ProgressLine:
    """Shows the progress of a session, on a terminal as a bar."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.gap: float | None = None
        self.began = self.shown = time.monotonic()
        self.first_step = session.progress.step
        self.on_terminal = sys.stderr.isatty()
        self.width = 0

    def see(self, event: Event) -> None:
        """Take note of an event, and show it if it is time."""
        point = getattr(event, "point", None)
        if point is not None:
            self.gap = point.gap
        now = time.monotonic()
        if now - self.shown >= (EVERY if self.on_terminal else EVERY_PLAIN):
            self.shown = now
            self._show(now)

    def clear(self) -> None:
        """Leave nothing behind on a terminal."""
        if self.on_terminal and self.width:
            click.echo("\r" + " " * self.width + "\r", nl=False, err=True)

    def _show(self, now: float) -> None:
        text = self.text(now)
        if self.on_terminal:
            click.echo("\r" + text.ljust(self.width), nl=False, err=True)
            self.width = len(text)
        else:
            click.echo(text, err=True)

    def text(self, now: float) -> str:
        """The line: a bar, steps, known pairs, the gap, the time left at most."""
        step, most = self.session.progress.step, self.session.training.max_steps
        parts = [f"{step:,} of {most:,} steps"]
        known = self.session.agent.known()
        if known is not None:
            parts.append(f"known {known.pairs:,} of {known.of:,}")
        if self.gap is not None:
            parts.append(f"gap {min(self.gap, 1.0):.1%}")
        taken = step - self.first_step
        if taken > 0:
            left = (now - self.began) / taken * (most - step)
            parts.append(f"at most {_duration(left)} left")
        full = round(BAR * step / most)
        return f"[{'#' * full}{'.' * (BAR - full)}] " + "  ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
