"""A terminal of a given size: what a command writes to it, and what one sees of that."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyte

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seen(NamedTuple):
    """What a command has shown."""

    written: str  # all of it, in order
    lines: list[str]  # what is to be seen in the end, but for empty lines
    rewrites: list[str]  # each line that was drawn, whether it was overwritten or not


class Window:
    """The window of a command that runs."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process = process
        self.end = end

    def resize(self, columns: int, rows: int) -> None:
        """Have another size from now on."""
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def on_a_terminal(
    command: Sequence[str],
    *,
    columns: int = 80,
    rows: int = 40,
    cwd: Path | None = None,
    code: int = 0,
    before: Callable[[], None] | None = None,
    sign: str = "steps",
    when_shown: Callable[[Window], None] | None = None,
    **environment: str,
) -> Seen:
    """Run a command on a terminal; as soon as `sign` was written, `when_shown` is called once."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    usual = {"TERM": "xterm-256color", "NO_COLOR": "", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **usual, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=before,
    )
    os.close(theirs)
    written = b""
    until = time.monotonic() + 120
    try:
        while time.monotonic() < until:
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if when_shown is not None and sign in written.decode(errors="replace"):
                when_shown(Window(process, ours))
                when_shown = None
        assert process.wait(timeout=10) == code, written.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return seen(written.decode(), columns)


@contextmanager
def stderr_on_a_terminal(columns: int = 80, rows: int = 40) -> Iterator[Callable[[], Seen]]:
    """A terminal as the stderr of this process; the function tells what it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    written: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                written.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    before, sys.stderr = sys.stderr, os.fdopen(theirs, "w")

    def look() -> Seen:
        sys.stderr.close()
        reader.join(timeout=10)
        return seen(b"".join(written).decode(), columns)

    try:
        yield look
    finally:
        sys.stderr.close()
        sys.stderr = before
        reader.join(timeout=10)
        os.close(ours)


def seen(written: str, columns: int) -> Seen:
    """What a terminal makes of a text: as `pyte` does, with all that has scrolled away."""
    screen = pyte.Screen(columns, 2000)
    pyte.Stream(screen).feed(written)
    lines = [line.rstrip() for line in screen.display]
    lines = [line for line in lines if line and not line.startswith("compiling")]  # a first time
    plain = ESCAPE.sub("", written)
    return Seen(written, lines, [line for line in re.split(r"[\r\n]+", plain) if line.strip()])
