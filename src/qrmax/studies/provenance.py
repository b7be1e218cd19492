"""Which code has made a result."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

from qrmax._version import __version__


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
    """The commit of the repository that this file is in, "+" where files differ from it."""
    here = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        subprocess.run(  # in someone else's repository, say in a .venv, this file is not tracked
            ["git", "ls-files", "--error-unmatch", __file__],
            cwd=here,
            capture_output=True,
            check=True,
        )
        found = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip() or None
