"""Generated problems: what the generators guarantee, and that a seed is the same for good."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ParameterError
from qrmax.machines.task_files import format_task
from qrmax.worlds.catalog import without_task
from qrmax.worlds.draws import Draws
from qrmax.worlds.grid import format_map
from qrmax.worlds.map_catalog import any_map
from qrmax.worlds.random_tasks import random_task

GENERATORS = ("random-office", "random-mdp")
every_generator = pytest.mark.parametrize("world", GENERATORS)
seeds = st.integers(0, 10**9)


def digest(problem: qrmax.Problem) -> str:
    """A hash of everything that a problem is."""
    mdp = problem.mdp
    found = hashlib.sha256(format_task(problem.machine).encode())
    found.update(repr([problem.max_episode_steps, [*map(sorted, problem.labels)]]).encode())
    for array in (mdp.succ, mdp.prob, mdp.reward, mdp.terminal, mdp.start, problem.label):
        found.update(np.ascontiguousarray(array).tobytes())
    if isinstance(problem.world, qrmax.GridMap):
        found.update(format_map(problem.world).encode())
    return found.hexdigest()[:16]


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("random-office/7", "94f9666fbd56e04f"),
        ("random-office/1000", "24ad587f42a81584"),
        ("random-mdp/7", "f88fb641baa3f5ec"),
        ("random-mdp/1000", "fda1bfb54a2f3179"),
    ],
)
def test_the_problem_of_a_seed_never_changes(name: str, expected: str) -> None:
    assert digest(qrmax.make(name)) == expected


@every_generator
@pytest.mark.small_enough_without_jit
def test_a_seed_gives_one_problem_and_different_seeds_different_ones(world: str) -> None:
    names = [f"{world}/{seed}" for seed in range(40)]
    hashes = [digest(qrmax.make(name)) for name in names]
    assert len({*hashes}) == len(names)
    assert hashes[:5] == [digest(qrmax.make(name)) for name in names[:5]]


@every_generator
@given(seed=seeds)
@settings(max_examples=25)
def test_the_optimum_is_positive_and_success_is_not_a_matter_of_luck(world: str, seed: int) -> None:
    problem = qrmax.make(f"{world}/{seed}")
    policy = qrmax.solve(problem, gamma=0.9).policy
    best = qrmax.evaluate(problem, policy, 0.9)
    assert best.start_value > 0.0
    assert best.success > 0.01 or not problem.machine.success
    assert 2 <= problem.n_task_states <= 16
    assert problem.machine.reachable() == {*problem.machine.states}
    assert not problem.machine.failure


def safe_ways(problem: qrmax.Problem) -> list[set[int]]:
    """The neighbours of each cell; none of a decoration, or of a cell beside one."""
    terminal = problem.mdp.terminal
    near = [{*row.ravel().tolist()} - {s} for s, row in enumerate(problem.mdp.succ)]
    beside = [bool(terminal[s]) or any(terminal[n] for n in near[s]) for s in range(len(near))]
    return [set() if beside[s] else {n for n in near[s] if not beside[n]} for s in range(len(near))]


def reached(ways: list[set[int]], start: int, ends: set[int]) -> set[int]:
    """The states that can be reached from the start, not passing through `ends`."""
    found, ahead = {start}, [start]
    while ahead:
        new = ways[ahead.pop()] - found
        found |= new
        ahead += new - ends
    return found


@given(seed=seeds, side=st.sampled_from([None, 4, 5, 7]))
@settings(max_examples=40)
@pytest.mark.small_enough_without_jit
def test_every_label_can_be_reached_from_every_other_past_decorations_and_labels(
    seed: int, side: int | None
) -> None:
    problem = qrmax.make(f"random-office/{seed}", width=side, height=side)
    number = {label: n for n, label in enumerate(problem.labels)}
    decorated = problem.label == number.get(frozenset({"decoration"}), -1)
    assert np.array_equal(decorated, problem.mdp.terminal)
    labelled = {*np.flatnonzero((problem.label > 0) & ~decorated).tolist()}
    assert 2 <= len({*problem.label[[*labelled]]}) <= 8
    start = int(problem.mdp.start.argmax())
    assert problem.label[start] == 0
    ways = safe_ways(problem)
    for place in (start, *labelled):
        assert labelled <= reached(ways, place, labelled)


@given(seed=seeds)
@settings(max_examples=40)
@pytest.mark.small_enough_without_jit
def test_every_state_of_a_random_mdp_can_be_reached_without_the_risk_of_a_dead_end(
    seed: int,
) -> None:
    problem = qrmax.make(f"random-mdp/{seed}")
    mdp = problem.mdp
    safe = ~mdp.terminal[mdp.succ].any(axis=2)  # [s, a]
    alive = {*np.flatnonzero(~mdp.terminal).tolist()}
    assert safe[[*alive]].any(axis=1).all()
    ways = [
        {*mdp.succ[s][safe[s]].ravel().tolist()} if s in alive else set()
        for s in range(mdp.n_states)
    ]
    assert all(reached(ways, state, set()) == alive for state in alive)
    assert {*np.unique(problem.label)} == {*range(len(problem.labels))}
    distinct = np.sort(mdp.succ, axis=2)
    assert (distinct[:, :, 1:] != distinct[:, :, :-1]).all()
    assert problem.coordinates is None


@pytest.mark.small_enough_without_jit
def test_problems_differ_in_kind_as_well() -> None:
    offices = [qrmax.make(f"random-office/{seed}") for seed in range(60)]
    assert {each.machine.name for each in offices} == {"sequence", "any-order", "branching"}
    slips = [{*each.mdp.prob[each.mdp.prob < 0.5].tolist()} for each in offices]
    assert min(map(len, slips)) <= 2 < 10 < max(map(len, slips))  # everywhere, and by cell
    assert {each.world.slips for each in offices} == {"perpendicular", "any"}
    walls = [each.world.wall_right.sum() + each.world.wall_below.sum() for each in offices]
    assert min(walls) == 0 < 50 < max(walls)
    cells = [each.n_states for each in offices]
    assert min(cells) < 60 < 200 < max(cells)
    assert all(each.coordinates is not None for each in offices)
    mdps = [qrmax.make(f"random-mdp/{seed}") for seed in range(60)]
    kinds = {"sequence", "any-order", "branching", "patrol", "restart"}
    assert {each.machine.name for each in mdps} == kinds
    assert {bool(each.mdp.terminal.any()) for each in mdps} == {True, False}
    assert {each.mdp.succ.shape[2] for each in mdps} == {1, 2, 3, 4, 5}


@pytest.mark.small_enough_without_jit
def test_options_replace_what_the_seed_says_and_nothing_else() -> None:
    usual = qrmax.make("random-office/3")
    wide = qrmax.make("random-office/3", width=20, height=5)
    assert (wide.world.width, wide.world.height) == (20, 5)
    sure = qrmax.make("random-office/3", slip=0.0)
    assert sure.world.text == usual.world.text
    assert sure.machine == usual.machine
    assert (sure.mdp.prob.max(axis=2) == 1.0).all()
    assert qrmax.make("random-office/3", slips="any").mdp.succ.shape[2] == 4
    large = qrmax.make("random-mdp/3", states=400, actions=7, branching=9, max_episode_steps=None)
    assert large.mdp.succ.shape == (400, 7, 9)
    assert large.max_episode_steps is None


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("random-office/3", {"width": 3}, "width is 3; allowed: whole numbers from 4 to 50"),
        ("random-office/3", {"height": 51}, "height is 51; allowed: whole numbers from 4 to 50"),
        ("random-office/3", {"slip": 1.5}, "slip is 1.5"),
        ("random-mdp/3", {"states": 9}, "states is 9; allowed: whole numbers from 10 to 10000"),
        (
            "random-mdp/3",
            {"branching": 500},
            "'random-mdp/3' has 48 states; allowed: 1 to 24, or g",
        ),
        (
            "random-mdp/3",
            {"states": 10, "branching": 6},
            "branching is 6; allowed: whole numbers from 1 to 5",
        ),
        ("random-mdp/007", {}, "seed is '007'; allowed: whole numbers from 0 to .*'random-mdp/17'"),
        ("random-mdp/-1", {}, "seed is '-1'"),
        ("random-mdp/two", {}, "seed is 'two'"),
        ("random-mdp/²", {}, "seed is '²'"),
        ("random-mdp", {}, "names no seed: give the whole name, such as 'random-mdp/0', or map="),
    ],
)
def test_what_cannot_be_drawn_is_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        qrmax.make(name, **options)


@pytest.mark.small_enough_without_jit
def test_a_task_of_ones_own_takes_the_place_of_that_of_the_seed() -> None:
    problem = qrmax.make("random-mdp/3", task="F(a & F b)")
    assert (problem.name, problem.n_task_states) == ("random-mdp/3/F(a & F b)", 3)
    assert np.array_equal(problem.mdp.prob, qrmax.make("random-mdp/3").mdp.prob)
    assert qrmax.make("random-mdp", map="3").name == "random-mdp/3"
    assert without_task("random-mdp/3") == "random-mdp/3"


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize("kind", ["sequence", "any-order", "branching", "patrol", "restart"])
def test_from_every_state_of_a_random_task_visits_lead_to_a_reward(kind: str) -> None:
    for seed in range(30):
        names = [*"abcde"][: 3 + seed % 3]
        task = random_task(Draws(seed, "a test"), names, [kind])
        ahead = {edge.source for edge in task.edges if edge.reward > 0.0}
        for _ in task.states:
            ahead |= {edge.source for edge in task.edges if edge.target in ahead}
        assert ahead == {*task.states} - task.terminal
        assert task.reachable() == {*task.states}
        assert max(edge.reward for edge in task.edges) == 1.0
        assert task.propositions <= {*names}
        assert (kind == "patrol") == (not task.success)


# --- everywhere else


@pytest.mark.parametrize("env_id", ["qrmax/RandomOffice-17-v0", "qrmax/RandomMdp-1099-v0"])
def test_generated_problems_have_gymnasium_ids(env_id: str) -> None:
    check_env(gymnasium.make(env_id).unwrapped, skip_render_check=True)
    assert gymnasium.make("qrmax/RandomMdp-v0", map="123456").reset(seed=1)


def test_a_run_on_a_generated_problem_is_saved_with_its_map(tmp_path: Path) -> None:
    problem = qrmax.make("random-office/5")
    run = qrmax.train("qrmax-rm", problem, max_steps=300, evaluate_every=1000)
    run.save(tmp_path / "run")
    loaded = qrmax.load(tmp_path / "run").problem
    assert digest(loaded) == digest(problem)
    assert loaded.world.name == "random-office-5"


def test_a_pattern_in_a_study_stands_for_many_seeds() -> None:
    study = qrmax.Study(["random-office/100[0-4]", "random-mdp/1?"], ["qrmax-rm"])
    drawn = [f"random-office/{seed}" for seed in range(1000, 1005)]
    assert [*study.problems] == drawn + [f"random-mdp/{seed}" for seed in range(10, 20)]
    other = qrmax.Study(["random-mdp/54321"], ["qrmax-rm"])
    assert [*other.problems] == ["random-mdp/54321"]
    assert other.cells[0].problem.make().name == "random-mdp/54321"


@pytest.mark.small_enough_without_jit
def test_the_name_of_a_problem_is_that_of_its_map() -> None:
    assert any_map("random-office/3").text == qrmax.make("random-office/3").world.text
    assert any_map("office/map1/exp5").name == "map1"
    with pytest.raises(ParameterError, match="'random-mdp/3' has no map to show"):
        any_map("random-mdp/3")


@pytest.mark.small_enough_without_jit
def test_a_generator_of_ones_own_is_a_world_with_seeds() -> None:
    def chain(
        seed: int, task: qrmax.RewardMachine | None, _: qrmax.Options, name: str
    ) -> qrmax.Problem:
        """Chains."""
        here = np.arange(2 + seed)
        mdp = qrmax.TabularMDP(
            np.minimum(here + 1, 1 + seed)[:, None, None], np.ones((2 + seed, 1, 1))
        )
        labels = [(), ("end",)]
        return qrmax.Problem(
            mdp,
            task or qrmax.RewardMachine.from_ltlf("F end"),
            labels,
            [0] * (1 + seed) + [1],
            name=name,
        )

    world = qrmax.World(name="chain", make=chain, seeds=range(3))
    assert world.problem_names() == ["chain/0", "chain/1", "chain/2"]
    assert world.pattern == "chain/SEED"
    assert qrmax.make(world, map="7").n_states == 9
    with pytest.raises(ParameterError, match=r"is called as len\(seed, task, options, name\)"):
        qrmax.World(name="chain", make=len, seeds=range(3))
    with pytest.raises(ParameterError, match="'chain' has maps and seeds; allowed: one of them"):
        qrmax.World(name="chain", make=chain, seeds=range(3), maps=qrmax.MapFolder(folder=Path()))
