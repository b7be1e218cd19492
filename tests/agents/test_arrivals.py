"""The machine's samples counted by label: what one state has taught holds in all with its label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrmax
from learners import trial
from qrmax import Edge, Problem, RewardMachine, TabularMDP
from qrmax.agents.base import LABELS_OBSERVED, MACHINE_KNOWN, Q_OBSERVED
from qrmax.agents.registry import agent_names, make_config
from qrmax.errors import AgentError, ModelError
from qrmax.problems.simulator import Step
from qrmax.studies.plain_settings import as_data
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

KEY, EXIT = 1, 2  # labels of an errand
two_learners = pytest.mark.parametrize("name", ["qrmax", "qr-ucb"])


def taught(name: str, *steps: tuple[int, int, Step], **told: Any) -> Any:
    """An agent on an errand that has learned from steps (s, q, step)."""
    agent: Any = trial(name, errand(), task_by="label", **told).agent
    for s, q, step in steps:
        agent.update(s, q, LEFT, step)
    return agent


def to(s: int, q: int, label: int, r_task: float = 0.0, *, end: str = "") -> Step:
    return Step(s, q, label, 0.0, r_task, bool(end), False, end == "world")


@two_learners
def test_what_a_label_does_is_known_in_each_state_that_has_shown_it(name: str) -> None:
    agent = taught(name, (1, 0, to(0, 1, KEY, 0.5)), (3, 1, to(2, 1, KEY)))
    task = agent.planner.task
    assert task.reward[0, [0, 2]].tolist() == [0.5, 0.5]  # in q = 0 only state 0 was entered
    assert task.next_state[0, [0, 2], 0].tolist() == [1, 1]
    assert task.reward[1, [0, 2]].tolist() == [0.0, 0.0]
    assert np.isinf(task.reward[:, [1, 3]]).all()  # whose labels are not known


@two_learners
def test_samples_of_states_with_one_label_are_pooled(name: str) -> None:
    steps = [(1, 0, to(0, 1, KEY, 1.0)), (1, 0, to(2, 0, KEY))] * 2
    agent = taught(name, *steps[:3], t_task=4)
    assert np.isinf(agent.planner.task.reward[0, 0])
    agent.update(1, 0, LEFT, steps[3][2])
    for s in (0, 2):
        assert agent.planner.task.reward[0, s] == 0.5
        assert sorted(agent.planner.task.prob[0, s].tolist()) == [0.5, 0.5]
    assert agent.task.counts.n[0, KEY] == 4


@two_learners
def test_a_machine_that_has_ended_an_episode_ends_it_everywhere(name: str) -> None:
    agent = taught(
        name, (1, 0, to(0, 0, KEY)), (2, 1, to(3, 2, EXIT, 1.0, end="machine")), (0, 0, to(1, 0, 0))
    )
    assert agent.planner.tables.done[2].tolist() == [True, True, False, True]  # 2 was not entered
    assert not agent.planner.tables.done[:2].any()


@two_learners
def test_where_the_world_ends_an_episode_nothing_follows_for_other_places(name: str) -> None:
    agent = taught(name, (1, 0, to(0, 0, KEY)), (2, 1, to(3, 2, EXIT, 1.0, end="world")))
    assert agent.planner.tables.done[2].tolist() == [False, False, False, True]


@two_learners
def test_a_state_with_two_labels_is_refused(name: str) -> None:
    agent = taught(name, (1, 0, to(0, 1, KEY)))
    with pytest.raises(AgentError, match=r"state 0 was entered with label number 2 and.* number 1"):
        agent.update(1, 0, LEFT, to(0, 1, EXIT))
    plain: Any = trial(name, errand()).agent
    for label in (KEY, EXIT):
        plain.update(1, 0, LEFT, to(0, 1, label))


def keys_everywhere() -> Problem:
    """A ring of ten cells with two labels; a key is found one time in two."""
    cells = np.arange(10)
    succ = np.stack([(cells - 1) % 10, (cells + 1) % 10], axis=1)[:, :, None]
    machine = RewardMachine(
        [Edge("go", "key", "has_key", probability=0.5), Edge("has_key", "!key", "out", 1.0)],
        initial="go",
        success=["out"],
    )
    return Problem(
        TabularMDP(succ, np.ones(succ.shape), start=1),
        machine,
        [(), ["key"]],
        (cells % 3 == 0).astype(int),
        max_episode_steps=30,
    )


@two_learners
def test_all_states_with_a_label_have_its_estimate(name: str) -> None:
    tried: Any = trial(name, keys_everywhere(), task_by="label", t_task=6, t_env=3)
    for _ in range(12):
        agent = tried.rush(50).agent
        place, task = agent.arrivals.place, agent.planner.task
        for label in (0, 1):
            alike = np.flatnonzero(place == label)
            for array in (task.reward, task.prob, task.next_state * (task.prob > 0.0)):
                assert (array[:, alike] == array[:, alike[:1]]).all()
    assert (place == tried.simulator.world.label).all()
    by_state: Any = trial(name, keys_everywhere(), t_task=6, t_env=3).rush(600).agent
    known = [np.isfinite(each.planner.task.reward).sum() for each in (agent, by_state)]
    assert known[0] > known[1]


@two_learners
def test_a_run_by_label_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    told: Any = {"task_by": "label", "t_task": 3, "stop": "budget", "progress": False}
    run = qrmax.train(name, keys_everywhere(), max_steps=90, **told)
    run.save(tmp_path / "run")
    again = qrmax.load(tmp_path / "run")
    for table, array in run.agent.snapshot().items():
        assert (again.agent.snapshot()[table] == array).all()
    assert again.agent.config.information == LABELS_OBSERVED


@two_learners
def test_a_run_by_label_is_resumed(name: str) -> None:
    problem = keys_everywhere()
    whole = trial(name, problem, task_by="label", t_task=3, t_env=3).rush(100)
    fresh = trial(name, problem, task_by="label", t_task=3, t_env=3)
    resumed = whole.resumed(fresh.agent)
    assert resumed.rush(100).state() == whole.rush(100).state()


@pytest.mark.parametrize(
    ("array", "spoil"),
    [
        ("arrivals.place", lambda a: np.full_like(a, 2)),
        ("arrivals.place", lambda a: np.full_like(a, -2)),
        ("arrivals.place", lambda a: np.full_like(a, -1)),
        ("arrivals.place", lambda a: a[:3]),
        ("arrivals.place", lambda a: a.astype(np.int64)),
        ("arrivals.ends", lambda a: a.astype(np.int32)),
        ("arrivals.ends", lambda a: a[:1]),
        ("task.n", lambda a: a.ravel()),
        ("task.n", lambda a: np.zeros((len(a), 7), a.dtype)),
    ],
)
@two_learners
def test_arrays_that_no_run_leads_to_are_refused(name: str, array: str, spoil: Any) -> None:
    problem = keys_everywhere()
    arrays = trial(name, problem, task_by="label", t_task=3).rush(60).agent.snapshot()
    arrays[array] = spoil(arrays[array])
    with pytest.raises(ModelError):
        trial(name, problem, task_by="label", t_task=3).agent.restore(arrays)


# --- the facts


def test_every_agent_declares_what_it_is_told() -> None:
    found = {name: make_config(name, {}).information for name in agent_names()}
    for name, information in found.items():
        told = name in ("qrm", "ucbvi-prm") or "rm" in name.split("-")
        unknown = LABELS_OBSERVED if name == "effects-qrmax" else Q_OBSERVED
        assert information == (MACHINE_KNOWN if told else unknown), name
    for name in ("qrmax", "qr-ucb", "qr-eb", "qr-psrl"):
        assert make_config(name, {"task_by": "label"}).information == LABELS_OBSERVED
    assert make_config("qr-eb-rm", {"task_by": "label"}).information == MACHINE_KNOWN
    assert make_config("bucket-qrmax", {"event_aware": True}).information == LABELS_OBSERVED


def test_the_ids_of_runs_that_count_by_state_are_what_they_were() -> None:
    for name in ("qrmax", "qr-ucb"):
        assert "task_by" not in as_data(make_config(name, {}))
        assert as_data(make_config(name, {"task_by": "label"}))["task_by"] == "label"


def test_agents_that_know_the_machine_do_the_same_by_label() -> None:
    runs: Any = [
        trial("qr-ucb-rm", errand(slip=0.2, limit=15), task_by=by).rush(400).agent
        for by in ("state", "label")
    ]
    assert (runs[0].seen.arrays.n == runs[1].seen.arrays.n).all()
    assert (runs[0].seen.arrays.n[:, RIGHT] > 0).any()
