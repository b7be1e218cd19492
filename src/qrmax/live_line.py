"""A progress line that is updated in place.

On a terminal it is written to stderr and never wider than the window: parts that do not fit are
dropped, the least important first. In a notebook it is one output that is updated. Elsewhere (a
file, a pipe, a terminal that cannot move its cursor) it is a plain line every ten seconds, and only
on request. Terminal control is left to rich.

`progress` selects when it is shown: None on a terminal and in a notebook, True everywhere, False
never.
"""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from qrmax.errors import ParameterError, shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

GAP = "  "  # between two parts
WIDE, NARROW = 24, 12  # characters of a bar
ROOM_FOR_WIDE, ROOM_FOR_NARROW = 72, 52  # columns needed for a bar
UNKNOWN_WIDTH, UNKNOWN_HEIGHT = 80, 25


class Part(NamedTuple):
    """A part of the line; parts of low rank are dropped last."""

    text: str
    rank: int = 0
    style: str = ""


def fitting(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit into a width, in order; the one of lowest rank is always kept.

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
    """A duration as hours, minutes and seconds.

    >>> duration(75), duration(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def folded(text: str, width: int, indent: int = 0) -> str:
    """A line folded to a width; continuation lines are indented, and words are never broken.

    >>> print(folded("failed: qrmax on cliff, seed 0", 20, indent=2))
    failed: qrmax on
      cliff, seed 0
    """
    if len(text) <= width:
        return text
    return textwrap.fill(
        text,
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


class LiveLine:
    """A progress line that is not shown; subclasses show it."""

    first = every = float("inf")  # seconds until it is first shown, and between updates

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._due = self.began + self.first

    @property
    def elapsed(self) -> float:
        """Seconds since the line was opened."""
        return time.monotonic() - self.began

    def is_due(self) -> bool:
        """Whether an update is due."""
        return time.monotonic() >= self._due

    def show(self, parts: Sequence[Part], share: float | None = None) -> None:
        """Show these parts, with a progress bar if the completed `share` is given."""
        self._draw(parts, share)
        self._due = time.monotonic() + self.every

    def say(self, text: str) -> None:
        """Print a permanent message above the line."""

    def close(self, parts: Sequence[Part] = ()) -> None:
        """Close the line; a notebook keeps these parts, a terminal nothing."""

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:
        """Display the line."""


class PlainLine(LiveLine):
    """A new plain line at intervals."""

    first = every = 10.0

    def say(self, text: str) -> None:
        """Print a message."""
        _write_message(text)

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:  # noqa: ARG002
        _write(GAP.join(part.text for part in parts))


class TerminalLine(LiveLine):
    """The last line of a terminal, erased when closed."""

    first, every = 0.2, 0.1

    def __init__(self) -> None:
        super().__init__()
        self._live: Live | None = None

    def say(self, text: str) -> None:
        """Print a permanent message; the line is redrawn below it."""
        if self._live is None:
            _write_message(text)
        else:
            shown = _for_terminal(text)
            self._live.console.print(shown, markup=False, highlight=False, soft_wrap=True)
            self._due = time.monotonic()  # the redrawn line may be out of date

    def close(self, parts: Sequence[Part] = ()) -> None:  # noqa: ARG002
        """Erase the line."""
        if self._live is not None:
            _update_size(self._live.console)
            self._live.stop()
            self._live = None

    def _draw(self, parts: Sequence[Part], share: float | None) -> None:
        if self._live is None:
            self._live = _open_live()
            self._live.start()
        _update_size(self._live.console)
        self._live.update(_Row(parts, share), refresh=True)


class NotebookLine(LiveLine):
    """An output of a notebook's cell, updated in place."""

    first, every = 0.2, 0.25

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def say(self, text: str) -> None:
        """Print a permanent message."""
        _write(text)

    def close(self, parts: Sequence[Part] = ()) -> None:
        """Leave the final parts in the output."""
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
_open: LiveLine | None = None  # at most one at a time: the outermost


@contextlib.contextmanager
def live_line(progress: bool | None) -> Iterator[LiveLine]:
    """Open a progress line; one within another is not shown."""
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
    """Print a message to stderr, above the progress line if there is one."""
    if _open is None:
        _write_message(text)
    else:
        _open.say(text)


def is_watched(progress: bool | None) -> bool:
    """Whether progress is shown; see the module for `progress`."""
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
    except (AttributeError, ValueError):  # missing, or closed
        return False


def _write(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _write_message(text: str) -> None:
    _write(_for_terminal(text) if _on_terminal() else text)


def _for_terminal(text: str) -> str:
    """A message folded to the width of the terminal on stderr."""
    width = _size(sys.stderr).columns
    lines = [(line, len(line) - len(line.lstrip())) for line in text.splitlines()]
    return "\n".join(folded(line, width, indent + 2) for line, indent in lines)


def _open_live() -> Live:
    from rich.console import Console
    from rich.live import Live

    return Live(
        console=Console(file=sys.stderr, force_terminal=True, force_interactive=True),
        auto_refresh=False,  # a thread would race with training
        transient=True,
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),  # prints appear above it
    )


def _update_size(console: Console) -> None:
    """Set the console's size to that of its window; COLUMNS may be out of date."""
    console.size = _size(console.file)


def _size(file: IO[str]) -> os.terminal_size:
    try:
        columns, lines = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        columns, lines = 0, 0
    return os.terminal_size((columns or UNKNOWN_WIDTH, lines or UNKNOWN_HEIGHT))


class _Row:
    """The line as a rich renderable.

    The cursor stays at its beginning, and everything below is erased before it is redrawn: when a
    window becomes narrower most terminals wrap the line, and no part of it may remain.
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
