"""Small studies, sweeps of them in processes of their own, and what they leave on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from command_line import QRMAX, run_apart

# twelve runs that take no time
QUICK = """
problems = ["office/map1/exp1", "office/map0/exp0"]
agents = ["q-learning", { agent = "qrmax-rm", t_env = 5 }, { agent = "qrm", label = "other" }]
seeds = 2
max_steps = 4_000
"""
# runs of a second or two, with two thousand moments at which they can be broken off
LONG = """
problems = ["office/map1/exp5"]
agents = ["q-learning"]
seeds = 3
stop = "budget"
max_steps = 1_200_000
evaluate_every = 300
"""
# runs that are still under way after a few kills
LONGER = LONG.replace("1_200_000", "6_000_000")
# a run that never ends, for all practical purposes
ENDLESS = """
problems = ["office/map1/exp5"]
agents = ["q-learning"]
seeds = 1
stop = "budget"
max_steps = 1_000_000_000
"""


def write_study(folder: Path, text: str, name: str = "study.toml") -> str:
    """A study file; returns its name, for commands that run in that folder."""
    (folder / name).write_text(text)
    return name


def sweep(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Sweep the study of a folder, to its end."""
    return run_apart("sweep", "study.toml", "-o", "results", *arguments, cwd=folder, **environment)


@contextmanager
def started(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A sweep of the study of a folder, under way; it leads a process group, as in a shell."""
    process = subprocess.Popen(
        [QRMAX, "sweep", "study.toml", "-o", "results", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        workers = workers_of(process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def with_main(before: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that has done something else before."""
    code = f"import sys\n{before}\nfrom qrmax.cli.main import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def workers_of(driver: int) -> list[int]:
    """The worker processes of a sweep."""
    return [
        pid for pid, parent, words in processes() if parent == driver and "studies.worker" in words
    ]


def processes() -> Iterator[tuple[int, int, str]]:
    """The id, the parent and the words of every process that is not dead yet."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended meanwhile
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    words = (folder / "cmdline").read_text().replace("\0", " ")
                    yield int(folder.name), int(parent), words


def is_alive(pid: int) -> bool:
    return any(pid == other for other, _, _ in processes())


def cpu_seconds(pid: int) -> float:
    """How long a process has been working."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Until something holds, or a failure."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "has not come to be in time"
        time.sleep(0.02)


def checkpoints(folder: Path) -> list[Path]:
    return [*folder.glob("results/runs/*/checkpoint.safetensors")]


def complete(folder: Path) -> list[Path]:
    return [*folder.glob("results/runs/*/run.json")]


def record(folder: Path) -> dict[str, dict[str, object]]:
    """Each run.json, by the run's id."""
    return {path.parent.name: json.loads(path.read_text()) for path in complete(folder)}


def contents(results: Path) -> dict[str, bytes]:
    """Every file of a results folder; of a run.json all but its timing. Not who has written it."""
    found = {}
    for path in sorted(results.rglob("*")):
        if path.is_dir() or path == results / ".lock":
            continue
        data = path.read_bytes()
        if path.name == "run.json":
            assert json.loads(data)["timing"].keys() >= {"total", "finished"}
            data, _, timing = data.rpartition(b',\n "timing": ')
            assert timing.count(b"\n") == 2  # it ends with that
        found[str(path.relative_to(results))] = data
    return found


def assert_same_results(one: Path, other: Path) -> None:
    """Two results folders are the same, byte for byte, and have no more in them than they should.

    Only how long things took may differ.
    """
    ours, theirs = contents(one), contents(other)
    assert ours.keys() == theirs.keys()
    assert {Path(name).name for name in ours} == {"study.json", "run.json", "curve.parquet"}
    for name, data in ours.items():
        assert data == theirs[name], name
