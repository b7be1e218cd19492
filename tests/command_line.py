"""The command `qrmax`: within this process, which is quick, or in one of its own."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from qrmax.cli.main import main

QRMAX = str(Path(sys.executable).with_name("qrmax"))
GOOD_MAP = "start: 0,0\n\n. c O\n"
GOOD_TASK = 'initial = "s"\nedges = [{ from = "s", when = "coffee", to = "t" }]\n'
QUIET = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


class Done(NamedTuple):
    """What a command that was run within this process has left."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> Done:
    """Run the command to its end within this process, as if its output went to files."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        chdir(cwd or Path()),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["qrmax", *arguments]),
        mock.patch.object(sys.modules["__main__"], "__package__", ""),  # else it is "python -m ..."
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()  # those of the tests are errors, those of a command are shown
        for category in QUIET:
            warnings.simplefilter("ignore", category)
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def run_apart(
    *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a process of its own, as people do."""
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
