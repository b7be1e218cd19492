"""The first run after installation: CPU seconds with an empty cache, then with what it has left.

    python bench/compiling.py

`qrmax run` in a process of its own, with a folder for numba's cache that is empty at first. CPU
seconds are user and system time of the process and its children, imports and learning included;
`compiled` is how many kernels (with the functions that they call) are in the cache afterwards.
`learning` is what the first run says that learning alone took. The target is for the first row.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = 15.0  # CPU seconds of the first run
RUNS = {
    "qrmax": "office/map1/exp1",
    "rmax-rm": "office/map1/exp1",
    "q-learning": "office/map1/exp1",
    "ucbvi-b": "office/map1/exp1",
    "psrl": "office/map1/exp1",
    "bucket-qrmax": "continuous/line/ab",
}
STEPS, HORIZON = "20000", "20"
COMMAND = "from qrmax.cli.main import main; main()"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(agent: str, problem: str, cache: str) -> tuple[float, dict[str, Any]]:
    """The CPU seconds of a run, and what it printed."""
    limit = [] if agent == "qrmax" else ["--max-steps", STEPS]
    if agent in ("ucbvi-b", "psrl"):
        limit += ["--horizon", HORIZON]
    before = cpu_seconds()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "run", problem, "--agent", agent, "--json", *limit],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return cpu_seconds() - before, json.loads(done.stdout)


def main() -> None:
    print("CPU seconds of `qrmax run PROBLEM --agent AGENT`\n")
    print(
        f"{'agent':<14}{'problem':<20}{'first run':>10}{'target':>8}{'second run':>12}"
        f"{'compiled':>10}{'learning, s':>13}"
    )
    for agent, problem in RUNS.items():
        with tempfile.TemporaryDirectory() as cache:
            first, found = run(agent, problem, cache)
            second, _ = run(agent, problem, cache)
            kernels = len([*Path(cache).rglob("*.nbi")])
        target = TARGET if agent == "qrmax" else None
        missed = target is not None and first > target
        print(
            f"{agent:<14}{problem:<20}{first:>10.1f}{f'{target:.0f}' if target else '':>8}"
            f"{second:>12.1f}{kernels:>10}{found['seconds']:>13.2f}"
            + ("   <- above its target" if missed else ""),
            flush=True,
        )


if __name__ == "__main__":
    main()
