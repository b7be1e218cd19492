"""Exported policies, acted by in a process that has neither qrmax nor NumPy."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from box_worlds import PICTURES, classic, picture, screen
from gym_worlds import in_order, lake, room
from qrmax import policy_reader
from qrmax.errors import ParameterError
from small_runs import corridor

READER = Path(policy_reader.__file__)
SCRIPT = """
import json, runpy, sys
Policy = runpy.run_path(sys.argv[1])["Policy"]
assert not any(name in sys.modules for name in ("numpy", "qrmax"))
policy = Policy(sys.argv[2])
for episode in json.load(sys.stdin):
    first, *rest = episode
    print(json.dumps([policy.reset(**first), policy.state]))
    for told in rest:
        print(json.dumps([policy.step(**told), policy.state]))
    print(json.dumps([policy.over, policy.success]))
"""


def plain(seen: Any) -> Any:
    """An observation as JSON can hold it."""
    if isinstance(seen, dict):
        return {key: plain(part) for key, part in seen.items()}
    if isinstance(seen, tuple):
        return [plain(part) for part in seen]
    return seen.tolist() if hasattr(seen, "tolist") else seen


def played(
    run: qrmax.Run, env: Any, episodes: int, tell: Callable[[Any, Any], dict[str, Any]]
) -> Iterator[tuple[list[dict[str, Any]], list[Any]]]:
    """Episodes as `run.act` plays them: what the reader is told, and what it has to answer."""
    machine = env.get_wrapper_attr("machine") if run.problem is None else run.problem.machine
    horizon = getattr(run.agent.config, "horizon", None)
    for number in range(episodes):
        told, answers = [], []
        seen, info = env.reset(seed=number)
        stage, over = 0, False
        while True:
            told.append(tell(seen, info))
            ended = over and seen["task"] in map(machine.index, machine.terminal)
            action = None if ended or stage == horizon else run.act(seen, info, stage=stage)
            answers.append([action, machine.states[seen["task"]]])
            if over or action is None:
                break
            seen, _, terminated, truncated, info = env.step(action)
            over, stage = terminated or truncated, stage + 1
        yield told, [*answers, [answers[-1][0] is None, info["success"]]]


def observed(seen: Any, info: Any) -> dict[str, Any]:
    return {"observation": plain(seen["state"]), "labels": list(info["label"])}


def check(run: qrmax.Run, env: Any, path: Path, *, episodes: int = 8, tell: Any = observed) -> Any:
    """Whether the reader does at every step what the run would do; the file as it is."""
    run.export(path)
    games = [*played(run, env, episodes, tell)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT, READER, path],
        input=json.dumps([told for told, _ in games]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(map(json.loads, done.stdout.splitlines())) == [a for _, all_ in games for a in all_]
    assert len(games) == episodes
    return json.loads(path.read_text())


def test_the_reader_has_at_most_100_lines_and_needs_the_standard_library_only() -> None:
    text = READER.read_text()
    assert len(text.splitlines()) <= 100
    imported = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert {line.split()[1] for line in imported} <= sys.stdlib_module_names


@pytest.mark.parametrize(("agent", "settings"), [("qrmax", {"t_env": 3}), ("qrm", {})])
def test_a_policy_of_a_problem_is_acted_by(
    agent: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    problem = corridor()
    run = qrmax.train(agent, problem, max_steps=3000, compiled=False, **settings)
    file = check(run, qrmax.ProblemEnv(problem), tmp_path / "policy.json")
    assert (file["agent"], file["trained_on"], file["horizon"]) == (agent, "corridor", None)
    assert file["propositions"] == ["door", "key"]
    assert (tmp_path / "policy.json").stat().st_size < 1500


def test_a_policy_with_stages_is_acted_by_until_its_steps_are_up(tmp_path: Path) -> None:
    problem = corridor(slip=0.4, limit=None)
    settings: dict[str, Any] = {"horizon": 7, "max_steps": 2000, "compiled": False}
    run = qrmax.train("ucbvi-b", problem, stop="budget", **settings)
    assert check(run, qrmax.ProblemEnv(problem), tmp_path / "p.json", episodes=20)["horizon"] == 7


@pytest.mark.parametrize("kind", ["discrete", "multidiscrete", "tuple", "dict"])
def test_numbered_observations_of_every_kind_are_acted_on(kind: str, tmp_path: Path) -> None:
    run = qrmax.train("qrmax", room(kind, noise=0.2), seed=3, t_env=3, max_steps=1200)
    file = check(run, room(kind, noise=0.3), tmp_path / "policy.json")
    assert file["first_action"] == 1


def test_labels_of_whole_steps_are_part_of_a_state(tmp_path: Path) -> None:
    def labels(before: int, action: int, after: int, info: Any) -> dict[str, bool]:  # noqa: ARG001
        return {"moved": before != after, "corner": after == 3}

    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"),
        'F(corner & F(!moved & F "moved"))',
        transition_labels=labels,
    )
    run = qrmax.train("qrmax", env, t_env=3, max_steps=2000)
    file = check(run, env, tmp_path / "policy.json")
    assert file["encoder"]["labelled"] == 1
    assert not file["machine"]["reads_start"]


def test_a_problem_made_of_an_environment_is_acted_on_as_the_environment_shows_it(
    tmp_path: Path,
) -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"),
        "F(corner & F(!moved & F moved))",
        transition_labels=lambda before, _, after, __: {
            "moved": before != after,
            "corner": after == 3,
        },
    )
    problem = qrmax.Problem.from_gymnasium(env)
    assert problem.origin is not None
    run = qrmax.train("qrmax", problem, t_env=3, max_steps=3000, compiled=False)
    check(run, env, tmp_path / "policy.json", episodes=20)
    assert run.evaluate(20, env=env).episodes == run.evaluate(20).episodes == 20
    policy = policy_reader.Policy(tmp_path / "policy.json")
    with pytest.raises(ValueError, match="not in the space trained on"):
        policy.reset(99, [])


BUCKETS = [
    {"grid": 5},
    {"functions": 3, "bits": 4},
    {"grid": 5, "event_aware": True},
    {"functions": 5, "bits": 9, "event_aware": True},
]


@pytest.mark.parametrize("buckets", BUCKETS, ids=str)
def test_buckets_of_real_observations_are_found_to_the_last_bit(
    buckets: dict[str, Any], tmp_path: Path
) -> None:
    env = classic("CartPole-v1")  # whose velocities have no bounds
    run = qrmax.train("bucket-qrmax", env, seed=1, t_env=2, max_steps=1500, **buckets)
    file = check(run, env.env, tmp_path / "policy.json")
    assert file["encoder"]["labelled"] == buckets.get("event_aware", False)
    assert [bounds is None for bounds in file["encoder"]["bounds"]] == [False, True, False, True]


def test_pictures_are_put_into_buckets(tmp_path: Path) -> None:
    env = screen(PICTURES, picture)
    run = qrmax.train("bucket-qrmax", env, t_env=1, max_steps=800, functions=8, bits=8)
    check(run, env, tmp_path / "policy.json", episodes=2)


def test_positions_of_a_continuous_problem_are_put_into_buckets(tmp_path: Path) -> None:
    problem = qrmax.make("continuous/line/ab")
    run = qrmax.train(
        "bucket-qrmax", problem, t_env=2, max_steps=2000, grid=20, event_aware=True, compiled=False
    )
    env = qrmax.ContinuousEnv(problem)
    check(run, env, tmp_path / "policy.json")


def test_the_state_of_a_random_task_is_given(tmp_path: Path) -> None:
    problem = corridor(chance=0.5)
    settings: dict[str, Any] = {"t_env": 3, "t_task": 3, "max_steps": 2000, "compiled": False}
    run = qrmax.train("qrmax", problem, **settings)
    states = problem.machine.states
    env = qrmax.ProblemEnv(problem)
    check(
        run,
        env,
        tmp_path / "policy.json",
        tell=lambda seen, info: {**observed(seen, info), "state": states[seen["task"]]},
    )
    policy = policy_reader.Policy(tmp_path / "policy.json")
    policy.reset(2)
    with pytest.raises(ValueError, match=r"\['key'\] in 'start' is stochastic: give state="):
        policy.step(0, ["key"])


def test_guards_are_read_as_the_task_reads_them(tmp_path: Path) -> None:
    edges = [
        qrmax.Edge("s", '!(a | "b c") & !!"!d" | (a & b) & (c & a) | false', "t"),
        qrmax.Edge("s", "a & !b | b & true & !(c & !a)", "u"),
        qrmax.Edge("t", "a | b | c | a & b", "s"),
    ]
    task = qrmax.RewardMachine(edges, initial="s", states=["s", "t", "u"])
    env = qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), task, labels=lambda *_: ())
    qrmax.train("qrmax", env, max_steps=20).export(tmp_path / "policy.json")
    policy = policy_reader.Policy(tmp_path / "policy.json")
    rng = random.Random(7)
    names = ["a", "b", "c", "b c", "!d"]
    for _ in range(300):
        label = {name: rng.random() < 0.4 for name in names}
        state = rng.choice(task.states)
        policy.reset(0, state=state)
        policy.step(0, label)
        assert policy.state == task.step(state, label).state


def test_a_guard_nested_too_deep_is_refused(tmp_path: Path) -> None:
    guard = "a & (b | " * 150 + "a" + ")" * 150
    task = qrmax.RewardMachine([qrmax.Edge("s", guard, "t", 1)], initial="s", success=["t"])
    env = qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), task, labels=lambda *_: ())
    run = qrmax.train("qrmax", env, max_steps=20)
    with pytest.raises(ParameterError, match="nested 300 deep; a policy file allows 200"):
        run.export(tmp_path / "policy.json")
    assert not (tmp_path / "policy.json").exists()


def test_a_run_loaded_without_its_environment_exports_the_same(tmp_path: Path) -> None:
    run = qrmax.train("qrmax", lake(), t_env=1, max_steps=1500)
    run.save(tmp_path / "lake.run")
    run.export(tmp_path / "one.json")
    qrmax.load(tmp_path / "lake.run").export(tmp_path / "other.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()


def test_networks_are_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    run = qrmax.train("dqn", classic("CartPole-v1"), max_steps=20)
    with pytest.raises(ParameterError, match=r"is not a table.*bucket-qrmax"):
        run.export(tmp_path / "policy.json")


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    qrmax.train("qrmax", lake(), t_env=1, max_steps=200).export(path)
    return path


def test_a_file_that_was_changed_anywhere_is_refused(small_file: Path, tmp_path: Path) -> None:
    whole, rng = small_file.read_bytes(), random.Random(7)
    path = tmp_path / "policy.json"
    for _ in range(300):
        data = bytearray(whole)
        match rng.randrange(3):
            case 0:
                del data[rng.randrange(len(data) - 1) :]
            case 1:
                data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
            case 2:
                at = rng.randrange(len(data))
                del data[at : at + rng.randrange(1, 40)]
        path.write_bytes(data)
        if bytes(data).strip() == whole.strip():
            continue
        with pytest.raises(ValueError):  # noqa: PT011 (of json, of Unicode or of the reader)
            policy_reader.Policy(path)


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"sha256": []}', '"qrmax policy 1"', ""])
def test_what_is_no_policy_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"not written by run.export|Expecting value"):
        policy_reader.Policy(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((16,), "observation 16 is not in the space trained on"),
        ((0.5,), "observation 0.5 is not in the space trained on"),
        ((0, "home"), r"labels are 'home'; needed: a list of names, as \['home'\]"),
        ((0, ["home"], "nowhere"), "nowhere"),
    ],
)
def test_what_the_policy_cannot_act_on_is_refused(
    small_file: Path, arguments: tuple[Any, ...], message: str
) -> None:
    policy = policy_reader.Policy(small_file)
    with pytest.raises((ValueError, TypeError), match=message):
        policy.reset(*arguments)


def test_numpy_numbers_are_observations_too(small_file: Path) -> None:
    policy = policy_reader.Policy(small_file)
    assert policy.reset(np.int64(0), ("home",)) == policy.reset(0, {"home": True})
    assert policy.state == "start"
    policy.step(3, {"corner"})
    assert policy.state == "corner"
    assert policy.step(0, {"home"}) is None
    assert policy.over
    assert policy.success
    assert in_order("corner", "home").states == tuple(policy.machine["states"])
