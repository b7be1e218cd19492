"""What every agent must do, whatever its algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qrmax
from amounts import PLAIN
from learners import NUMBERED, VARIANTS, Trial, Variant, trial
from qrmax import Edge, Problem, RewardMachine
from qrmax.agents.base import Sizes
from qrmax.agents.episodic.episodic_agent import EpisodicAgent
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.agents.episodic.published_baselines import PublishedBaseline, PublishedUCBVI
from qrmax.agents.episodic.tabled_agent import TabledAgent
from qrmax.agents.episodic.ucbvi_azar import UCBVIAzar
from qrmax.agents.episodic.ucbvi_prm import UCBVIPRM
from qrmax.agents.experience import Counterfactual, Observed, Twice
from qrmax.agents.registry import (
    agent_class,
    agent_names,
    default_settings,
    make_agent,
    make_config,
)
from qrmax.agents.revising.revising_agent import RevisingAgent
from qrmax.errors import MissingExtraError, ParameterError, UnknownNameError
from qrmax.problems.simulator import Simulator
from qrmax.seeding import stream
from qrmax.testing import check_agent
from small_problems import LEFT, RIGHT, errand, fetch_and_leave

pytestmark = pytest.mark.small_enough_without_jit

every_agent = pytest.mark.parametrize("variant", VARIANTS, ids=str)
every_stranger = pytest.mark.parametrize(  # to the machine
    "variant", [variant for variant in VARIANTS if not variant.knows_machine], ids=str
)
every_name = pytest.mark.parametrize(  # without the compiler, one for each of its loops
    "name",
    ["qrm", "qrmax-rm", "ucbvi-b-rm", "ucbvi-bf", "bucket-qrmax"] if PLAIN else agent_names(),
)


def steps_for(variant: Variant) -> int:
    """Enough to learn an errand."""
    return 500 if variant.plans or variant.revises else 800 if variant.has_horizon else 8000


# --- the contract


@every_name
def test_every_built_in_agent_keeps_the_contract(name: str) -> None:
    try:
        agent_class(name).check_installed()
    except MissingExtraError as error:
        pytest.skip(str(error))
    knows_ends = not issubclass(agent_class(name), PublishedBaseline)
    check_agent(name, leave_out=[] if knows_ends else ["termination"])


# --- learning


@every_agent
@pytest.mark.parametrize("exit_ends_world", [False, True], ids=["by machine", "by both"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_small_problem_is_learned_to_optimality(
    variant: Variant, exit_ends_world: bool, seed: int
) -> None:
    problem = errand(exit_ends_world=exit_ends_world, limit=20)
    agent = trial(variant, problem, seed=seed, t_env=2).rush(steps_for(variant)).agent
    brought = qrmax.evaluate(problem, agent.policy(), 0.9).start_value
    assert brought == pytest.approx(0.9**3)  # one step to the key, three to the exit
    assert brought == pytest.approx(qrmax.solve(problem).start_value)


@every_agent
def test_what_is_learned_are_the_true_values(variant: Variant) -> None:
    """Along the way that is taken; elsewhere optimism may have been left alone."""
    if issubclass(agent_class(variant.name), PublishedBaseline):
        pytest.skip("knows no end of an episode, so that its values are not the true ones")
    problem = errand(limit=20)
    learned = trial(variant, problem, t_env=2).rush(steps_for(variant)).agent.q
    for s, q, a in [(1, 0, LEFT), (0, 1, RIGHT), (1, 1, RIGHT), (2, 1, RIGHT)]:
        assert learned[s, q, a] == pytest.approx(qrmax.solve(problem).q[s, q, a], rel=0.02)


@every_agent
@pytest.mark.parametrize("loop", [Trial.play, Trial.rush])
def test_an_episode_that_is_cut_off_promises_more_and_one_that_ends_does_not(
    variant: Variant, loop: Any
) -> None:
    """Episodes of one step: what the key is worth after it is never seen."""
    ends_at_key = RewardMachine(
        [Edge("go", "key", "has_key"), Edge("other", "exit", "has_key")],
        initial="go",
        success=["has_key"],
        states=["go", "has_key", "other"],
    )
    told = {"t_env": 2, "v_max": 2.0, "q0": 2.0, "alpha": 0.5, "epsilon": 0.5}
    cut = trial(variant, errand(limit=1), **told)
    over = trial(variant, errand(limit=1, machine=ends_at_key), **told)
    for each in (cut, over):
        loop(each, 200)
    if isinstance(cut.agent, EpisodicAgent) and isinstance(over.agent, EpisodicAgent):
        _check_what_the_plans_promise(cut.agent, over.agent)
        return
    if isinstance(cut.agent, RevisingAgent) and isinstance(over.agent, RevisingAgent):
        arrivals = [0, 2]  # on arriving left or right; as pairs, with the key and without it
        if cut.agent.joint:
            arrivals = [cut.agent.place(0, 1)[0], cut.agent.place(2, 0)[0]]
        cut_gain, over_gain = (each.planner.tables.gain[0] for each in (cut.agent, over.agent))
        assert over_gain[arrivals] == pytest.approx([0.0, 0.9 * 2.0])
        assert cut_gain[arrivals] == pytest.approx([0.9 * 2.0, 0.9 * 2.0])
        return
    assert cut.agent.q[1, 0, LEFT] == pytest.approx(0.9 * 2.0)
    assert over.agent.q[1, 0, LEFT] == pytest.approx(0.0)
    assert cut.agent.q[1, 0, RIGHT] == over.agent.q[1, 0, RIGHT] == pytest.approx(0.9 * 2.0)


def _check_what_the_plans_promise(cut: EpisodicAgent, over: EpisodicAgent) -> None:
    """The table of these agents is of what was seen to pay: hope is in the plan of an episode."""
    at_key, without_key = (0, 1), (2, 0)
    if not isinstance(cut, PublishedBaseline):  # to which an end is nothing but an unknown state
        assert _promised(over, *at_key) == 0.0
    for agent, pair in ((cut, at_key), (cut, without_key), (over, without_key)):
        promised, most = _promised(agent, *pair), 0.9 * (0.9**19 - 1) / (0.9 - 1)
        if isinstance(agent, UCBVIAzar | UCBVIPRM):  # which have one limit for all stages
            most = 0.9 * (0.9**20 - 1) / (0.9 - 1)
        optimists = FiniteHorizon | UCBVIAzar | UCBVIPRM | PublishedUCBVI
        if isinstance(agent, optimists) and agent.optimistic_prior:
            assert promised == pytest.approx(most)
        else:
            assert 0.0 < promised < most


def _promised(agent: EpisodicAgent, s: int, q: int) -> float:
    """The value of arriving there with the first step."""
    if isinstance(agent, FiniteHorizon):
        return float(agent.plan.stages.ahead[0, *agent.place(s, q)])
    assert isinstance(agent, TabledAgent)
    return float(0.9 * agent.table.values[1, s * agent.sizes.task_states + q].max())


# --- chance


@every_agent
def test_agents_draw_from_their_own_stream_only(variant: Variant) -> None:
    """The world's chance does not depend on how much of it an agent uses for itself."""
    problem = errand(limit=15)  # nothing slips: one number for each step and each reset
    tried = trial(variant, problem, t_env=3)
    resets = 0
    for _ in range(60):
        resets += tried.simulator.over
        tried.play(1)
    untouched = stream(7, "world")
    for _ in range(60 + resets):
        untouched.random()
    assert tried.simulator.rng.position() == untouched.position()


# --- what it says


@every_agent
def test_the_policy_is_the_first_of_the_equally_good(variant: Variant) -> None:
    problem = errand(slip=0.2, limit=15)
    tried = trial(variant, problem, t_env=2)
    for _ in range(8):
        policy, table = tried.agent.policy(), tried.agent.q
        assert policy.shape == (4, 3)
        assert policy.dtype == np.int32
        assert table.shape == (4, 3, 2)
        assert table.dtype == np.float64
        np.testing.assert_array_equal(policy, table.argmax(axis=2))
        tried.rush(40)
    assert trial(variant, problem).agent.policy().tolist() == [[0] * 3] * 4  # all are equal


@every_agent
def test_what_is_known_grows_and_has_a_bound(variant: Variant) -> None:
    tried = trial(variant, errand(slip=0.2, limit=15), t_env=3, t_task=2)
    if not (variant.plans or variant.has_horizon or variant.revises):
        assert tried.agent.known() is None
        return
    before = tried.agent.known()
    assert before.pairs == 0
    for _ in range(30):
        tried.rush(20)
        known = tried.agent.known()
        assert before.pairs <= known.pairs <= known.of == before.of
        before = known
    assert before.pairs > 0


# --- what it is not told


@pytest.mark.parametrize("name", NUMBERED)
def test_only_agents_that_know_the_machine_are_given_it(name: str) -> None:
    kind = Counterfactual if agent_class(name).knows_machine else Observed
    agent = trial(name, errand()).agent
    assert type(agent.experience) in (kind, Twice)
    assert agent.experience.knows_machine == agent.knows_machine


@every_stranger
def test_an_agent_that_does_not_know_the_machine_works_without_one(variant: Variant) -> None:
    problem = errand()
    told = variant.settings(t_env=2, gamma=0.9, horizon=20, samples=1)
    config = make_config(variant.name, told)
    agent = make_agent(
        variant.name,
        Sizes(4, 3, 2),
        config,
        stream(7, "agent"),
        None,
        coordinates=problem.coordinates,
    )
    blind = Trial(agent, Simulator(problem, stream(7, "world"))).play(100)
    assert blind.state() == trial(variant, problem, t_env=2, samples=1).play(100).state()


@every_stranger
@pytest.mark.parametrize("loop", [Trial.play, Trial.rush])
def test_edges_that_were_never_taken_make_no_difference(variant: Variant, loop: Any) -> None:
    limbo = Edge("limbo", "key", "go", 1.0), Edge("limbo", "exit", "limbo", 5.0)
    chancy = Edge("limbo", "exit", "has_key", -9.0, probability=0.5), Edge("limbo", "!key", "out")
    one, other = (
        loop(trial(variant, errand(machine=fetch_and_leave(*edges), limit=15), t_env=2), 200)
        for edges in (limbo, chancy)
    )
    assert one.state() == other.state()


@every_agent
@pytest.mark.parametrize("seed", range(4))
def test_what_an_edge_pays_is_learned_by_taking_it(variant: Variant, seed: int) -> None:
    """Until an episode ends, agents that do not know the machine cannot tell what the exit pays."""
    cheap, dear = (
        trial(variant, errand(machine=_paying(pay), start=2), t_env=1, r_max=7.0, seed=seed)
        for pay in (1.0, 7.0)
    )
    same = True
    while not cheap.simulator.over or cheap.simulator.q != 2:
        same = same and cheap.state() == dear.state()
        if not same:
            break
        cheap.play(1)
        dear.play(1)
    assert same or variant.knows_machine
    assert cheap.state() != dear.state()


def _paying(pay: float) -> RewardMachine:
    edges = [Edge("go", "key", "has_key"), Edge("has_key", "exit", "out", pay)]
    return RewardMachine(edges, initial="go", success=["out"])


# --- what it refuses

NO_COUNT = [0, -1, 1.5, True, "3", 10**10, None]
NO_COUNT_EITHER = NO_COUNT[:-1]  # where None means something
REFUSED: dict[str, list[Any]] = {
    "gamma": [0.0, 1.0, -0.5, float("nan"), "0.9", True, None],
    "alpha": [0.0, 1.5, float("nan"), "0.1", None],
    "epsilon": [-0.1, 1.1, float("nan"), None],
    "q0": [float("inf"), float("-inf"), float("nan"), "2", None],
    "t_env": NO_COUNT,
    "t_min": NO_COUNT,
    "growth": [x for x in NO_COUNT if x is True or x != 0],
    "freeze_after": [x for x in NO_COUNT if x is True or x != 0],
    "shrinkage": ["bayes", None, 0],
    "recommend": ["best", None, 1],
    "redraw": NO_COUNT,
    "t_task": NO_COUNT,
    "t_env_reward": NO_COUNT_EITHER,
    "t_task_reward": NO_COUNT_EITHER,
    "functions": NO_COUNT,
    "bits": NO_COUNT,
    "offset": [-0.1, 1e7, float("inf"), float("nan"), "1", None],
    "grid": [*NO_COUNT_EITHER, 2**20 + 1],
    "event_aware": [1, "yes", None],
    "r_max": [-1.0, float("inf"), float("nan"), None],
    "v_max": [-1.0, float("inf"), float("nan"), "big"],
    "tolerance": [0.0, -1e-5, 1.0, float("nan"), None],
    "horizon": NO_COUNT,
    "r_min": [0.5, float("inf"), float("-inf"), float("nan"), "0", None],
    "bonus_scale": [-0.1, float("inf"), float("nan"), "1", None],
    "beta": [-0.1, float("inf"), float("nan"), "1", None],
    "radius_scale": [-0.1, float("inf"), float("nan"), "1", None],
    "support": ["some", None, 1],
    "prior": [0.0, -1.0, float("inf"), float("nan"), None],
    "count": ["all", None, 1],
    "task_by": ["q", None, 1],
    "samples": NO_COUNT,
    "delta": [0.0, 1.0, -0.1, float("nan"), "0.1", None],
    "total_steps": NO_COUNT,
    "reward_posterior": ["normal", "", None, 1],
    "transition_prior": ["flat", "", None, 1],
    "hidden": NO_COUNT,
    "learning_rate": [0.0, 1.1, float("nan"), "0.1", None],
    "batch_size": NO_COUNT,
    "buffer_size": NO_COUNT,
    "learning_starts": NO_COUNT,
    "train_every": NO_COUNT,
    "gradient_steps": NO_COUNT,
    "replan_after": NO_COUNT,
    "target_update_interval": NO_COUNT,
    "epsilon_start": [-0.1, 1.1, float("nan"), None],
    "epsilon_end": [-0.1, 1.1, float("nan"), None],
    "exploration_steps": NO_COUNT,
}
ALLOWED: dict[str, list[Any]] = {
    "gamma": [0.001, 0.999, np.float64(0.5)],
    "alpha": [1e-9, 1.0, 1],
    "epsilon": [0.0, 1.0, 0],
    "q0": [0.0, -100.0, 7],
    "t_env": [1, 10**9, np.int64(5)],
    "t_task": [1, 10**9],
    "t_min": [1, 10**9],
    "growth": [0, 1, 10**9],
    "freeze_after": [0, 1, 10**9],
    "shrinkage": ["empirical-bayes", "none"],
    "recommend": ["mean", "optimistic"],
    "redraw": [1, 10**9],
    "t_env_reward": [None, 1, 10**9],
    "t_task_reward": [None, 1, np.int64(5)],
    "functions": [1, 512],
    "bits": [1, 1024],
    "offset": [0.0, 0, 0.5, 1e6],
    "grid": [None, 1, 2**20],
    "event_aware": [True, False],
    "r_max": [0.0, 1000],
    "v_max": [None, 0.0, 5],
    "tolerance": [1e-15, 0.5],
    "horizon": [1, 10**9, np.int64(5)],
    "r_min": [0.0, -1000],
    "bonus_scale": [0.0, 0.1, 7],
    "beta": [0.0, 0.1, 7],
    "radius_scale": [0.0, 0.1, 7],
    "support": ["seen", "all"],
    "prior": [1e-6, 1, 1000.0],
    "count": ["real", "counterfactual"],
    "task_by": ["state", "label"],
    "samples": [1, 1000],
    "delta": [1e-9, 0.5, 0.999],
    "total_steps": [1, 10**9],
    "reward_posterior": ["beta", "gaussian"],
    "transition_prior": ["optimistic", "uniform"],
    "hidden": [1, 8192],
    "learning_rate": [1e-9, 1],
    "batch_size": [1, 1000],
    "buffer_size": [32, 10**7],
    "learning_starts": [1, 10**9],
    "train_every": [1, 1000],
    "gradient_steps": [1, np.int64(5)],
    "replan_after": [1, np.int64(5)],
    "target_update_interval": [1, 10**6],
    "epsilon_start": [0.05, 0.5, 1.0],
    "epsilon_end": [0, 0.5, 1.0],
    "exploration_steps": [1, 10**9],
}


@every_name
def test_each_setting_out_of_range_is_refused_by_its_name(name: str) -> None:
    for setting in default_settings(name):
        refused, allowed = REFUSED[setting], ALLOWED[setting]
        if setting == "gamma" and agent_class(name).has_horizon:  # episodes end anyway
            refused, allowed = [*(x for x in refused if x != 1.0 or x is True), 1.1], [*allowed, 1]
        for value in refused:
            with pytest.raises(ParameterError, match=f"^{setting} is .*; allowed: "):
                make_config(name, {setting: value})
        for value in allowed:
            assert getattr(make_config(name, {setting: value}), setting) == value


@every_name
def test_an_unknown_setting_suggests_the_nearest(name: str) -> None:
    for setting in default_settings(name):
        with pytest.raises(UnknownNameError, match=f"setting of {name} .*\n.*mean '{setting}'"):
            make_config(name, {setting + "x": 1})


@every_name
def test_an_unknown_agent_suggests_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown agent .*\n.*did you mean '{name}'"):
        agent_class("qr-m" if name == "qrm" else name + "x")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("QRMax", "qrmax"), ("QR-Max", "qrmax"), ("QRM", "qrm"), ("R-MaxRM", "rmax-rm")],
)
def test_an_agent_written_as_in_the_paper_suggests_its_name(written: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean '{meant}'"):
        agent_class(written)


def test_training_an_unknown_agent_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'qrmax'"):
        qrmax.train("qrmx", errand())


@every_agent
def test_agents_that_know_the_machine_refuse_a_random_one(variant: Variant) -> None:
    random = RewardMachine(
        [
            Edge("go", "key", "has_key", probability=0.8),
            Edge("has_key", "exit", "out", 1.0),
        ],
        initial="go",
        success=["out"],
    )
    problem: Problem = errand(machine=random)
    if variant.knows_machine:
        with pytest.raises(ParameterError, match=r"stochastic reward machine.*use 'qrmax'"):
            trial(variant, problem)
    else:
        trial(variant, problem).rush(100)
