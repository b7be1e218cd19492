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
    """The versions that results depend on, and the commit if qrmax runs from its repository."""
    return {
        "qrmax": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


@cache
def commit() -> str | None:
    """The commit of this package, with "+" if files have changed; None outside its repository."""
    try:
        # in another repository, such as in a .venv there, this file is not tracked
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
