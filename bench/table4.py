"""The paper's table 4 (steps to an optimal policy: 15 problems, 6 learners), run again.

    python bench/table4.py --protocol as-published --seeds 10 -o docs/results/table4-as-published.md

Two protocols, every setting in sight below. *as-published* is what the paper's numbers were made
with, as far as it could be found out; *as-described* is what the paper's text says.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import qrmax
from qrmax.agents.registry import agent_class
from qrmax.training.stopping import Exact, Nominal, StoppingRule
from qrmax.training.warm_up import warm_up

PAPER = Path(__file__).parent / "paper" / "table4.csv"
COLUMN_OF = {  # in the paper's file
    "q-learning": "q_learning",
    "qrm": "qrm",
    "rmax": "r_max",
    "rmax-rm": "r_max_rm",
    "qrmax": "qr_max",
    "qrmax-rm": "qr_max_rm",
}


@dataclass(frozen=True)
class Variant:
    """An agent with settings."""

    agent: str
    settings: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """What its column is called."""
        return self.label or self.agent


@dataclass(frozen=True)
class Protocol:
    """Everything that a cell of the table depends on, but for the seed."""

    name: str
    about: str
    world: dict[str, Any]
    stop: StoppingRule
    evaluate_every: int
    max_steps: int
    variants: Sequence[Variant]
    compared: Sequence[Variant] = ()  # for a second table: other settings of the same agents


_VI = {"published": True, "tolerance": 0.01}
PROTOCOLS = {
    "as-published": Protocol(
        name="as-published",
        about="No slips in training, decorations cost 100 and end the episode, episodes of at most "
        "1001 steps, rules of the published code, value iteration to 1 %; the greedy policy is "
        "checked every 250 steps, and the step is the first of six checks in a row at which its "
        "run has the shortest length.",
        world={"slip": 0.0, "decoration_penalty": 100.0, "max_episode_steps": 1001},
        stop=Nominal(in_a_row=6),
        evaluate_every=250,
        max_steps=20_000_000,
        variants=(
            Variant("q-learning"),
            Variant("rmax", {**_VI, "v_max": 1.0}),
            Variant("qrmax", _VI),
            Variant("qrm"),
            Variant("rmax-rm", {**_VI, "v_max": 10.0}),
            Variant("qrmax-rm", _VI),
        ),
        compared=(
            Variant("rmax", {**_VI, "v_max": 1.0}, "rmax, v_max 1"),
            Variant("rmax", {**_VI, "v_max": 10.0}, "rmax, v_max 10"),
            Variant("rmax-rm", {**_VI, "v_max": 1.0}, "rmax-rm, v_max 1"),
            Variant("rmax-rm", {**_VI, "v_max": 10.0}, "rmax-rm, v_max 10"),
        ),
    ),
    "as-described": Protocol(
        name="as-described",
        about="Slips (0.2) in training, decorations end the episode at no cost, episodes of at "
        "most 1000 steps, the paper's rules (each real sample counts once, t_env 39, t_task 1, "
        "R_max 1); the greedy policy is evaluated exactly every 1000 steps, and the step is the "
        "first of three evaluations in a row within 5 % of the optimum.",
        world={},
        stop=Exact(within=0.05, in_a_row=3),
        evaluate_every=1000,
        max_steps=2_000_000,
        variants=tuple(Variant(name) for name in COLUMN_OF),
    ),
}


class Job(NamedTuple):
    """One run."""

    protocol: str
    problem: str
    variant: Variant
    seed: int


class Outcome(NamedTuple):
    """What came of it."""

    steps: int
    at_budget: bool
    seconds: float


def run(job: Job) -> Outcome:
    protocol = PROTOCOLS[job.protocol]
    done = qrmax.train(
        job.variant.agent,
        qrmax.make(job.problem, **protocol.world),
        seed=job.seed,
        stop=protocol.stop,
        evaluate_every=protocol.evaluate_every,
        max_steps=protocol.max_steps,
        **job.variant.settings,
    )
    return Outcome(done.steps, done.reason == "budget", done.seconds)


def jobs(protocol: Protocol, problems: Sequence[str], seeds: int) -> Iterator[Job]:
    variants = {variant.name: variant for variant in (*protocol.variants, *protocol.compared)}
    for problem in problems:
        for variant in variants.values():
            for seed in range(seeds):
                yield Job(protocol.name, problem, variant, seed)


def run_all(todo: Sequence[Job], workers: int) -> dict[Job, Outcome]:
    done: dict[int, Outcome] = {}
    began = shown = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        for number, outcome in enumerate(pool.map(run, todo, chunksize=2)):
            done[number] = outcome
            now = time.monotonic()
            if now - shown > 5.0:
                shown = now
                left = (now - began) / len(done) * (len(todo) - len(done))
                print(f"{len(done)} of {len(todo)} runs, {left:.0f} s left", file=sys.stderr)
    return {job_key(todo[number]): outcome for number, outcome in done.items()}


def job_key(job: Job) -> Any:
    return (job.problem, job.variant.name, job.seed)


def cell(outcomes: Sequence[Outcome]) -> tuple[str, float | None]:
    """Mean and standard deviation of the runs that got there, and how many did not.

    The mean is given back only where all did: the others say nothing but that it is larger.
    """
    reached = [outcome.steps for outcome in outcomes if not outcome.at_budget]
    missed = len(outcomes) - len(reached)
    if not reached:
        return f"{missed} of {len(outcomes)} at the budget", None
    spread = statistics.stdev(reached) if len(reached) > 1 else 0.0
    text = f"{statistics.mean(reached):,.0f} ± {spread:,.0f}"
    if missed:
        return f"{text} ({missed} of {len(outcomes)} at the budget)", None
    return text, statistics.mean(reached)


def table(
    protocol: Protocol,
    variants: Sequence[Variant],
    rows: Sequence[dict[str, str]],
    results: dict[Any, Outcome],
    seeds: int,
) -> Iterator[str]:
    compare = protocol.name == "as-published"  # elsewhere there is nothing to be off from
    head = [f"{v.name}: paper | ours" + (" | off by" if compare else "") for v in variants]
    yield "| problem | " + " | ".join(head) + " |"
    yield "|---|" + ("---:|---:|---:|" if compare else "---:|---:|") * len(variants)
    close = dict.fromkeys((variant.name for variant in variants), 0)
    for row in rows:
        cells = []
        for variant in variants:
            problem = f"office/{row['map']}/{row['task']}"
            outcomes = [results[problem, variant.name, seed] for seed in range(seeds)]
            text, mean = cell(outcomes)
            paper = int(row[COLUMN_OF[variant.agent]])
            off = None if mean is None else mean / paper - 1.0
            cells.append(f"{paper:,} | {text}")
            if compare:
                cells.append("" if off is None else f"{off:+.1%}")
            close[variant.name] += off is not None and abs(off) <= 0.05
        yield f"| {row['map']} {row['task']} | " + " | ".join(cells) + " |"
    if compare:
        counts = [f"| | {close[name]} of {len(rows)} within 5 %" for name in close]
        yield "| | " + " | ".join(counts) + " |"


def commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def report(
    protocol: Protocol, rows: list[dict[str, str]], results: dict[Any, Outcome], seeds: int
) -> str:
    command = f"python bench/table4.py --protocol {protocol.name} --seeds {seeds}"
    lines = [
        f"# Table 4, {protocol.name}",
        "",
        "Steps until the greedy policy is optimal (see below), beside the paper's.",
        "",
        protocol.about,
        "",
        f"Made by `{command}` at commit {commit()}; seeds 0 to {seeds - 1}; mean ± standard "
        f"deviation of the runs that got there. Where some had not by the budget of "
        f"{protocol.max_steps:,} steps, the cell says how many.",
    ]
    for title, chosen in groups(protocol):
        lines += ["", f"## {title}", ""]
        lines += [f"- {v.name}: {settings(v)}" for v in chosen]
        lines += ["", *table(protocol, chosen, rows, results, seeds)]
    return "\n".join(lines) + "\n"


def groups(protocol: Protocol) -> Iterator[tuple[str, Sequence[Variant]]]:
    known = [v for v in protocol.variants if agent_class(v.agent).knows_machine]
    yield "Learners that do not know the machine", [v for v in protocol.variants if v not in known]
    yield "Learners that know it", known
    if protocol.compared:
        yield "R-Max and R-MaxRM with two values for the unknown", protocol.compared


def settings(variant: Variant) -> str:
    given = [f"{name} {value}" for name, value in variant.settings.items()]
    return ", ".join(given) or "default settings"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", choices=PROTOCOLS, default="as-published")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    protocol = PROTOCOLS[options.protocol]
    with PAPER.open() as file:
        rows = [
            row for row in csv.DictReader(file) if options.only in f"{row['map']}/{row['task']}"
        ]
    for name in COLUMN_OF:
        warm_up(name, published=True)  # so that workers find everything compiled
    problems = [f"office/{row['map']}/{row['task']}" for row in rows]
    results = run_all(list(jobs(protocol, problems, options.seeds)), options.workers)
    text = report(protocol, rows, results, options.seeds)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
