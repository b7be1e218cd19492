"""Two speeds, one meaning: the compiled loops do what the Python methods say, bit for bit."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from amounts import amount
from learners import VARIANTS, Variant, trial
from qrmax import Edge, Problem, RewardMachine, TabularMDP, seeding
from random_problems import ANY_SIGN, NON_NEGATIVE, problems
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit


@st.composite
def playable(draw: st.DrawFn) -> Problem:
    """A random problem with some start that is not over, often truncated soon."""
    problem = copy.copy(draw(problems(draw(st.sampled_from([ANY_SIGN, NON_NEGATIVE])))))
    problem.max_episode_steps = draw(st.sampled_from([None, 1, 3, 10]))
    assume(problem.start()[~problem.done()].any())
    return problem


agent_settings = st.fixed_dictionaries(
    {
        "gamma": st.sampled_from([0.5, 0.9, 0.95]),
        "t_env": st.integers(1, 4),
        "t_task": st.integers(1, 3),
        "t_min": st.integers(1, 4),
        "redraw": st.sampled_from([1, 7, 500]),
        "growth": st.sampled_from([0, 1, 30, 10_000]),
        "freeze_after": st.sampled_from([0, 0, 2, 5]),
        "shrinkage": st.sampled_from(["empirical-bayes", "none"]),
        "r_max": st.sampled_from([0.0, 1.0, 1000.0]),
        "v_max": st.sampled_from([None, 0.0, 3.0]),
        "tolerance": st.sampled_from([1e-5, 1e-2, 1e-12]),
        "alpha": st.sampled_from([0.1, 1.0]),
        "epsilon": st.sampled_from([0.0, 0.1, 1.0]),
        "q0": st.sampled_from([0.0, 2.0, -1.0]),
        "horizon": st.sampled_from([1, 2, 5, 20]),
        "r_min": st.sampled_from([0.0, -100.0]),
        "bonus_scale": st.sampled_from([0.0, 0.3, 1.0]),
        "beta": st.sampled_from([0.0, 0.01, 1.0]),
        "radius_scale": st.sampled_from([0.0, 0.3, 1.0]),
        "support": st.sampled_from(["seen", "all"]),
        "prior": st.sampled_from([1e-6, 1.0, 10.0]),
        "samples": st.sampled_from([1, 3, amount(8, plain=2)]),
        "total_steps": st.sampled_from([1, 10**6]),
        "reward_posterior": st.sampled_from(["beta", "gaussian"]),
        "transition_prior": st.sampled_from(["optimistic", "uniform"]),
        "count": st.sampled_from(["real", "counterfactual"]),
        "task_by": st.sampled_from(["state", "label"]),
    }
)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@given(
    problem=playable(),
    told=agent_settings,
    steps=st.integers(1, 100),
    chunks=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    block=st.sampled_from([5, 64, 8192]),
)
@settings(max_examples=amount(25, plain=8))
def test_the_compiled_loop_is_the_python_loop(
    variant: Variant,
    problem: Problem,
    told: dict[str, float],
    steps: int,
    chunks: list[int],
    block: int,
) -> None:
    assume(not (variant.knows_machine and problem.machine.is_stochastic))
    slow = trial(variant, problem, **told).play(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeding, "BLOCK", block)  # numbers run out at other places
        fast = trial(variant, problem, **told).rush(steps, chunks)
    assert fast.state() == slow.state()


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_would_have_ended_the_episode_ends_it_at_both_speeds(variant: Variant) -> None:
    """At the exit without the key: for those who know the machine, it would have been over."""
    problem = errand(start=2)
    for steps in range(1, 30):
        slow = trial(variant, problem, t_env=5, seed=steps).play(steps)
        fast = trial(variant, problem, t_env=5, seed=steps).rush(steps)
        assert fast.state() == slow.state()


@pytest.mark.parametrize("variant", [v for v in VARIANTS if not v.knows_machine], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_an_end_that_was_not_among_the_samples_ends_it_at_both_speeds(
    variant: Variant, seed: int
) -> None:
    """The first try may fail, and with t_task = 1 that is all that is ever learned of it."""
    chancy = RewardMachine(
        [Edge("go", "key", "won", 1.0, probability=0.5), Edge("go", "exit", "go", 0.5)],
        initial="go",
        success=["won"],
    )
    problem = errand(machine=chancy, limit=9)
    slow, fast = (trial(variant, problem, t_env=4, seed=seed) for _ in range(2))
    for _ in range(40):
        assert fast.rush(1).state() == slow.play(1).state()


@pytest.mark.parametrize("name", ["qrmax", "qrmax-rm"])
@pytest.mark.parametrize("t_task", [1, 3])
def test_first_visits_to_a_large_world_are_learned_in_the_loop(name: str, t_task: int) -> None:
    """All of its pairs (q, s') are new, and as nothing leads to them yet there is no backup."""
    problem = open_corridor(300)
    told = {"t_env": 50, "t_task": t_task, "r_max": 1.0}
    tried = trial(name, problem, **told)
    left_to_python, steps = 0, 2000
    while steps > 0:
        taken, lesson = tried.agent.fast_forward(tried.simulator, steps)
        steps -= taken
        if lesson is not None:
            left_to_python += 1
            tried.learn(lesson)
    visited = int((tried.agent.counters["task"].counts.n >= t_task).sum())
    assert visited > 30
    assert left_to_python <= 10  # the first move of the machine, and what t_env completes
    assert tried.state() == trial(name, problem, **told).play(2000).state()


def open_corridor(length: int) -> Problem:
    """Cells in a row, beginning in the middle; the right end is far away."""
    cells = np.arange(length)
    succ = np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1)
    mdp = TabularMDP(succ[:, :, None], np.ones((length, 2, 1)), start=length // 2)
    machine = RewardMachine([Edge("go", "end", "there", 1.0)], initial="go", success=["there"])
    return Problem(mdp, machine, [(), ("end",)], (cells == length - 1).astype(int))
