"""UCBVI-CH and UCBVI-BF: the plan is that of the paper's formulas, written out in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from learners import trial
from qrmax.agents.base import Sizes
from qrmax.agents.episodic.ucbvi_azar import UCBVIAzar
from qrmax.agents.registry import make_agent, make_config
from qrmax.empirical.successors import Seen
from qrmax.seeding import stream
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit

both = pytest.mark.parametrize("name", ["ucbvi-ch", "ucbvi-bf"])
S, A, H = 5, 3, 4


def pupil(name: str, **settings: Any) -> UCBVIAzar:
    """An agent of a world with five states and three actions, in episodes of four steps."""
    config = make_config(name, {"horizon": H, **settings})
    agent = make_agent(name, Sizes(S, 1, A), config, stream(7, "agent"), None)
    assert isinstance(agent, UCBVIAzar)
    return agent


def counted(rng: np.random.Generator, most: int, ever: Any = True) -> Seen:
    """Random counts, of pairs that were `ever` tried, up to so many times."""
    tried = (most ** rng.random((S, A)) * ever).astype(int)
    chance = rng.dirichlet(np.full(S, 0.5), (S, A))
    tau = np.array([rng.multinomial(tried[x, a], chance[x, a]) for x, a in np.ndindex(S, A)])
    return Seen(
        n=tried.astype(np.int32),
        rho=tried * rng.random((S, A)),
        listed=np.full(S, S, dtype=np.int32),
        outcome=np.tile(np.arange(S, dtype=np.int32), (S, 1)),
        tau=tau.reshape(S, A, S).astype(np.int32),
    )


def upper_bounds(
    name: str,
    seen: Seen,
    visits: np.ndarray,
    before: np.ndarray,
    done: np.ndarray,
    *,
    delta: float,
    total: int,
) -> np.ndarray:
    """The paper's algorithms 2 to 4, `[h, x, a]`."""
    log = math.log(5 * S * A * total / delta)
    table, value = np.full((H, S, A), float(H)), np.zeros(S)
    for h in reversed(range(H)):
        for x, a in np.argwhere(seen.n > 0):
            n, p = int(seen.n[x, a]), seen.tau[x, a] / seen.n[x, a]
            if name == "ucbvi-ch":
                bonus = 7 * H * log * np.sqrt(1 / n)
            else:
                variance = p @ value**2 - (p @ value) ** 2
                bonus = np.sqrt(8 * log * max(variance, 0) / n) + 14 * H * log / (3 * n)
                if h < H - 1:
                    wide = 100**2 * H**3 * S**2 * A * log**2
                    unsure = [min(wide / m, H**2) if m else H**2 for m in visits[h + 1]]
                    bonus += np.sqrt(8 * (p @ np.array(unsure)) / n)
            worth = seen.rho[x, a] / n + p @ value + bonus
            table[h, x, a] = min(before[h, x, a], H, worth)
        table[h, done] = 0.0
        value = table[h].max(axis=1)
    return table


@both
@pytest.mark.parametrize("seed", range(6))
def test_the_plan_is_that_of_the_paper_episode_after_episode(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    agent = pupil(name, delta=0.2, total_steps=1000)
    agent.done[0] = done = rng.random(S) < 0.2
    before, between = np.full((H, S, A), float(H)), 0.0
    ever = rng.random((S, A)) < 0.8
    for most in (10, 10**5, 10**7, 2 * 10**9):
        agent.seen.restore(counted(rng, most, ever))
        if name == "ucbvi-bf":
            agent.table.visits[:] = most ** rng.random((H, S)) * (rng.random((H, S)) < 0.9)
        agent.begin_episode(0, 0)
        expected = upper_bounds(
            name, agent.seen.arrays, agent.table.visits, before, done, delta=0.2, total=1000
        )
        np.testing.assert_allclose(agent.table.values, expected, rtol=1e-9, atol=1e-9)
        before = expected
        between = ((expected > 0.0) & (expected < H)).mean()
    assert between > 0.05  # else the constants would have hidden everything


@both
def test_the_bonus_by_hand(name: str) -> None:
    """Tried n = 10^8 times, and always at its end: there is no variance, and no correction."""
    agent = pupil(name, delta=0.5, total_steps=2)
    for _ in range(2):
        agent.seen.record(0, 0, 1, 0.25)
    n, rho, listed, outcome, tau = agent.seen.arrays
    agent.seen.restore(Seen(n * (10**8 // 2), rho * (10**8 // 2), listed, outcome, tau * 5 * 10**7))
    agent.done[0, 1] = True
    agent.begin_episode(0, 0)
    log = math.log(5 * 5 * 3 * 2 / 0.5)
    bonus = 7 * 4 * log / 10**4 if name == "ucbvi-ch" else 14 * 4 * log / (3 * 10**8)
    correction = 0.0 if name == "ucbvi-ch" else math.sqrt(8 * 4**2 / 10**8)  # never there before
    assert agent.table.values[-1, 0, 0] == pytest.approx(0.25 + bonus)
    assert agent.table.values[:-1, 0, 0] == pytest.approx(0.25 + bonus + correction)
    assert (agent.table.values[:, 0, 1] == 4.0).all()


@both
def test_rewards_of_another_range_scale_the_plan(name: str) -> None:
    rng = np.random.default_rng(3)
    one, thrice = pupil(name), pupil(name, r_max=3.0)
    seen = counted(rng, 10**9)
    one.seen.restore(seen)
    thrice.seen.restore(seen._replace(rho=3.0 * seen.rho))
    for agent in (one, thrice):
        agent.table.visits[:] = 10**8
        agent.begin_episode(0, 0)
    np.testing.assert_allclose(thrice.table.values, 3.0 * one.table.values)
    assert (one.table.values < H).any()


@both
@pytest.mark.parametrize("loop", ["play", "rush"])
def test_values_never_rise_and_visits_are_those_of_the_stages(name: str, loop: str) -> None:
    tried = trial(name, errand(slip=0.2, limit=15), horizon=6)
    agent = tried.agent
    assert isinstance(agent, UCBVIAzar)
    before = agent.table.values.copy()
    for _ in range(40):
        getattr(tried, loop)(5)
        assert (agent.table.values <= before).all()
        before = agent.table.values.copy()
    if name == "ucbvi-bf":
        n = agent.seen.arrays.n
        assert (agent.table.visits.sum(axis=0) == n.sum(axis=1)).all()
        assert agent.table.visits[0].sum() >= agent.table.visits[1].sum()
        assert (agent.table.visits[0] > 0).sum() == 1  # where episodes begin
