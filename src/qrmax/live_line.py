"""A line of progress that is rewritten in place, for whoever looks.

On a terminal it stands on stderr and is never wider than the window: parts that do not fit are left
out, the least important first. In a notebook it is one output that is updated. Elsewhere (a file, a
pipe, a terminal that cannot move its cursor) it is a plain line every ten seconds, and only where
that was asked for. The terminal itself is rich's business.

`progress` says who wants it: None shows it on a terminal and in a notebook, True elsewhere, too,
and False never.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from qrmax.errors import ParameterError, shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

GAP = "  "  # between two parts
WIDE, NARROW = 24, 12  # characters of a bar
ROOM_FOR_WIDE, ROOM_FOR_NARROW = 72, 52  # columns from which on there is one
UNKNOWN_WIDTH, UNKNOWN_HEIGHT = 80, 25


class Part(NamedTuple):
    """A part of the line; those of low rank stay longest where there is little room."""

    text: str
    rank: int = 0
    style: str = ""


def fitting(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit, in their order; the first in rank is there in any case.

    >>> parts = [Part("18,000 steps"), Part("known 91 %", 2), Part("gap 3 %", 1)]
    >>> [part.text for part in fitting(parts, 24)]
    ['18,000 steps', 'gap 3 %']
    """
    kept: set[Part] = set()
    used = -len(GAP)
    for part in sorted(parts, key=lambda part: part.rank):
        if not kept or used + len(GAP) + len(part.text) <= width:
            kept.add(part)
            used += len(GAP) + len(part.text)
    return [part for part in parts if part in kept]


def duration(seconds: float) -> str:
    """A time as people read it.

    >>> duration(75), duration(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class LiveLine:
    """A line that nobody sees; those below show it."""

    first = every = float("inf")  # seconds until it is shown, and shown again

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._due = self.began + self.first

    @property
    def elapsed(self) -> float:
        """Seconds since it was opened."""
        return time.monotonic() - self.began

    def is_due(self) -> bool:
        """Whether it is time to show it again."""
        return time.monotonic() >= self._due

    def show(self, parts: Sequence[Part], share: float | None = None) -> None:
        """Show these parts, with a bar if a `share` of the whole is given."""
        self._draw(parts, share)
        self._due = time.monotonic() + self.every

    def say(self, text: str) -> None:
        """Say something that stays, above the line."""

    def close(self, parts: Sequence[Part] = ()) -> None:
        """End it; a notebook keeps these parts, a terminal nothing."""

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:
        """Put it where it is seen."""


class PlainLine(LiveLine):
    """A new line now and then."""

    first = every = 10.0

    def say(self, text: str) -> None:
        """Say something."""
        _write(text)

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:  # noqa: ARG002
        _write(GAP.join(part.text for part in parts))


class TerminalLine(LiveLine):
    """The last line of a terminal. It is gone in the end."""

    first, every = 0.2, 0.1

    def __init__(self) -> None:
        super().__init__()
        self._live: Live | None = None

    def say(self, text: str) -> None:
        """Say something that stays; the line comes back below it."""
        if self._live is None:
            _write(text)
        else:
            self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
            self._due = time.monotonic()  # what came back below it may be out of date

    def close(self, parts: Sequence[Part] = ()) -> None:  # noqa: ARG002
        """Leave nothing behind."""
        if self._live is not None:
            _ask_for_the_size(self._live.console)
            self._live.stop()
            self._live = None

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:
        if self._live is None:
            self._live = _open_live()
            self._live.start()
        _ask_for_the_size(self._live.console)
        self._live.update(_Row(parts, share), refresh=True)


class NotebookLine(LiveLine):
    """An output of a notebook's cell, updated in place."""

    first, every = 0.2, 0.25

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def say(self, text: str) -> None:
        """Say something that stays."""
        _write(text)

    def close(self, parts: Sequence[Part] = ()) -> None:
        """Leave how it ended."""
        if self._handle is not None and parts:
            self._draw(parts, None)

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:  # noqa: ARG002
        from IPython.display import display

        shown = {"text/plain": GAP.join(part.text for part in parts)}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


_opening = threading.Lock()
_open: LiveLine | None = None  # there is one at a time: the outermost


@contextlib.contextmanager
def live_line(progress: bool | None) -> Iterator[LiveLine]:
    """The line for those who look; within another one, it is not seen."""
    global _open
    line = _line_for(progress)
    with _opening:
        ours = _open is None and type(line) is not LiveLine
        if ours:
            _open = line
    if not ours:
        yield LiveLine()
        return
    try:
        yield line
    finally:
        _open = None
        line.close()


def say(text: str) -> None:
    """Say something on stderr, above the line if there is one."""
    if _open is None:
        _write(text)
    else:
        _open.say(text)


def is_watched(progress: bool | None) -> bool:
    """Whether there is someone to tell; see the module for `progress`."""
    return progress is not False and (progress is True or _in_notebook() or _on_terminal())


def _line_for(progress: bool | None) -> LiveLine:
    if progress not in (True, False, None):
        raise ParameterError(f"progress is {shown(progress)}; allowed: True, False, None")
    if not is_watched(progress):
        return LiveLine()
    if _in_notebook():
        return NotebookLine()
    moves = os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    return TerminalLine() if _on_terminal() and moves else PlainLine()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")  # the shell of a terminal has none


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _write(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _open_live() -> Live:
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(file=sys.stderr, force_terminal=True, force_interactive=True),
        auto_refresh=False,  # a thread would read what training writes
        transient=True,
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # prints come above it
    )


def _ask_for_the_size(console: Console) -> None:
    """Make a console as wide as its window is now; COLUMNS may tell of another one."""
    try:
        columns, lines = os.get_terminal_size(console.file.fileno())
    except (OSError, ValueError):
        columns, lines = 0, 0
    console.size = columns or UNKNOWN_WIDTH, lines or UNKNOWN_HEIGHT


class _Row:
    """The line as rich draws it.

    The cursor is left at its beginning, and all below that is erased before it is drawn anew: when
    a window becomes narrower most terminals wrap the line, and nothing of it may stay behind.
    """

    def __init__(self, parts: Sequence[Part], share: float | None) -> None:
        self.parts = parts
        self.share = share

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.progress_bar import ProgressBar
        from rich.segment import ControlType, Segment
        from rich.text import Text

        yield Segment("\x1b[J", None, [(ControlType.ERASE_IN_LINE, 0)])
        room = console.size.width - 1  # some terminals wrap a line that is exactly full
        if self.share is not None and room >= ROOM_FOR_NARROW:
            width = WIDE if room >= ROOM_FOR_WIDE else NARROW
            yield from console.render(ProgressBar(1.0, self.share, width), options)
            yield Segment(GAP)
            room -= width + len(GAP)
        kept = fitting(self.parts, room)
        line = Text(GAP).join(Text(part.text, style=part.style) for part in kept)
        line.truncate(room)
        yield from (piece for piece in console.render(line, options) if piece.text != "\n")
        yield Segment("\r", None, [(ControlType.CARRIAGE_RETURN,)])
