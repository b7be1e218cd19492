"""What a sweep costs beside its runs: ten thousand tiny ones.

    python bench/sweeping.py

The overhead of a run is the time that the sweep takes for it on its workers, all in all, less what
the same run takes in a plain loop in one process, curve and outcome included. Starting the workers,
which takes as long however many runs there are, is shown by itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import qrmax
from qrmax.studies.backends import count_cores
from qrmax.studies.study import Study
from qrmax.studies.sweep import Event, Finished
from qrmax.studies.work import Assignment, advance

STUDY = """
title = "Tiny runs"
problems = [{ map = "row.txt", task = "fetch.toml" }]
agents = ["qrmax", "q-learning"]
max_steps = 200
evaluate_every = 100
stop = "budget"
"""
MAP = "start: 1,0\n\nc . . O\n"
TASK = """
initial = "start"
success = ["done"]
edges = [
  { from = "start", when = "coffee", to = "has_coffee" },
  { from = "has_coffee", when = "office", to = "done", reward = 1.0 },
]
"""
LOOP = 1000  # runs of the plain loop
OVERHEAD = 5.0  # milliseconds, at most
ANSWER = 2.0  # seconds, at most


def megabytes() -> float:
    """The memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


class Watch:
    """Takes the time of the first run that ends, and the driver's memory on the way."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.first = 0.0
        self.runs = 0
        self.memory: list[float] = []

    def __call__(self, event: Event) -> None:
        """See what has happened."""
        if isinstance(event, Finished):
            self.runs += 1
            if self.runs == 1:
                self.first = time.perf_counter() - self.began
            if self.runs % 1000 == 0:
                self.memory.append(megabytes())


def plain_loop(study: Study) -> float:
    """Milliseconds for each run, in one process."""
    runs = [run for run, _ in zip(study.runs(), range(LOOP + 2), strict=False)]
    for run in runs[:2]:  # compiles
        advance(Assignment(run.config(), b"", 60.0))
    began = time.perf_counter()
    for run in runs[2:]:
        advance(Assignment(run.config(), b"", 60.0))
    return (time.perf_counter() - began) / LOOP * 1e3


def seconds_of(*arguments: str) -> float:
    """How long the command takes."""
    command = [str(Path(sys.executable).with_name("qrmax")), *arguments]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "row.txt").write_text(MAP)
        (folder / "fetch.toml").write_text(TASK)
        (folder / "tiny.toml").write_text(f"seeds = {options.seeds}\n{STUDY}")
        study = qrmax.load_study(folder / "tiny.toml")
        alone = plain_loop(study)
        watch, workers = Watch(), count_cores()
        summary = qrmax.sweep(study, folder=folder / "results", on_event=watch)
        spent = time.perf_counter() - watch.began - watch.first
        in_all = spent * workers / summary.done * 1e3
        status = seconds_of("status", str(summary.folder))
        results = seconds_of("results", str(summary.folder))
    print(f"{summary.done:,} runs of {study.max_steps} steps, {workers} workers\n")
    print(f"a plain loop, one process       {alone:8.2f} ms per run")
    print(f"the sweep, time of a worker     {in_all:8.2f} ms per run")
    print(f"overhead                        {in_all - alone:8.2f} ms per run  (target: {OVERHEAD})")
    print(f"until the first run has ended   {watch.first:8.2f} s")
    print(f"qrmax status                    {status:8.2f} s           (target: {ANSWER})")
    print(f"qrmax results                   {results:8.2f} s           (target: {ANSWER})")
    memory = ", ".join(f"{megabytes:.0f}" for megabytes in watch.memory)
    print(f"memory of the driver            {memory} MB, after each 1,000 runs")


if __name__ == "__main__":
    main()
