"""Results that a change of the code's order must not change: golden values, and how they are made.

    python tests/golden.py

writes `data/golden.json` anew, which is right only where a change of results is wanted.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import qrmax
from qrmax.agents.model_based import ModelBased
from qrmax.agents.registry import agent_class, agent_names, default_settings
from qrmax.studies.study import RunSpec, config_id
from qrmax.training.run import finish, make_session

FILE = Path(__file__).parent / "data" / "golden.json"
STUDIES = {
    "smoke": ("exact", "as-described", "as-published"),
    "paper/table1": ("exact", "as-described", "as-published"),
    "paper/table4": ("exact", "as-described", "as-published"),
    "paper/table4-unknown": ("exact", "as-described", "as-published"),
    "paper/table6": ("exact", "as-described", "as-published"),
    "paper/bucket": (None,),
    "paper/bucket-sizes": (None,),
    "paper/bucket-fine": (None,),
    "paper/bucket-published": (None,),
}
TABULAR = [
    {"problem": "office/map0/exp0", "seed": 0, "max_steps": 20_000, "horizon": 50},
    {"problem": "office/map1/exp1", "seed": 1, "max_steps": 20_000, "t_env": 5},
    {"problem": "river-swim/patrol", "seed": 2, "max_steps": 5_000, "stop": "budget"},
]
PLANE = [
    {"problem": "continuous/line/ab", "seed": 0, "max_steps": 10_000, "grid": 20, "t_env": 5},
    {"problem": "continuous/corridor/abc", "seed": 1, "max_steps": 10_000},
    {"problem": "continuous/office/map1/exp1", "seed": 2, "max_steps": 10_000, "t_env": 5},
]


def runs_of(name: str) -> list[Any]:
    """What three runs of an agent come to; each gets those settings that it has."""
    known = default_settings(name)
    found = []
    for trial in PLANE if agent_class(name).perceives else TABULAR:
        options = {key: x for key, x in trial.items() if key in {*ALWAYS, *known}}
        problem = options.pop("problem")
        key = (problem, known["gamma"], known.get("horizon") and options.get("horizon"))
        evaluator = _evaluators.get(key)
        posed = qrmax.make(problem) if evaluator is None else evaluator.problem
        session = make_session(name, posed, evaluator=evaluator, **options)
        _evaluators[key] = session.evaluator
        found.append(summary(finish(session)))
    return found


_evaluators: dict[Any, Any] = {}  # an optimum is found once for all agents


ALWAYS = ("problem", "seed", "max_steps", "stop")


def summary(run: qrmax.Run) -> dict[str, Any]:
    """A run in short: how long it took and what it has learned."""
    rows = [row[:6] for row in run.curve]  # the columns that there were
    curve = [[None if x is None else float(f"{x:.9g}") for x in row] for row in rows]
    gap = None if run.agent.perceives else run.gap  # else it is sampled, which takes seconds
    return {
        "steps": run.steps,
        "trained": run.trained,
        "episodes": run.episodes,
        "reason": run.reason,
        "policy": digest(np.asarray(run.policy, dtype=np.int64).tolist()),
        "curve": digest(curve),
        "gap": gap if gap is None else float(f"{gap:.9g}"),
    }


ENV_AGENTS = ("q-learning", "qrm", "qrmax", "qrmax-rm", "psrl-rm")


def on_an_environment(agent: str) -> dict[str, Any]:
    """A run on a Gymnasium environment."""
    import gymnasium

    env = gymnasium.make("FrozenLake-v1")
    labels = {3: {"corner"}, 15: {"goal"}}
    task = qrmax.TaskWrapper(env, "F(corner & F goal)", labels=lambda seen, _: labels.get(seen, ()))
    return summary(qrmax.train(agent, task, seed=3, max_steps=3_000, stop="budget"))


def digest(data: Any) -> str:
    """Plain data as a short hash."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def run_ids(study: str, protocol: str | None) -> dict[str, str]:
    """The ids of a study's runs, as one hash for each agent's label."""
    ids: dict[str, list[str]] = {}
    for run in qrmax.load_study(study, protocol=protocol).runs():
        ids.setdefault(run.cell.label, []).append(identity(run))
    return {label: digest(found) for label, found in ids.items()}


def identity(run: RunSpec) -> str:
    """The id that a run had when the rules of the published code were a setting of four agents."""
    config = run.config()
    assert config_id(config) == run.id
    if issubclass(agent_class(run.cell.agent), ModelBased):
        plain = run.cell.agent.removesuffix("-published")
        config["settings"]["published"] = plain != run.cell.agent
        config["agent"] = plain
    return config_id(config)


def smoke() -> Iterator[tuple[str, Any]]:
    """The outcomes of the smoke study."""
    with tempfile.TemporaryDirectory() as folder:
        qrmax.sweep("smoke", folder=folder, workers=1, progress=False)
        for row in qrmax.results(folder).iter_rows(named=True):
            yield f"{row['agent']} {row['problem']} {row['seed']}", row["steps"]


TOO_SLOW = ("psrl-exact", "opsrl-exact", "opsrl-published")  # seeded in test_model_sampling.py


def names() -> list[str]:
    """All agents that need nothing but NumPy, and not a minute.

    Those that fit by LAPACK are left out: its last bits depend on the processor.
    """
    left_out = ("dqn", "effects-")
    return [n for n in agent_names() if not n.startswith(left_out) and n not in TOO_SLOW]


def make() -> dict[str, Any]:
    """All golden values."""
    return {
        "runs": {name: runs_of(name) for name in names()},
        "ids": {
            f"{study} {protocol}": run_ids(study, protocol)
            for study, protocols in STUDIES.items()
            for protocol in protocols
        },
        "smoke": dict(smoke()),
        "environments": {name: on_an_environment(name) for name in ENV_AGENTS},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(make(), indent=1) + "\n")
