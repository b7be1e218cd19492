"""Worlds described, registered, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args

import gymnasium
import numpy as np
import pytest

import qrmax
from qrmax.errors import ParameterError, PluginError, UnknownNameError
from qrmax.worlds import world_registry
from qrmax.worlds.catalog import all_names, is_continuous, make, without_task
from qrmax.worlds.continuous_names import ContinuousName
from qrmax.worlds.options import declared_options
from qrmax.worlds.world_registry import find_world, register_world, world_names, worlds


@dataclass(frozen=True, kw_only=True)
class PairOptions(qrmax.Options):
    stay: Annotated[float, "probability that a move fails"] = 0.5
    start: Literal["home", "away"] = "home"
    limit: Annotated[int | None, "steps of an episode"] = 7


def pair(task: qrmax.RewardMachine, options: PairOptions, name: str) -> qrmax.Problem:
    """Two states, home and away."""
    start = int(options.start == "away")
    mdp = qrmax.TabularMDP(
        [[[1, 0]], [[0, 1]]], [[[1.0 - options.stay, options.stay]]] * 2, start=start
    )
    labels = [{"home"}, {"away"}]
    limit = options.limit
    return qrmax.Problem(mdp, task, labels, [0, 1], max_episode_steps=limit, name=name)


def world(**changes: Any) -> qrmax.World[qrmax.Problem]:
    described: dict[str, Any] = {
        "name": "pair",
        "make": pair,
        "options": PairOptions,
        "tasks": {"go": "F away"},
    }
    return qrmax.World(**{**described, **changes})


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Forget what a test has registered."""
    before, ids = dict(world_registry._registered), {*gymnasium.registry}
    yield
    world_registry._registered.clear()
    world_registry._registered.update(before)
    for env_id in {*gymnasium.registry} - ids:
        del gymnasium.registry[env_id]


@pytest.mark.parametrize("described", worlds(), ids=str)
def test_every_problem_of_every_world_has_the_name_and_the_id_of_its_description(
    described: qrmax.World[Any],
) -> None:
    assert described.summary.endswith(".")
    assert all(option.help for option in described.declared)
    assert described.source is None
    for name in described.problem_names()[:3]:
        problem = make(name)
        assert problem.name == name
        assert isinstance(problem, qrmax.ContinuousProblem) == described.continuous
        spec = gymnasium.spec(described.gymnasium_id(name))
        assert spec.max_episode_steps == described.defaults["max_episode_steps"]
    assert described.gymnasium_id() in gymnasium.registry


def test_a_registered_world_is_known_everywhere() -> None:
    assert register_world(world()) is find_world("pair")
    assert "pair/go" in all_names()
    problem = qrmax.make("pair/go", stay=0.25)
    assert (problem.name, problem.machine.name, problem.max_episode_steps) == ("pair/go", "go", 7)
    assert qrmax.solve(problem).start_value == pytest.approx(0.75 / (1 - 0.9 * 0.25))
    assert qrmax.make("pair", task="F home", start="away").name == "pair/F home"
    assert without_task("pair/go") == "pair"
    env = gymnasium.make("qrmax/Pair-go-v0", stay=0.0)
    env.reset(seed=0)
    assert env.step(0)[1:3] == (1.0, True)
    assert gymnasium.make("qrmax/Pair-v0", task="F home", start="away").reset(seed=0)


def test_a_world_need_not_be_registered() -> None:
    assert qrmax.make(world(), task="go", stay=0.0).name == "pair/go"
    with pytest.raises(
        ParameterError, match="'pair' names no task: give the whole name, 'pair/go'"
    ):
        qrmax.make(world())
    with pytest.raises(UnknownNameError, match="pair/go"):
        qrmax.make("pair/go")


def test_an_episode_is_truncated_at_the_limit_of_the_problem_if_no_option_names_it() -> None:
    register_world(world(env_id="pairs/Pair", version=3))
    env = gymnasium.make("pairs/Pair-go-v3", stay=1.0)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]


def test_a_world_registered_twice_is_refused_but_for_the_very_same() -> None:
    first = register_world(world())
    register_world(first)
    with pytest.raises(ParameterError, match="'pair': this is the name of another world, made in"):
        register_world(world())
    assert find_world("pair") is first
    other = register_world(world(tasks={"come": "F home"}), replace=True)
    assert find_world("pair") is other
    for name in ("office", "continuous/line"):
        with pytest.raises(ParameterError, match="name of a built-in world; give yours another"):
            register_world(world(name=name), replace=True)


@pytest.mark.parametrize("name", ["office/map1", "continuous"])
def test_a_name_within_that_of_another_world_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="would look like tasks of"):
        register_world(world(name=name))


@dataclass(frozen=True, kw_only=True)
class Needy(qrmax.Options):
    size: int


@dataclass(frozen=True, kw_only=True)
class Listed(qrmax.Options):
    sizes: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "my world"}, "name of a world is 'my world'; allowed: letters"),
        ({"name": "mine:pair"}, "allowed: letters"),
        ({"name": 7}, "name of a world is 7"),
        ({"make": "pair"}, "world 'pair': make is 'pair'; needed: a function"),
        ({"options": dict}, "needed: a frozen dataclass derived from qrmax.Options"),
        ({"options": Needy}, "option 'size' of Needy has no default"),
        ({"options": Listed}, "option 'sizes' of Listed has type tuple"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        world(**changes)
    assert words in str(caught.value)


def test_what_is_no_world_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"needed: a qrmax\.World"):
        register_world("pair")  # type: ignore[type-var]
    with pytest.raises(PluginError, match=r"needed: a qrmax\.World"):
        find_world("math:pi")
    with pytest.raises(ParameterError, match="world 'pair': make returned 3; needed: a Problem"):
        world(make=lambda *_: 3).problem(task="go")
    with pytest.raises(ParameterError, match="'pair' has a map already"):
        world().problem(map="map1", task="go")


def test_options_are_read_from_their_types() -> None:
    stay, start, limit = declared_options(PairOptions)
    assert stay == ("stay", float, 0.5, "probability that a move fails", (), False)
    assert (start.kind, start.choices, start.optional) == (str, ("home", "away"), False)
    assert (limit.kind, limit.optional) == (int, True)


def test_the_source_of_a_world_from_outside_is_known_unless_it_declares_a_version() -> None:
    found = world().source
    assert found is not None
    assert found["module"] == __name__
    assert len(found["sha256"]) == 64
    assert world(version=2).source == {"module": __name__, "version": "2"}


def test_the_type_of_continuous_names_lists_all_of_them_but_those_of_seeds() -> None:
    seeded = {name for each in worlds() if each.seeds for name in each.problem_names()}
    names = {name for name in all_names() if is_continuous(name)} - seeded
    shorter = {without_task(name) for name in names} | {
        name for name in world_names() if name.startswith("continuous/")
    }
    assert {*get_args(ContinuousName)} == names | shorter


def test_a_continuous_problem_has_a_name_of_its_kind() -> None:
    assert qrmax.make_continuous("continuous/line/ab").name == "continuous/line/ab"
    with pytest.raises(ParameterError, match="needed: a ContinuousProblem"):
        qrmax.make_continuous("office/map1/exp1")


def test_defaults_are_those_of_the_problem_made() -> None:
    for described in worlds():
        assert [*described.defaults] == [field.name for field in fields(described.options)]  # type: ignore[arg-type]
    line, lake = find_world("continuous/line"), find_world("continuous/frozen-lake")
    assert (line.defaults["step"], lake.defaults["step"]) == (0.025, 0.65)
    for each in (line, lake):
        [usual] = [make(name) for name in each.problem_names()]
        told = each.problem(task=usual.machine, step=each.defaults["step"])
        np.testing.assert_array_equal(usual.plane.direction, told.plane.direction)
