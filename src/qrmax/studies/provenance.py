"""Provenance of a result: the version and the commit of the code."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from qrmax._version import __version__

PACKAGE = Path(__file__).parents[1]


@cache
def made_by() -> dict[str, str | None]:
    """The versions that numbers depend on, and the commit where qrmax runs from its repository."""
    return {
        "qrmax": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


@cache
def commit() -> str | None:
    """The commit that this package is of, "+" where its files differ from it; None if of none."""
    try:
        # in someone else's repository, in a .venv there, say, this file is not tracked
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = _git("status", "--porcelain", "--", str(PACKAGE))
        return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    where = Path(__file__).parent
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=True)
    return done.stdout.strip()
