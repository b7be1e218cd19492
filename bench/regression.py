"""Compiled rates of the built-in agents in this tree against those of another revision, in one run.

    python bench/regression.py                       against the commit before
    python bench/regression.py --against v1 --quick  against any revision that git knows, fewer runs

The other revision is checked out into a temporary worktree. Both trees are run by this interpreter,
in processes of their own and with caches of compiled code of their own, by turns, so that both have
the same load beside them; the rates are the best of some runs, in CPU seconds of learning alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABULAR, PLANE = "office/map1/exp5", "continuous/line/ab"
AGENTS = {  # the problem, and steps
    "q-learning": (TABULAR, 3_000_000),
    "qrm": (TABULAR, 3_000_000),
    "rmax": (TABULAR, 400_000),
    "rmax-rm": (TABULAR, 400_000),
    "qrmax": (TABULAR, 400_000),
    "qrmax-rm": (TABULAR, 400_000),
    "ucbvi-b": (TABULAR, 20_000),
    "psrl": (TABULAR, 20_000),
    "bucket-qrmax": (PLANE, 200_000),
    "bucket-rmax": (PLANE, 200_000),
}
HORIZON = {"ucbvi-b": 50, "psrl": 50}
REPEATS, FEW = 5, 2
NOISE = 0.1  # a ratio this far below 1 says nothing

RATES = """
import json, sys, time
time.perf_counter = time.process_time  # by which runs measure themselves: other load is no matter
import qrmax
agent, name, steps, settings = json.loads(sys.argv[1])
options = {"stop": "budget", "evaluate_every": 10**9, "progress": False, **settings}
problem = qrmax.make(name)
qrmax.train(agent, problem, max_steps=2000, **options)  # compiles
print(steps / qrmax.train(agent, problem, max_steps=steps, **options).seconds)
"""


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A worktree of another revision, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", str(tree), revision)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def rate(tree: Path, cache: Path, agent: str) -> float:
    """Steps per CPU second of one run in a tree."""
    problem, steps = AGENTS[agent]
    settings = {"horizon": HORIZON[agent]} if agent in HORIZON else {}
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            RATES,
            json.dumps([agent, problem, steps, settings]),
        ],
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{agent} failed in {tree}:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def compare(tree: Path, revision: str, agents: list[str], repeats: int) -> None:
    print(f"thousand steps per CPU second; before: {revision}\n")
    print(f"{'agent':<14}{'problem':<22}{'before':>10}{'now':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as caches:
        trees = {
            name: (path, Path(caches) / name) for name, path in (("then", tree), ("now", ROOT))
        }
        for agent in agents:
            best = dict.fromkeys(trees, 0.0)
            for _ in range(repeats):
                for name, (path, cache) in trees.items():
                    best[name] = max(best[name], rate(path, cache, agent))
            ratio = best["now"] / best["then"]
            print(
                f"{agent:<14}{AGENTS[agent][0]:<22}{best['then'] / 1e3:>10,.0f}"
                f"{best['now'] / 1e3:>10,.0f}{ratio:>8.2f}"
                + ("   <- slower than before" if ratio < 1.0 - NOISE else ""),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="HEAD^", help="a revision that git knows (HEAD^)")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=[*AGENTS], metavar="AGENT")
    parser.add_argument("--quick", action="store_true", help=f"best of {FEW} in place of {REPEATS}")
    options = parser.parse_args()
    try:
        revision = git("log", "-1", "--format=%h %s", options.against)
    except (OSError, subprocess.CalledProcessError):
        print(f"git knows no revision {options.against} here: there is nothing to compare with")
        return
    with checked_out(options.against) as tree:
        compare(tree, revision, options.agents, FEW if options.quick else REPEATS)


if __name__ == "__main__":
    main()
