"""The package as others have it: a copy, in processes that have no access to the source tree.

Such a process runs without `site`, so that the path of the editable installation is not there; what
qrmax needs is found in the folder that NumPy was installed into.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

import qrmax

SOURCE = Path(qrmax.__file__).parent
MAIN = "from qrmax.cli.main import main; main()"
ELSEWHERE = f"""
import sys, pathlib, qrmax
source = pathlib.Path({str(SOURCE.parent)!r})
assert source not in map(pathlib.Path, sys.path), sys.path
assert not pathlib.Path(qrmax.__file__).is_relative_to(source), qrmax.__file__
"""


@functools.cache
def installed() -> Path:
    """A folder with a copy of the package, compiled kernels included; made once."""
    folder = Path(tempfile.mkdtemp(prefix="qrmax-installed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder / "qrmax")
    return folder


def python(
    script: str, *arguments: str, cwd: Path, warnings: str = "error"
) -> subprocess.CompletedProcess[str]:
    """Run a script of Python in a folder, with the copy; the folder itself can be imported from."""
    paths = [str(installed()), str(Path(numpy.__file__).parents[1])]
    environment = {key: x for key, x in os.environ.items() if not key.startswith("PYTHON")}
    code = f"{ELSEWHERE}\n{script}"
    return subprocess.run(
        [sys.executable, "-S", "-X", "utf8", "-W", warnings, "-c", code, *arguments],
        cwd=cwd,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command `qrmax` in a folder, with the copy."""
    return python(MAIN, *arguments, cwd=cwd, warnings="default")
