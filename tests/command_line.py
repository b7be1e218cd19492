"""The command `qrmax` as people run it: in a process of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

QRMAX = str(Path(sys.executable).with_name("qrmax"))
GOOD_MAP = "start: 0,0\n\n. c O\n"
GOOD_TASK = 'initial = "s"\nedges = [{ from = "s", when = "coffee", to = "t" }]\n'


class Done(NamedTuple):
    """What a command that was run within this process has left."""

    returncode: int
    stdout: str
    stderr: str


def run(
    *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [QRMAX, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def run_at_a_terminal(
    *arguments: str, cwd: Path | None = None, columns: int = 80, **environment: str
) -> str:
    """All that the command prints on a terminal of so many columns, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {key: os.environ[key] for key in os.environ.keys() - {"COLUMNS", "LINES", "NO_COLOR"}}
    process = subprocess.Popen(
        [QRMAX, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env={**known, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    process.wait(timeout=60)
    return b"".join(parts).decode().replace("\r\n", "\n")
