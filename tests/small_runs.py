"""Runs so small that a test can have many of them, and what it means that two are the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import qrmax
from qrmax.agents.registry import agent_class, agent_names
from qrmax.training.trainer import Session

LEFT, RIGHT = 0, 1


class Learner(NamedTuple):
    """An agent and settings with which it learns a small problem quickly."""

    name: str
    settings: dict[str, Any]

    def train(self, problem: Any, **options: Any) -> qrmax.Run:
        return qrmax.train(self.name, problem, **{**self.settings, **options})


REVISING = [
    *("qr-ucb", "qr-eb-rm", "qr-effects", "qr-effects-rm", "qr-psrl"),
    *("mbie", "qr-mbie-eb-rm", "ucrl2-rm-l", "ucrl2-rm-b"),
]
WITH_A_HORIZON = [name for name in agent_names() if agent_class(name).has_horizon]
LEARNERS = {
    "q-learning": Learner("q-learning", {}),
    "qrm": Learner("qrm", {}),
    "rmax": Learner("rmax", {"t_env": 3}),
    "rmax-rm": Learner("rmax-rm", {"t_env": 3}),
    "qrmax": Learner("qrmax", {"t_env": 3}),
    "qrmax-rm": Learner("qrmax-rm", {"t_env": 3}),
    **{name: Learner(name, {"gamma": 0.9, "horizon": 20}) for name in WITH_A_HORIZON},
    **{name: Learner(name, {}) for name in REVISING},
    "rmax-published": Learner("rmax-published", {"t_env": 3}),
    "rmax-rm-published": Learner("rmax-rm-published", {"t_env": 3}),
    "qrmax-published": Learner("qrmax-published", {"t_env": 3}),
    "qrmax-rm-published": Learner("qrmax-rm-published", {"t_env": 3}),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def fetch_task(chance: float = 1.0) -> qrmax.RewardMachine:
    """Fetch a key, which may have to be tried several times; bring it to the door."""
    edges = [
        qrmax.Edge("start", "key", "has_key", probability=chance),
        qrmax.Edge("has_key", "door", "done", 1.0),
    ]
    return qrmax.RewardMachine(edges, initial="start", success=["done"], name="fetch")


def corridor(
    length: int = 6,
    *,
    slip: float = 0.1,
    limit: int | None = 30,
    start: int = 2,
    chance: float = 1.0,
    bonus: float = 0.0,
) -> qrmax.Problem:
    """A key at the left end, the door at the right one; a move slips into the other direction.

    Each move to the right pays a `bonus`.
    """
    here = np.arange(length)
    to = np.stack([np.maximum(here - 1, 0), np.minimum(here + 1, length - 1)], axis=1)
    succ = np.stack([to, to[:, ::-1]], axis=2)
    prob = np.empty(succ.shape)
    prob[:] = [1.0 - slip, slip]
    reward = np.where(np.arange(2)[None, :, None] == RIGHT, bonus, 0.0) * np.ones(succ.shape)
    label = np.zeros(length, dtype=int)
    label[0], label[-1] = 1, 2
    return qrmax.Problem(
        qrmax.TabularMDP(succ, prob, reward, start=start, coordinates=here[:, None]),
        fetch_task(chance),
        [(), ("key",), ("door",)],
        label,
        max_episode_steps=limit,
        name="corridor",
    )


def fetching(problem: qrmax.Problem) -> np.ndarray:
    """The policy that fetches the key and brings it to the door."""
    policy = np.full((problem.n_states, problem.n_task_states), RIGHT)
    policy[:, 0] = LEFT
    return policy


def never_fetching(problem: qrmax.Problem) -> np.ndarray:
    """The policy that goes to the door without the key."""
    return np.full((problem.n_states, problem.n_task_states), RIGHT)


def session_of(run: qrmax.Run) -> Session:
    """What a run is made of."""
    return run._session


def assert_same_run(one: qrmax.Run, other: qrmax.Run) -> None:
    """Both ran alike and would go on alike, to the last bit; only the time they took may differ."""
    assert (one.steps, one.trained, one.reason) == (other.steps, other.trained, other.reason)
    assert one.curve == other.curve
    assert repr(one) == repr(other)
    ours, theirs = session_of(one), session_of(other)
    assert ours.agent.config == theirs.agent.config
    assert type(ours.agent) is type(theirs.agent)
    assert_same_arrays(ours.agent.snapshot(), theirs.agent.snapshot())
    assert (ours.progress.streak, ours.progress.first) == (
        theirs.progress.streak,
        theirs.progress.first,
    )
    for name, stream in ours.streams.items():
        assert stream.position() == theirs.streams[name].position(), name
    if isinstance(ours.domain.task, qrmax.Problem):
        assert ours.player.state.tolist() == theirs.player.state.tolist()


def assert_same_arrays(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """The same names, kinds, shapes and bits."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert (array.dtype, array.shape) == (other[name].dtype, other[name].shape), name
        assert array.tobytes() == other[name].tobytes(), name
