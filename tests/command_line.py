"""The command `qrmax` as people run it: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

QRMAX = str(Path(sys.executable).with_name("qrmax"))
GOOD_MAP = "start: 0,0\n\n. c O\n"
GOOD_TASK = 'initial = "s"\nedges = [{ from = "s", when = "coffee", to = "t" }]\n'


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
