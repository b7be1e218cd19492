"""DQN and DQN-RM on a line: what they learn, remember, draw and keep."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

import qrmax
from qrmax import Edge, RewardMachine
from qrmax.agents.base import Sizes
from qrmax.agents.dqn import DQN
from qrmax.agents.registry import make_agent, make_config
from qrmax.errors import CheckpointError, ModelError, ObservationError
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Step
from qrmax.seeding import stream, stream_at
from qrmax.training.checkpoint import _check_arrays
from small_runs import assert_same_arrays, session_of

NEEDED = "needs PyTorch and Stable-Baselines3: make dqn"
torch = pytest.importorskip("torch", reason=NEEDED)
pytest.importorskip("stable_baselines3", reason=NEEDED)

LEFT, RIGHT = range(2)
GO, HAS_A, DONE = range(3)
NOTHING, A, B = range(3)  # labels
END = 8.0  # of the line
BOX = Observations([0.0], [END])
QUICK = {
    "learning_rate": 2e-3,
    "learning_starts": 100,
    "train_every": 2,
    "target_update_interval": 50,
    "exploration_steps": 1000,
    "epsilon_end": 0.1,
}
AT_RANDOM = {"epsilon_end": 1.0}


class Errand:
    """The task: A, which is at the left end, then B, which is at the right one."""

    machine = RewardMachine(
        [Edge("go", "a", "has_a"), Edge("has_a", "b", "done", 1.0)],
        initial="go",
        success=["done"],
    )
    labels = (frozenset[str](), frozenset({"a"}), frozenset({"b"}))
    table = machine.table(labels)


class Line:
    """A line from 0 to 8, walked by an agent in steps of 1 that are not quite exact."""

    def __init__(self, agent: DQN, *, limit: int = 40, seed: int = 7) -> None:
        self.agent = agent
        self.limit = limit
        self.rng = stream(seed, "world")
        self.lengths: list[int] = []  # of the episodes that have ended; the limit where cut off
        self.begin()

    def begin(self) -> None:
        self.x, self.q, self.age = END / 2, GO, 0
        self.agent.begin_episode(self.see(NOTHING), self.q)

    def see(self, label: int) -> Any:
        return self.agent.perceive([self.x], label)

    def walk(self, steps: int) -> Line:
        """Act and learn."""
        for _ in range(steps):
            s, q = self.see(NOTHING), self.q
            a = self.agent.act(s, q)
            step = self.take(a)
            self.agent.update(s, q, a, step)
            if step.terminated or step.truncated:
                self.lengths.append(self.age)
                self.begin()
        return self

    def take(self, a: int) -> Step:
        length = 0.9 + 0.2 * self.rng.random()
        self.x = min(max(self.x + (length if a == RIGHT else -length), 0.0), END)
        label = A if self.x < 1.0 else B if self.x > END - 1.0 else NOTHING
        table, q = Errand.table, self.q
        self.q, self.age = int(table.next_state[q, label, 0]), self.age + 1
        terminated = bool(table.terminal[self.q])
        r_task, cut = float(table.reward[q, label, 0]), self.age == self.limit
        return Step(self.see(label), self.q, label, 0.0, r_task, terminated, cut, False)

    def state(self) -> dict[str, np.ndarray]:
        """All that the agent has learned, where its stream stands, and where it is."""
        where = [self.x, self.q, self.age, hash(str(self.agent.rng.position()))]
        return {**self.agent.snapshot(), "where": np.array(where)}


def agent_of(name: str = "dqn", seed: int = 7, **settings: Any) -> DQN:
    config = make_config(name, {**QUICK, **settings})
    agent = make_agent(name, Sizes(0, 3, 2), config, stream(seed, "agent"), Errand(), BOX)
    assert isinstance(agent, DQN)
    return agent


def lesson(
    agent: DQN, x: float, q: int, a: int, to: float, q_next: int, label: int, **more: Any
) -> None:
    """Have an agent learn from one step."""
    step = Step(agent.perceive([to], label), q_next, label, 0.0, 0.0, False, False, False)
    agent.update(agent.perceive([x], NOTHING), q, a, step._replace(**more))


def remembered(agent: DQN) -> np.ndarray:
    """The transitions, a row for each: x and q, x' and q', the action, the reward, the end."""
    return agent.snapshot()["transitions"].T


def length_of_the_way(agent: DQN) -> int:
    """Steps of the greedy policy to the end; 40 where it does not come there."""
    line = Line(agent, limit=40)
    policy = agent.recommendation()
    while line.age < 40 and line.q != DONE:
        line.take(int(policy.actions([[line.x]], [line.q])[0]))
    return line.age


# --- learning


@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
def test_a_small_problem_is_learned_and_its_values_are_the_true_ones(name: str) -> None:
    agent = Line(agent_of(name, **AT_RANDOM), limit=100).walk(2500).agent
    assert length_of_the_way(agent) <= 12  # 4 to the left, 7 to the right
    one_step_before_b = agent.values(agent.perceive([6.5], NOTHING)[None], np.array([HAS_A]))[0]
    assert one_step_before_b[RIGHT] == pytest.approx(1.0, abs=0.1)
    assert one_step_before_b[LEFT] == pytest.approx(0.9**2, abs=0.1)


def test_what_is_learned_is_made_use_of() -> None:
    line = Line(agent_of("dqn-rm")).walk(1500)
    assert np.mean(line.lengths[-10:]) < 20 < np.mean(line.lengths[:5])


def test_an_agent_that_knows_the_machine_learns_what_it_has_never_done() -> None:
    """At B with A, that is: these steps are all taken without."""
    plain, told = agent_of("dqn"), agent_of("dqn-rm")
    for agent in (plain, told):
        for _ in range(60):
            for x in range(2, 8):
                label = B if x == 7 else NOTHING
                lesson(agent, float(x), GO, RIGHT, float(x + 1), GO, label)
    values = [
        agent.values(agent.perceive([7.0], NOTHING)[None], np.array([HAS_A]))[0, RIGHT]
        for agent in (plain, told)
    ]
    assert values[0] < 0.5 < 0.9 < values[1]


def test_the_networks_target_is_renewed_now_and_then() -> None:
    line = Line(agent_of(target_update_interval=150)).walk(149)
    before = line.agent.snapshot()
    after = line.walk(1).agent.snapshot()
    later = line.walk(149).agent.snapshot()
    for i in range(6):
        network, target = f"network.{i}", f"target.{i}"
        assert not (before[network] == before[target]).all()
        assert not (after[target] == before[target]).all()
        assert (later[target] == after[target]).all()
    again = line.walk(1).agent.snapshot()
    assert not (again["target.0"] == later["target.0"]).all()


def test_nothing_is_learned_before_it_starts_and_then_at_every_so_many_steps() -> None:
    line = Line(agent_of(learning_starts=30, train_every=7, gradient_steps=3))
    trained = [int(line.walk(1).agent.snapshot()["adam.step.0"]) for _ in range(60)]
    at = [step for step, (before, now) in enumerate(pairwise([0, *trained]), 1) if before != now]
    assert at == [35, 42, 49, 56]
    assert trained[-1] == 3 * 4


# --- remembering


def test_a_step_is_remembered_as_it_was_seen() -> None:
    agent = agent_of()
    lesson(agent, 6.0, HAS_A, RIGHT, END, DONE, B, r_env=-0.25, r_task=1.0, terminated=True)
    assert remembered(agent).tolist() == [[0.5, HAS_A, 1.0, DONE, RIGHT, 0.75, 1]]


def test_an_agent_that_knows_the_machine_remembers_a_step_for_each_state_that_is_not_terminal() -> (
    None
):
    agent = agent_of("dqn-rm")
    lesson(agent, 6.0, GO, RIGHT, END, GO, B, r_env=-0.25)
    assert remembered(agent).tolist() == [
        [0.5, GO, 1.0, GO, RIGHT, -0.25, 0],
        [0.5, HAS_A, 1.0, DONE, RIGHT, 0.75, 1],
    ]


@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
def test_a_step_that_is_cut_off_is_not_the_end(name: str) -> None:
    agent = agent_of(name)
    lesson(agent, 5.0, HAS_A, RIGHT, 6.0, HAS_A, NOTHING, truncated=True)
    assert not remembered(agent)[:, -1].any()


def test_where_the_world_ends_it_ends_for_every_machine_state() -> None:
    agent = agent_of("dqn-rm")
    lesson(agent, 5.0, GO, RIGHT, 6.0, GO, NOTHING, terminated=True, world_ended=True)
    assert remembered(agent)[:, -1].tolist() == [1, 1]


def test_values_are_what_the_network_says() -> None:
    agent = Line(agent_of(learning_starts=10)).walk(100).agent
    s = np.array([agent.perceive([x], NOTHING) for x in (0.5, 3.0, 6.5)])
    q = np.array([GO, HAS_A, GO])
    with torch.no_grad():
        seen = {"state": torch.from_numpy(s), "task": torch.from_numpy(q)}
        said = agent.learner.q_net(seen).numpy()
    assert agent.values(s, q) == pytest.approx(said, rel=1e-4, abs=1e-6)


def test_a_batch_is_what_the_buffer_holds() -> None:
    agent = Line(agent_of()).walk(50).agent
    replay = agent.learner.replay_buffer
    ours = replay.sample(50)
    rows = {tuple(row) for row in remembered(agent).tolist()}
    seen = [part[key] for part in ours[:3:2] for key in ("state", "task")]
    columns = (*seen, ours.actions, ours.rewards, ours.dones)
    drawn = torch.cat([column.float() for column in columns], dim=1).tolist()
    assert {tuple(row) for row in drawn} <= rows
    assert len({tuple(row) for row in drawn}) > 10


def test_the_oldest_is_forgotten_first() -> None:
    agent = agent_of(buffer_size=5, batch_size=5)
    for x in range(8):
        lesson(agent, float(x), GO, RIGHT, float(x + 1), GO, NOTHING)
    assert sorted((remembered(agent)[:, 0] + 1) * END / 2) == pytest.approx([3, 4, 5, 6, 7])


def test_an_observation_that_is_none_is_an_error() -> None:
    agent = agent_of()
    with pytest.raises(ObservationError, match="nan in dimension 0"):
        agent.perceive([np.nan], NOTHING)
    with pytest.raises(ObservationError, match="has 2 numbers; needed: 1"):
        agent.recommendation().actions([[1.0, 2.0]], [GO])


# --- chance


def test_epsilon_falls_along_a_line_and_is_how_often_any_action_is_taken() -> None:
    line = Line(agent_of(epsilon_start=0.8, epsilon_end=0.2, exploration_steps=60))
    agent, seen = line.agent, []
    for _ in range(4):
        seen.append(agent.epsilon)
        line.walk(30)
    assert seen == pytest.approx([0.8, 0.5, 0.2, 0.2])
    s = agent.perceive([5.0], NOTHING)
    best = int(agent.values(s[None], np.array([GO]))[0].argmax())
    other = np.mean([agent.act(s, GO) != best for _ in range(2000)])
    assert other == pytest.approx(0.1, abs=0.03)


def test_the_same_seed_does_the_same_and_another_seed_does_not() -> None:
    first, again, other = (Line(agent_of(seed=seed)) for seed in (5, 5, 6))
    assert_same_arrays(first.state(), again.state())
    assert (first.state()["network.0"] != other.state()["network.0"]).all()
    assert_same_arrays(first.walk(200).state(), again.walk(200).state())


def test_agents_in_one_process_do_not_disturb_each_other() -> None:
    alone = Line(agent_of()).walk(300).state()
    one, other = Line(agent_of()), Line(agent_of("dqn-rm", seed=3, hidden=32), seed=3)
    for _ in range(30):
        one.walk(10)
        other.walk(7)
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 (what others do must not matter)
    assert_same_arrays(one.state(), alone)


def test_no_global_generator_is_touched() -> None:
    def states() -> list[str]:
        numpy = np.random.get_state(legacy=False)  # noqa: NPY002 (it is what must not change)
        return [str(random.getstate()), str(numpy), str(torch.get_rng_state().tolist())]

    with np.printoptions(threshold=10**6):
        before = states()
        line = Line(agent_of())
        assert states() == before
        line.walk(200)
        assert states() == before
        line.agent.recommendation().actions([[1.0]], [GO])
        assert states() == before


def test_making_an_agent_does_not_move_its_stream() -> None:
    untouched = stream(7, "agent").position()
    assert agent_of().rng.position() == untouched


def test_one_thread_is_enough() -> None:
    torch.set_num_threads(2)
    agent_of()
    assert torch.get_num_threads() == 1


# --- keeping


@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
@pytest.mark.parametrize("buffer_size", [200, 5000], ids=["forgetting", "remembering all"])
@pytest.mark.parametrize("steps", [0, 50, 300], ids=["new", "before learning", "learning"])
def test_a_restored_agent_goes_on_bit_for_bit(name: str, buffer_size: int, steps: int) -> None:
    settings = {"buffer_size": buffer_size, "target_update_interval": 70}
    original = Line(agent_of(name, **settings)).walk(steps)
    kept = original.agent.snapshot()
    bytes_kept = {key: array.tobytes() for key, array in kept.items()}
    copy = Line(agent_of(name, seed=99, **settings))
    copy.walk(20)  # what it has learned itself is forgotten
    copy.agent.restore(kept)
    copy.agent.rng = stream_at(original.agent.rng.position())
    copy.rng = stream_at(original.rng.position())
    copy.x, copy.q, copy.age = original.x, original.q, original.age
    assert_same_arrays(copy.state(), original.state())
    assert_same_arrays(original.walk(300).state(), copy.walk(300).state())
    assert {key: array.tobytes() for key, array in kept.items()} == bytes_kept  # no views


def test_an_agent_that_is_new_keeps_arrays_of_the_same_shapes_but_for_what_it_remembers() -> None:
    def shapes(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: (a.dtype, a.shape) for name, a in arrays.items() if name != "transitions"}

    new, old = agent_of().snapshot(), Line(agent_of()).walk(200).agent.snapshot()
    assert shapes(new) == shapes(old)
    assert new["transitions"].shape == (7, 0)
    assert old["transitions"].shape == (7, 200)


@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
def test_a_run_that_is_broken_off_goes_on_from_its_file_bit_for_bit(
    name: str, tmp_path: Path
) -> None:
    def run(steps: int) -> qrmax.Run:
        problem = qrmax.make("continuous/frozen-lake/ab")
        told = {"stop": "budget", "evaluate_every": 1000, "learning_starts": 100}
        return qrmax.train(name, problem, seed=7, max_steps=steps, **told)

    whole, half = run(600), run(300)
    half.save(tmp_path / "half.run")
    resumed = qrmax.load(tmp_path / "half.run").resume(max_steps=600)
    ours, theirs = session_of(whole), session_of(resumed)
    assert_same_arrays(ours.agent.snapshot(), theirs.agent.snapshot())
    assert ours.agent.rng.position() == theirs.agent.rng.position()
    assert ours.player.rng.position() == theirs.player.rng.position()


def test_a_checkpoint_takes_what_has_grown_and_nothing_of_another_shape() -> None:
    kept = load(save(Line(agent_of()).walk(150).agent.snapshot()))
    stored = {f"agent.{name}": array for name, array in kept.items()}
    fresh = agent_of()
    _check_arrays(fresh.snapshot(), stored)
    fresh.restore(kept)
    assert_same_arrays(fresh.snapshot(), kept)
    for name, array in kept.items():
        other = {**stored, f"agent.{name}": np.zeros((*array.shape[:-1], 3, 3), array.dtype)}
        with pytest.raises(CheckpointError, match=name):
            _check_arrays(fresh.snapshot(), other)
    wider = {**stored, "agent.network.0": np.zeros((64, 5), dtype=np.float32)}
    with pytest.raises(CheckpointError, match=r"network\.0"):
        _check_arrays(fresh.snapshot(), wider)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("place", [7]),
        ("place", [-1]),
        ("steps", [-1]),
        ("transitions", np.zeros((7, 60), dtype=np.float32)),
        ("transitions", np.full((7, 20), 2, dtype=np.float32)),
        ("transitions", np.full((7, 20), 0.5, dtype=np.float32)),
    ],
)
def test_what_cannot_have_been_is_refused(name: str, value: Any) -> None:
    agent = agent_of(buffer_size=50)
    kept = Line(agent).walk(20).agent.snapshot()
    agent.restore(kept)
    with pytest.raises(ModelError, match="replay buffer"):
        agent.restore({**kept, name: np.asarray(value)})


# --- what it says


@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
def test_the_policy_acts_as_the_agent_does_without_chance(name: str) -> None:
    agent = agent_of(name, epsilon_start=0.0, epsilon_end=0.0)
    policy = agent.recommendation()
    x, q = np.meshgrid(np.linspace(-1.0, END + 1.0, 50), [GO, HAS_A, DONE])
    x, q = x.reshape(-1, 1), q.reshape(-1)
    for _ in range(3):
        acts = [agent.act(agent.perceive(each, NOTHING), p) for each, p in zip(x, q, strict=True)]
        actions = policy.actions(x, q)
        assert actions.dtype == np.int32
        assert actions.tolist() == acts
        assert [policy.action(each, NOTHING, p) for each, p in zip(x, q, strict=True)] == acts
        Line(agent).walk(150)  # the policy is that of the network as it is
    assert agent.known() is None
