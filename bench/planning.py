"""Exact planning beside its peers: time, memory, and what was achieved.

    python bench/planning.py             the whole benchmark
    python bench/planning.py --quick     without the largest grid

The problem: an open n x n grid, four moves, slip 0.2, and nine task states (eight cells to visit in
order, then 1 is paid), gamma 0.99; and the same grid where every step until then costs 1 instead.
Peers get the product of world and task, we get the two factors.
Each contender runs in a process of its own, best of three; building its model and solving are timed
apart, imports and compilation are not timed. Memory is the peak of the process, and how much of it
came after the input was there. The error is the largest relative error of any single value, against
values whose Bellman equations hold to 15 digits.

Then qrmax alone at three sizes: step costs and recurrent problems beside sparse rewards, with the
number of backups per pair, the seconds, and the bound on the error of the start value.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np

import qrmax
from qrmax.worlds.grid import GridMap, slippery_moves

GAMMA = 0.99
ERROR = 1e-6
OUR_TOLERANCE = 1e-8  # of each Bellman equation; the achieved error is shown
STAGES = 8
REPEATS = 3
PEERS = {"QuantEcon": "quantecon", "Storm": "stormpy", "SciPy": "scipy"}  # and their packages
TARGETS = {"QuantEcon": 5.0, "Storm": 3.0}  # how many times faster we want to be, at the least


def open_grid(
    size: int, cost: float = 0.0, stages: int = STAGES, prize: float = 1.0, forever: bool = False
) -> qrmax.Problem:
    """An empty grid with random cells to visit in order, once or again and again."""
    rows = ("." * size,) * size
    no_walls = np.zeros((size, size), dtype=bool)
    grid = GridMap("open", "", rows, {}, no_walls, no_walls, (0, 0))
    succ, prob = slippery_moves(
        grid.targets(), slip=0.2, slips="perpendicular", blocked_moves_slip=False
    )
    goals = np.random.default_rng(0).choice(size * size, stages, replace=False)
    label = np.zeros(size * size, dtype=np.int32)
    label[goals] = np.arange(1, stages + 1)
    last = 0 if forever else stages
    edges = [
        qrmax.Edge(
            f"q{i}", f"goal{i}", f"q{i + 1 if i < stages - 1 else last}", prize * (i == stages - 1)
        )
        for i in range(stages)
    ]
    machine = qrmax.RewardMachine(edges, initial="q0", success=[] if forever else [f"q{last}"])
    labels = [set(), *({f"goal{i}"} for i in range(stages))]
    reward = np.full(succ.shape, -cost)
    return qrmax.Problem(qrmax.TabularMDP(succ, prob, reward, start=0), machine, labels, label)


def corridor(length: int, cost: float) -> qrmax.Problem:
    """Cells in a row, steps left and right; the right end pays 1 and ends the episode."""
    cells = np.arange(length)
    succ = np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1)
    shape = (length, 2, 1)
    mdp = qrmax.TabularMDP(succ[:, :, None], np.ones(shape), np.full(shape, -cost), start=0)
    machine = qrmax.RewardMachine(
        [qrmax.Edge("go", "end", "there", 1.0)], initial="go", success=["there"]
    )
    return qrmax.Problem(mdp, machine, [(), ("end",)], (cells == length - 1).astype(np.int32))


def ring(length: int, rewards: str) -> qrmax.Problem:
    """States in a circle, one action: recurrent and periodic."""
    reward = np.full(length, -1.0)
    if rewards == "random":
        reward = np.random.default_rng(0).normal(size=length)
    succ = (np.arange(length) + 1) % length
    mdp = qrmax.TabularMDP(
        succ[:, None, None], np.ones((length, 1, 1)), reward[:, None, None], start=0
    )
    machine = qrmax.RewardMachine([], initial="go", states=["go"])
    return qrmax.Problem(mdp, machine, [()], np.zeros(length, dtype=np.int32))


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_ours(size: int, tolerance: float, cost: float) -> tuple[dict[str, float], np.ndarray]:
    from qrmax.planning.models import model_of  # here, so as not to weigh on the peers
    from qrmax.planning.policy_evaluation import warm_up

    warm_up()
    problem = open_grid(size, cost, prize=float(cost == 0.0))
    before = peak_megabytes()
    begin = perf_counter()
    model_of(problem)
    built = perf_counter()
    solution = qrmax.solve(problem, GAMMA, tolerance=tolerance)
    solved = perf_counter()
    figures = {
        "build": built - begin,
        "solve": solved - built,
        "before": before,
        "peak": peak_megabytes(),
        "backups": solution.backups / (problem.n_states * STAGES),
    }
    return figures, solution.value.reshape(-1)


def run_peer(name: str, size: int, cost: float) -> tuple[dict[str, float], np.ndarray]:
    import peers  # here, so as not to weigh on us

    solvers = {
        "QuantEcon": peers.solve_quantecon,
        "Storm": peers.solve_storm,
        "SciPy": peers.solve_scipy,
    }
    product = open_grid(size, cost, prize=float(cost == 0.0)).product()
    mdp = peers.Mdp(
        np.array(product.succ),
        np.array(product.prob),
        product.expected_reward(),
        np.array(product.terminal),
        int(product.start.argmax()),
        GAMMA,
        ERROR,
    )
    del product
    before = peak_megabytes()
    value, build, solve = solvers[name](mdp)
    return {"build": build, "solve": solve, "before": before, "peak": peak_megabytes()}, value


def run_here(name: str, size: int, tolerance: float, cost: float, save_to: str) -> None:
    if name == "qrmax":
        figures, value = run_ours(size, tolerance, cost)
    else:
        figures, value = run_peer(name, size, cost)
    if save_to:
        np.save(save_to, value)
    print(json.dumps(figures))


def run_apart(
    name: str,
    size: int,
    folder: Path,
    *,
    cost: float = 0.0,
    tolerance: float = OUR_TOLERANCE,
    repeats: int = REPEATS,
) -> dict[str, float]:
    """The best of some runs, each in its own process; its values are left in the folder."""
    print(f"  {name}, {size} x {size} ...", file=sys.stderr, flush=True)
    runs = []
    for _ in range(repeats):
        command = [sys.executable, __file__, "--contender", name, "--size", str(size)]
        command += [
            "--cost",
            str(cost),
            "--tolerance",
            str(tolerance),
            "--save-to",
            str(folder / f"{name}.npy"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{name} failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout.strip().split("\n")[-1]))
    best: dict[str, float] = min(runs, key=lambda run: run["solve"])
    return best


def error_of(value: np.ndarray, exact: np.ndarray) -> float:
    live = exact != 0
    return float((np.abs(value - exact)[live] / np.abs(exact[live])).max())


def compare(size: int, folder: Path, cost: float = 0.0) -> None:
    run_apart("qrmax", size, folder, cost=cost, tolerance=1e-15, repeats=1)
    exact = np.load(folder / "qrmax.npy")
    present = [name for name, package in PEERS.items() if find_spec(package)]
    rows = {name: run_apart(name, size, folder, cost=cost) for name in ("qrmax", *present)}
    rewards = f"every step costs {cost:g}" if cost else "1 at the end"
    print(f"{size} x {size} grid x {STAGES + 1} task states x 4 actions, gamma {GAMMA}, {rewards}")
    print("            build s  solve s  solve/ours  peak MB  of it for solving  error")
    for name, row in rows.items():
        error = error_of(np.load(folder / f"{name}.npy"), exact)
        print(
            f"{name:<10} {row['build']:>8.3f} {row['solve']:>8.3f} "
            f"{row['solve'] / rows['qrmax']['solve']:>10.1f}x {row['peak']:>8.0f} "
            f"{row['peak'] - row['before']:>18.0f} {error:>8.0e}"
        )
    for name in sorted(PEERS.keys() - rows.keys()):
        print(f"{name} is not installed here, so there is nothing to compare with")
    for name in sorted(TARGETS.keys() & rows.keys()):
        factor = TARGETS[name]
        ratio = rows[name]["solve"] / rows["qrmax"]["solve"]
        lean = rows["qrmax"]["peak"] <= rows[name]["peak"]
        print(
            f"{ratio:.1f}x faster than {name} (wanted {factor:g}x: "
            f"{'met' if ratio >= factor else 'missed'}), at "
            f"{'no more' if lean else 'MORE'} memory"
        )


def scale(sizes: list[int], folder: Path) -> None:
    print("\nqrmax alone")
    print("        grid  build s  solve s  peak MB  backups a pair  ns a backup")
    for size in sizes:
        row = run_apart("qrmax", size, folder, repeats=REPEATS if size < 1000 else 1)
        backups = row["backups"] * size * size * STAGES
        print(
            f"{f'{size} x {size}':>12} {row['build']:>8.3f} {row['solve']:>8.3f} "
            f"{row['peak']:>8.0f} {row['backups']:>15.1f} {1e9 * row['solve'] / backups:>12.0f}"
        )


def step_costs(quick: bool) -> None:
    """Step costs and recurrent problems beside sparse rewards."""
    from qrmax.planning.policy_evaluation import warm_up

    warm_up()
    grids = (100, 200, 400)
    kinds: list[tuple[str, float, tuple[int, ...], Callable[[int], qrmax.Problem]]] = [
        ("corridor, 1 at the end", GAMMA, (2000, 8000, 32000), lambda n: corridor(n, 0.0)),
        ("  and 0.001 per step", GAMMA, (2000, 8000, 32000), lambda n: corridor(n, 0.001)),
        ("grid, 1 at the end", GAMMA, grids, lambda n: open_grid(n, 0.0, stages=1)),
        ("  and 0.001 per step", GAMMA, grids, lambda n: open_grid(n, 0.001, stages=1)),
        ("ring, -1 per step", 0.99999, (8, 800, 80000), lambda n: ring(n, "same")),
        ("  both signs", 0.99999, (8, 800, 80000), lambda n: ring(n, "random")),
        ("patrol of 3 cells", 0.999, (25, 50, 100), lambda n: open_grid(n, 0.0, 3, forever=True)),
        ("  and 0.001 per step", 0.999, (25, 50, 100), lambda n: open_grid(n, 0.001, 3, 1.0, True)),
    ]
    print("\nqrmax alone, to the default tolerance: sparse rewards, step costs, recurrent problems")
    print(
        "                          gamma    size  backups a pair  solve s  start value  error bound"
    )
    for name, gamma, sizes, make in kinds:
        for size in sizes[:2] if quick else sizes:
            problem = make(size)
            begin = perf_counter()
            solution = qrmax.solve(problem, gamma)
            seconds = perf_counter() - begin
            for _ in range(REPEATS - 1):
                begin = perf_counter()
                qrmax.solve(problem, gamma)
                seconds = min(seconds, perf_counter() - begin)
            live = problem.n_states * int((~problem.table.terminal).sum())
            print(
                f"{name:<24} {gamma:>7} {size:>7} {solution.backups / live:>15.1f} {seconds:>8.3f} "
                f"{solution.start_value:>12.5g} {solution.start_error_bound:>12.0e}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the largest grid")
    parser.add_argument("--contender", choices=["qrmax", *PEERS], help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--cost", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--tolerance", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--save-to", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contender:
        run_here(given.contender, given.size, given.tolerance, given.cost, given.save_to)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(100, Path(folder))
        print()
        compare(100, Path(folder), cost=1.0)
        scale([100, 316] if given.quick else [100, 316, 1000], Path(folder))
    step_costs(given.quick)


if __name__ == "__main__":
    main()
