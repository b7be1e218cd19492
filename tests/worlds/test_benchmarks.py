"""River swim, warehouse, frozen lake, and Toro Icarte's Office tasks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import qrmax
from qrmax.errors import ParameterError, QRMaxError, UnknownNameError
from qrmax.worlds.catalog import make
from qrmax.worlds.world_registry import find_world

UP, RIGHT, DOWN, LEFT, STAY = range(5)


BENCHMARKS = [
    name
    for world in ("river-swim", "warehouse", "frozen-lake")
    for name in find_world(world).problem_names()
]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_made_solved_and_played(name: str) -> None:
    problem = make(name)
    assert (problem.name, problem.max_episode_steps) == (name, 1000)
    solution = qrmax.solve(problem)
    assert solution.start_value > 0.0
    world, task = name.split("/")
    words = "".join(word.capitalize() for word in world.split("-"))
    env = gymnasium.make(f"qrmax/{words}-{task}-v0")
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("size", [2, 5, 6, 20])
@pytest.mark.parametrize(("labels", "delay"), [("reached", 2), ("acted_in", 1)])
def test_without_a_current_the_patrol_is_worth_a_geometric_series(
    size: int, labels: str, delay: int
) -> None:
    problem = make("river-swim/patrol", size=size, right=1.0, back=0.0, labels=labels)
    expected = 0.9 ** (size - delay) / (1 - 0.9 ** (2 * (size - 1)))
    assert qrmax.solve(problem).start_value == pytest.approx(expected)


def test_the_river_flows_to_the_left() -> None:
    problem = make("river-swim/patrol", labels="reached")
    mdp = problem.mdp
    assert mdp.n_states == 6
    assert mdp.start[0] == 1.0
    to = {s: p for s, p in zip(mdp.succ[3, 0], mdp.prob[3, 0], strict=True)}  # noqa: C416
    assert to == {4: 0.6, 2: 0.05, 3: pytest.approx(0.35)}
    assert mdp.succ[3, 1, 0] == 2
    assert mdp.prob[3, 1, 0] == 1.0
    assert [sorted(problem.labels[i]) for i in problem.label] == [["left"], *[[]] * 4, ["right"]]


def test_a_step_in_the_river_reads_the_label_of_the_place_it_leaves() -> None:
    env = gymnasium.make("qrmax/RiverSwim-patrol-v0", size=2, right=1.0, back=0.0)
    env.reset(seed=7)
    seen = [env.step(0) for _ in range(3)]
    assert [info["label"] for *_, info in seen] == [("left",), ("right",), ("right",)]
    assert [reward for _, reward, *_ in seen] == [0.0, 1.0, 0.0]


def test_what_is_noticed_only_sometimes_is_worth_less() -> None:
    sure, unsure = (
        qrmax.solve(make(f"river-swim/{task}")).start_value for task in ("patrol", "noisy-patrol")
    )
    assert 0.8 * sure < unsure < sure


def test_the_warehouse_is_laid_out_as_published() -> None:
    problem = make("warehouse/deliver", size=4)
    true = {s: sorted(problem.labels[i])[0] for s, i in enumerate(problem.label) if i}
    assert true == {0: "charger", 3: "item", 15: "delivery"}
    assert problem.n_actions == 5
    assert problem.mdp.start[0] == 1.0
    assert problem.mdp.prob[5, RIGHT].tolist() == pytest.approx([0.9, 0.05, 0.05])
    assert problem.mdp.succ[5, RIGHT].tolist() == [6, 9, 1]
    assert (problem.mdp.succ[5, STAY] == 5).all()
    assert problem.mdp.succ[0, UP].tolist() == [0, 1, 0]  # a move into a wall slips, too
    assert problem.mdp.prob[0, UP].tolist() == pytest.approx([0.9, 0.05, 0.05])
    assert problem.machine.outcomes("to_item", {"item"})[0].probability == 0.8
    assert problem.machine.outcomes("to_delivery", {"delivery"})[0] == (0.9, "to_charger", 1.0)


def test_the_warehouse_without_slips_is_worth_what_its_chances_say() -> None:
    problem = make("warehouse/deliver", size=2, slip=0.0)
    gamma = 0.9
    # a step to the item and tries there; a step to the delivery and tries there; two steps back
    item, delivery = (p / (1 - gamma * (1 - p)) for p in (0.8, 0.9))
    cycle = item * delivery * gamma
    assert qrmax.solve(problem).start_value == pytest.approx(cycle / (1 - cycle * gamma**3))


def test_a_random_machine_is_learned_with_more_samples_of_it() -> None:
    problem = make("warehouse/deliver", size=2, max_episode_steps=100)
    run = qrmax.train("qrmax", problem, seed=7, t_env=40, t_task=40, max_steps=20_000)
    assert run.reason == "exact"
    assert run.gap is not None
    assert run.gap < 0.05


def test_holes_end_the_episode_on_the_lake() -> None:
    problem = make("frozen-lake/abc", slip=0.0)
    assert problem.mdp.terminal.sum() == 11
    evaluation = qrmax.evaluate(problem, qrmax.solve(problem).policy)
    assert (evaluation.success, evaluation.nominal_length) == (1.0, 5 + 8 + 18)
    slippery = make("frozen-lake/abc", slip=2 / 3)
    # the gap between the holes can be left forwards, backwards, or through a hole, which is chosen
    assert qrmax.evaluate(slippery, qrmax.solve(slippery).policy).success == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("compat", "lengths"), [(False, (15, 29, 29, 30)), (True, (11, 23, 23, 25))]
)
def test_toro_icartes_tasks_take_as_long_as_they_are_known_to(
    compat: bool, lengths: tuple[int, ...]
) -> None:
    for number, length in enumerate(lengths, start=1):
        task = qrmax.load_task(f"toro-icarte/t{number}", compat=compat)
        problem = make("office/map1", task=task, slip=0.0)
        solution = qrmax.solve(problem)
        assert qrmax.evaluate(problem, solution.policy).nominal_length == length
        assert solution.start_value == pytest.approx(0.9 ** (length - 1))


def test_toro_icartes_tasks_have_names_on_any_office_map() -> None:
    problem = make("office/map1/toro-icarte/t3")
    assert problem.name == "office/map1/toro-icarte/t3"
    assert problem.machine == qrmax.load_task("toro-icarte/t3")


def test_a_task_of_ones_own_is_done_in_any_world() -> None:
    task = qrmax.RewardMachine([qrmax.Edge("s", "item", "t", 1.0)], initial="s", success=["t"])
    assert make("warehouse", task=task).name == "warehouse/task"
    assert make("warehouse", task="deliver").name == "warehouse/deliver"
    assert make("frozen-lake", task="continuous/abc").name == "frozen-lake/abc"


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("river-swim/patrole", {}, UnknownNameError, "did you mean 'river-swim/patrol'"),
        ("river-swim", {}, ParameterError, "'river-swim' names no task"),
        ("river-swim/patrol", {"size": 1}, ParameterError, "at least 2"),
        ("river-swim/patrol", {"right": 0.98}, ParameterError, "at most 1 together"),
        ("river-swim/patrol", {"labels": "any"}, ParameterError, "'acted_in', 'reached'"),
        ("river-swim/patrol", {"map": "map1"}, ParameterError, "has a map already"),
        ("river-swim/patrol", {"task": "exp1"}, ParameterError, "contradict"),
        ("frozen-lake/ab", {"task": "exp1"}, ParameterError, "the name is 'frozen-lake'"),
        ("river-swim/patrol", {"slip": 0.1}, UnknownNameError, "unknown option 'slip'"),
        ("warehouse/deliver", {"size": 1}, ParameterError, "2 to 500"),
        ("warehouse/deliver", {"slip": 2.0}, ParameterError, "slip is 2.0"),
        ("frozen-lake/abc", {"max_episode_steps": 0}, ParameterError, "max_episode_steps is 0"),
    ],
)
def test_what_makes_no_sense_is_explained(
    name: str, options: dict[str, Any], error: type[QRMaxError], words: str
) -> None:
    with pytest.raises(error) as caught:
        make(name, **options)
    assert words in str(caught.value)


def test_the_warehouse_can_be_looked_at() -> None:
    env = gymnasium.make("qrmax/Warehouse-deliver-v0", render_mode="ansi", size=3)
    env.reset(seed=7)
    env.step(np.int64(STAY))
    shown = env.render()
    assert shown.startswith("@ . i\n")
    assert "(moved nowhere)" in shown
    with pytest.raises(ParameterError, match="no map to show"):
        gymnasium.make("qrmax/RiverSwim-patrol-v0", render_mode="ansi")
