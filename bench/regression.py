"""Compiled rates of the built-in agents in this tree against those of another revision, in one run.

    python bench/regression.py                       against the commit before
    python bench/regression.py --against v1 --quick  against any revision that git knows, fewer runs

The other revision is checked out into a temporary worktree. Both trees are run by this interpreter,
in processes of their own and with caches of compiled code of their own, by turns, so that both have
the same load beside them; the rates are the best of some runs, in CPU seconds of learning alone. On
the problems of the paper's table 6 they are those of whole runs, with an evaluation every 1000
steps, as in a study.
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
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABULAR, PLANE = "office/map1/exp5", "continuous/line/ab"


class Row(NamedTuple):
    """A run to measure."""

    agent: str
    problem: str
    steps: int
    horizon: int | None = None


ROWS = [
    Row("q-learning", TABULAR, 3_000_000),
    Row("qrm", TABULAR, 3_000_000),
    Row("rmax", TABULAR, 400_000),
    Row("rmax-rm", TABULAR, 400_000),
    Row("qrmax", TABULAR, 400_000),
    Row("qrmax-rm", TABULAR, 400_000),
    Row("bucket-qrmax", PLANE, 200_000),
    Row("bucket-rmax", PLANE, 200_000),
    # the problems of the paper's table 6, with its horizons
    Row("ucbvi-sb", "office/map0/exp0", 100_000, 50),
    Row("psrl", "office/map0/exp0", 50_000, 50),
    Row("ucbvi-sb", TABULAR, 100_000, 150),
    Row("ucbvi-b", TABULAR, 100_000, 150),
    Row("ucbvi-h", TABULAR, 100_000, 150),
    Row("ucbvi-b-rm", TABULAR, 20_000, 150),
    Row("psrl", TABULAR, 50_000, 150),
    Row("psrl-rm", TABULAR, 20_000, 150),
    Row("opsrl", TABULAR, 30_000, 150),
    Row("ucbvi-b-published", TABULAR, 20_000, 150),
    Row("opsrl-published", TABULAR, 2_000, 150),
    Row("psrl-exact", TABULAR, 5_000, 150),
    Row("opsrl-exact", TABULAR, 5_000, 150),
    Row("ucbvi-b", "office/map4/exp6", 100_000, 150),
    Row("ucbvi-b", "office/map3/exp5", 100_000, 150),
    Row("psrl", "office/map3/exp5", 50_000, 150),
    Row("ucbvi-b", "office/map2/exp5", 100_000, 350),
]
AGENTS = list(dict.fromkeys(row.agent for row in ROWS))
REPEATS, FEW = 5, 2
NOISE = 0.1  # a ratio this far below 1 says nothing

RATES = """
import json, sys, time
time.perf_counter = time.process_time  # by which runs measure themselves: other load is no matter
import qrmax
agent, name, steps, settings = json.loads(sys.argv[1])
options = {"stop": "budget", "progress": False, **settings}
problem = qrmax.make(name)
qrmax.train(agent, problem, max_steps=1000, **options)  # compiles
begin = time.process_time()
run = qrmax.train(agent, problem, max_steps=steps, **options)
print(steps / (time.process_time() - begin if "horizon" in settings else run.seconds))
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


def rate(tree: Path, cache: Path, row: Row) -> float:
    """Steps per CPU second of one run in a tree."""
    agent, problem, steps, horizon = row
    settings = {"evaluate_every": 10**9} if horizon is None else {"horizon": horizon}
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


def compare(tree: Path, revision: str, rows: list[Row], repeats: int) -> None:
    print(f"thousand steps per CPU second; before: {revision}\n")
    print(f"{'agent':<19}{'problem':<22}{'before':>10}{'now':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as caches:
        trees = {
            name: (path, Path(caches) / name) for name, path in (("then", tree), ("now", ROOT))
        }
        for row in rows:
            best = dict.fromkeys(trees, 0.0)
            for _ in range(repeats):
                for name, (path, cache) in trees.items():
                    best[name] = max(best[name], rate(path, cache, row))
            ratio = best["now"] / best["then"]
            print(
                f"{row.agent:<19}{row.problem:<22}{best['then'] / 1e3:>10,.1f}"
                f"{best['now'] / 1e3:>10,.1f}{ratio:>8.2f}"
                + ("   <- slower than before" if ratio < 1.0 - NOISE else ""),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="HEAD^", help="a revision that git knows (HEAD^)")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=AGENTS, metavar="AGENT")
    parser.add_argument("--quick", action="store_true", help=f"best of {FEW} in place of {REPEATS}")
    options = parser.parse_args()
    try:
        revision = git("log", "-1", "--format=%h %s", options.against)
    except (OSError, subprocess.CalledProcessError):
        print(f"git knows no revision {options.against} here: there is nothing to compare with")
        return
    rows = [row for row in ROWS if row.agent in options.agents]
    with checked_out(options.against) as tree:
        compare(tree, revision, rows, FEW if options.quick else REPEATS)


if __name__ == "__main__":
    main()
