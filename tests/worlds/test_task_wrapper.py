"""Tasks on environments that are not ours."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import qrmax
from coffee_task import pick_up
from qrmax.errors import GuardError, ParameterError, TaskError

LEFT, DOWN, RIGHT, UP = range(4)  # FrozenLake's actions
COFFEE = {"coffee"}


def there_and_back(**changes: Any) -> qrmax.RewardMachine:
    edges = [qrmax.Edge("go", "edge", "back"), qrmax.Edge("back", "home", "done", 5.0)]
    return qrmax.RewardMachine(edges, initial="go", success=["done"], **changes)


def lake(**changes: Any) -> qrmax.TaskWrapper:
    """FrozenLake, without slips, to its upper right corner (state 3) and back."""
    names = {0: {"home"}, 3: {"edge"}}
    env = gymnasium.make("FrozenLake-v1", **{"is_slippery": False, **changes})
    return qrmax.TaskWrapper(env, there_and_back(), labels=lambda seen, _: names.get(seen, ()))


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")  # it is a wrapper
@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_gymnasiums_checker_has_nothing_to_say_about_a_wrapped_world(name: str) -> None:
    inner = gymnasium.make(name).unwrapped
    env = qrmax.TaskWrapper(inner, there_and_back(), labels=lambda *_: ())
    check_env(env, skip_render_check=True)
    assert env.numbering.size == inner.observation_space.n


def test_the_task_is_done_where_its_machine_says() -> None:
    env = lake()
    env.reset(seed=0)
    rewards = []
    for action in [RIGHT] * 3 + [LEFT] * 3:
        seen, reward, ended, cut, info = env.step(action)
        rewards.append(reward)
    assert rewards == [0.0] * 5 + [5.0]
    assert (ended, cut, info["success"]) == (True, False, True)
    assert info["r_task"] == 5.0
    assert info["label"] == ("home",)
    assert "prob" in info  # what FrozenLake itself tells stays
    assert seen["task"] == env.machine.index("done")


def test_a_task_can_be_a_formula_a_name_or_a_file(tmp_path: Path) -> None:
    qrmax.save_task(there_and_back(), tmp_path / "mine.toml")
    wanted = {
        "F(edge & F home)": qrmax.RewardMachine.from_ltlf("F(edge & F home)"),
        "exp1": qrmax.load_task("exp1"),
        tmp_path / "mine.toml": there_and_back(),
    }
    for task, machine in wanted.items():
        env = qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), task, labels=lambda *_: ())
        assert env.machine.equivalent(machine)
        assert env.observation_space["task"].n == len(machine.states)


def test_gymnasium_makes_another_one_with_the_task_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    qrmax.save_task(there_and_back(), file)
    env = qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), file, labels=lambda *_: ())
    file.unlink()
    assert gymnasium.make(env.spec).get_wrapper_attr("machine").equivalent(there_and_back())


def test_the_environments_own_end_and_reward_stay() -> None:
    env = lake()
    env.reset(seed=0)
    path = [DOWN, DOWN, RIGHT, RIGHT, DOWN, RIGHT]
    outcomes = [env.step(action) for action in path]
    seen, reward, ended, _, info = outcomes[-1]
    assert (seen["state"], reward, ended) == (15, 1.0, True)
    assert (info["r_env"], info["r_task"], info["success"]) == (1.0, 0.0, False)
    assert [outcome[4]["world_ended"] for outcome in outcomes] == [False] * 5 + [True]


def test_the_end_of_the_world_is_told_where_the_task_ends_with_it() -> None:
    """What knows the machine needs both: in another task state only the world would have ended."""
    machine = qrmax.RewardMachine(
        [qrmax.Edge("go", "goal", "done")], initial="go", success=["done"]
    )
    inner = gymnasium.make("FrozenLake-v1", desc=["SG"], is_slippery=False)
    env = qrmax.TaskWrapper(inner, machine, labels=lambda seen, _: {"goal"} if seen == 1 else ())
    assert env.reset(seed=0)[1]["world_ended"] is False
    *_, info = env.step(RIGHT)
    assert (info["success"], info["world_ended"]) == (True, True)


def test_truncation_is_the_environments_own() -> None:
    env = lake(max_episode_steps=2)
    env.reset(seed=0)
    assert [env.step(LEFT)[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_a_new_episode_begins_the_task_anew() -> None:
    env = lake()
    for _ in range(2):
        seen, info = env.reset(seed=0)
        assert seen["task"] == env.machine.index("go")
        assert info["label"] == ("home",)
        for _ in range(3):
            seen, *_ = env.step(RIGHT)
        assert seen["task"] == env.machine.index("back")


def test_the_first_label_is_read_where_the_machine_says_so() -> None:
    edges = [qrmax.Edge("go", "home", "seen_home"), qrmax.Edge("seen_home", "edge", "go")]
    for consume, expected in ((True, 1), (False, 0)):
        machine = qrmax.RewardMachine(edges, initial="go", consume_initial=consume)
        env = qrmax.TaskWrapper(
            gymnasium.make("FrozenLake-v1"), machine, labels=lambda *_: {"home"}
        )
        assert env.reset(seed=0)[0]["task"] == expected


def test_labels_of_the_whole_step_see_where_it_came_from() -> None:
    seen_by_labels = []

    def labels(before: int, action: int, after: int, info: dict[str, Any]) -> set[str]:
        seen_by_labels.append((before, action, after, "prob" in info))
        return {"edge"} if (before, after) == (1, 2) else set()

    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        there_and_back(),
        transition_labels=labels,
    )
    env.reset(seed=0)
    tasks = [env.step(RIGHT)[0]["task"] for _ in range(3)]
    assert tasks == [0, 1, 1]
    assert seen_by_labels == [(0, RIGHT, 1, True), (1, RIGHT, 2, True), (2, RIGHT, 3, True)]


def test_wrapping_agrees_with_the_exact_model() -> None:
    """FrozenLake's own tables, as a problem: the optimal policy does as well as planning says."""
    inner = gymnasium.make("FrozenLake-v1", max_episode_steps=30).unwrapped
    names = {0: "home", 3: "edge"}
    succ, prob, reward = (np.zeros((16, 4, 3), dtype=kind) for kind in (int, float, float))
    terminal = np.zeros(16, dtype=bool)
    for s, actions in inner.P.items():
        for a, outcomes in actions.items():
            for k, (p, target, pays, ends) in enumerate(outcomes):
                succ[s, a, k], prob[s, a, k], reward[s, a, k] = target, p, pays
                terminal[target] |= ends
        prob[s, :, 0] += 1.0 - prob[s].sum(axis=1)
    label = [1 if s == 0 else 2 if s == 3 else 0 for s in range(16)]
    mdp = qrmax.TabularMDP(succ, prob, reward, terminal=terminal, start=0)
    machine = there_and_back()
    problem = qrmax.Problem(mdp, machine, [(), ["home"], ["edge"]], label, max_episode_steps=30)
    policy = qrmax.solve(problem, 0.99).policy
    exact = qrmax.evaluate(problem, policy, 0.99)
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", max_episode_steps=30),
        machine,
        labels=lambda seen, _: {names[seen]} if seen in names else (),
    )
    successes = 0
    for episode in range(1000):
        seen, info = env.reset(seed=episode)
        ended = cut = False
        while not ended and not cut:
            seen, _, ended, cut, info = env.step(policy[seen["state"], seen["task"]])
        successes += info["success"]
    deviation = np.sqrt(exact.success * (1 - exact.success) / 1000)
    assert 0.05 < exact.success < 0.95
    assert abs(successes / 1000 - exact.success) < 5 * deviation


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either labels"),
        ({"labels": lambda *_: (), "transition_labels": lambda *_: ()}, "either labels"),
        ({"task": 7, "labels": lambda *_: ()}, "task is 7; needed: a RewardMachine, a formula"),
        ({"task": "exp77", "labels": lambda *_: ()}, "unknown task 'exp77'"),
        ({"task": "F(edge & ", "labels": lambda *_: ()}, "formula"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(arguments: dict[str, Any], message: str) -> None:
    task = arguments.pop("task", there_and_back())
    with pytest.raises(qrmax.QRMaxError, match=message):
        qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), task, **arguments)


def test_a_label_given_as_text_is_refused() -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"), there_and_back(), labels=lambda *_: "home"
    )
    with pytest.raises(GuardError, match="a label is a set"):
        env.reset(seed=0)


@pytest.mark.parametrize("kind", [bool, np.bool_, int, np.int8])
def test_a_label_given_as_a_mapping_to_booleans_is_the_names_that_are_true(kind: Any) -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        there_and_back(),
        labels=lambda seen, _: {"edge": kind(seen == 3), "home": kind(seen == 0)},
    )
    assert env.reset(seed=0)[1]["label"] == ("home",)
    told = [env.step(2)[-1] for _ in range(3)]
    assert [info["label"] for info in told] == [(), (), ("edge",)]
    assert not any(info["success"] for info in told)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"edge": 2}, r"'edge' is 2; allowed: True and False"),
        ({"edge": "no"}, r"'edge' is 'no'; allowed: True and False"),
        ({"edge": np.array([True])}, r"'edge' is array\(\[ True\]\); allowed: True and False"),
        ({"edge": 1.0}, r"'edge' is 1.0; allowed"),
        ({3: True}, r"3 is not a string"),
        (
            [3, 4],
            r"is \[3, 4\], and [34] is not a string; a label is a set of propositions, such as",
        ),
        (np.array([True, False]), r"is not a string"),
        (b"edge", r"is not a string"),
        (7, r"is 7; a label is a set"),
        (None, r"is None; .* \(\) if none is true .observed: 0\)"),
        ([{"edge"}], r"a label is a set"),
    ],
)
@pytest.mark.parametrize("argument", ["labels", "transition_labels"])
def test_a_labelling_function_that_returns_anything_else_is_refused(
    argument: str, returned: Any, message: str
) -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        there_and_back(),
        **{argument: lambda *_: returned},
    )
    with pytest.raises(GuardError, match=rf"the result of {argument}\(...\) "):
        _ = env.reset(seed=0), env.step(0)
    with pytest.raises(GuardError, match=message):
        _ = env.reset(seed=0), env.step(0)


def test_vector_observations_are_wrapped_but_not_numbered() -> None:
    env = qrmax.TaskWrapper(gymnasium.make("CartPole-v1"), there_and_back(), labels=lambda *_: ())
    assert env.reset(seed=0)[0]["state"].shape == (4,)
    with pytest.raises(ParameterError, match="TransformObservation"):
        _ = env.numbering


def coffee_lake() -> qrmax.TaskWrapper:
    """FrozenLake, with coffee wherever one is after a step."""
    env = gymnasium.make("FrozenLake-v1")
    return qrmax.TaskWrapper(env, pick_up(0.3), transition_labels=lambda *_: COFFEE)


def test_a_random_machine_succeeds_as_often_as_it_should() -> None:
    env, samples = coffee_lake(), 4000
    successes = 0
    for episode in range(samples):
        env.reset(seed=episode)
        _, _, ended, _, info = env.step(LEFT)
        assert ended == info["success"] == (info["r_task"] == 1.0)
        successes += info["success"]
    assert abs(successes / samples - 0.3) < 5 * np.sqrt(0.3 * 0.7 / samples)


def test_the_same_seed_settles_the_world_and_the_random_machine() -> None:
    env = coffee_lake()

    def episode(seed: int) -> list[tuple[int, int]]:
        env.reset(seed=seed)
        seen = [env.step(LEFT)[0] for _ in range(5)]
        return [(int(where["state"]), int(where["task"])) for where in seen]

    assert all(episode(seed) == episode(seed) for seed in range(10))
    assert len({tuple(task for _, task in episode(seed)) for seed in range(10)}) > 1


def test_a_certain_machine_draws_nothing_from_the_environment() -> None:
    env, bare = lake(is_slippery=True), gymnasium.make("FrozenLake-v1", is_slippery=True)
    env.reset(seed=5)
    bare.reset(seed=5)
    for action in (DOWN, RIGHT, DOWN, LEFT):
        assert env.step(action)[0]["state"] == bare.step(action)[0]
    assert env.np_random.random() == bare.np_random.random()


def test_a_first_label_that_would_be_read_by_chance_is_refused() -> None:
    lake_env = gymnasium.make("FrozenLake-v1")
    env = qrmax.TaskWrapper(lake_env, pick_up(0.3), labels=lambda *_: COFFEE)
    with pytest.raises(TaskError, match="consume_initial = false"):
        env.reset(seed=0)
    machine = pick_up(0.3, consume_initial=False)
    env = qrmax.TaskWrapper(lake_env, machine, labels=lambda *_: COFFEE)
    assert env.reset(seed=0)[0]["task"] == 0


def test_labels_can_be_a_mapping_of_observations() -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        there_and_back(),
        labels={0: {"home"}, 3: {"edge": True, "home": False}},
    )
    assert env.reset(seed=0)[1]["label"] == ("home",)
    told = [env.step(RIGHT)[-1] for _ in range(3)]
    assert [info["label"] for info in told] == [(), (), ("edge",)]
    assert [env.step(LEFT)[1] for _ in range(3)] == [0.0, 0.0, 5.0]


def test_a_mapping_with_something_else_than_labels_is_refused_at_once() -> None:
    lake_env = gymnasium.make("FrozenLake-v1")
    with pytest.raises(GuardError, match=r"labels\[3\] is the string 'edge'"):
        qrmax.TaskWrapper(lake_env, there_and_back(), labels={3: "edge"})
    pole = qrmax.TaskWrapper(gymnasium.make("CartPole-v1"), there_and_back(), labels={3: {"edge"}})
    with pytest.raises(ParameterError, match="cannot be looked up in one; needed: a function"):
        pole.reset(seed=0)


def test_a_guard_is_evaluated_once_for_each_label(monkeypatch: pytest.MonkeyPatch) -> None:
    env, evaluated = lake(), []
    holds = qrmax.Guard.holds
    monkeypatch.setattr(
        qrmax.Guard, "holds", lambda self, label: evaluated.append(label) or holds(self, label)
    )
    for _ in range(3):
        env.reset(seed=0)
        for action in [RIGHT] * 3 + [LEFT] * 3:
            env.step(action)
    assert set(evaluated) == {frozenset({"edge"}), frozenset({"home"})}  # () was read before
    asked = len(evaluated)
    env.reset(seed=0)
    env.step(RIGHT)
    assert len(evaluated) == asked
