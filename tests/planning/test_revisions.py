"""Estimates that are revised again and again: the values are always those of a full solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmax.errors import ModelError
from qrmax.planning import reference
from qrmax.planning.incremental import IncrementalPlanner

pytestmark = pytest.mark.small_enough_without_jit

WIDTH = 3  # outcomes, at most
OPTIMISTIC = 20.0


@dataclass(frozen=True)
class World:
    """The world factor of a `Model`, as the reference reads it."""

    succ: np.ndarray  # [s, a, k]
    prob: np.ndarray  # [s, a, k]
    reward: np.ndarray  # [s, a]

    def expected_reward(self) -> np.ndarray:
        return self.reward


class Model:
    """All that has been said so far, in the form that the reference solver takes."""

    def __init__(self, n_states: int, n_task_states: int, n_actions: int) -> None:
        self.n_states, self.n_task_states, self.n_actions = n_states, n_task_states, n_actions
        pairs, events = (n_states, n_actions), (n_task_states, n_states)
        self.mdp = World(np.zeros((*pairs, WIDTH), int), np.zeros((*pairs, WIDTH)), np.zeros(pairs))
        rewards = np.zeros((*events, WIDTH))  # the mean, for each outcome
        self.table = (np.zeros((*events, WIDTH), int), np.zeros((*events, WIDTH)), rewards)
        self.label = np.arange(n_states)
        self.known_env, self.known_task = np.zeros(pairs, bool), np.zeros(events, bool)
        self.env_bonus = np.zeros(pairs)
        self.bonus = np.zeros((n_states, n_task_states, n_actions))
        self.unknown = np.full(self.bonus.shape, OPTIMISTIC)
        self._done = np.zeros((n_states, n_task_states), bool)

    def done(self) -> np.ndarray:
        return self._done

    def values(self, gamma: float) -> np.ndarray:
        """V by the reference, `[s, q]`."""
        bonus = self.env_bonus[:, None, :] + self.bonus
        return reference.solve_optimistic(
            self, gamma, self.known_env, self.known_task, self.unknown, bonus
        )

    def product_estimate(self, s: int, q: int, a: int) -> tuple[np.ndarray, np.ndarray, float]:
        """The estimate of ((s, q), a), if all of it is known: successors s |Q| + q."""
        succ, prob = self.mdp.succ[s, a], self.mdp.prob[s, a]
        next_q, chance, paid = (part[q, succ] for part in self.table)  # [k, j]
        pairs, weights = succ[:, None] * self.n_task_states + next_q, prob[:, None] * chance
        reward = self.mdp.reward[s, a] + (weights * paid).sum()
        return pairs.ravel(), weights.ravel(), float(reward)


OPERATIONS = ("env", "env", "task", "bonus", "pair bonus", "unknown", "pair unknown", "finish")


class Teller:
    """Random news, entered into a model and told to a planner."""

    def __init__(self, model: Model, rewards: tuple[float, ...], seed: int) -> None:
        self.model, self.rewards, self.rng = model, rewards, np.random.default_rng(seed)

    def tell(self, planner: IncrementalPlanner, kind: str) -> None:
        model, rng = self.model, self.rng
        s, q, a = (int(rng.integers(n)) for n in model.bonus.shape)
        number = float(rng.choice(self.rewards))
        if kind == "env":
            parts = (part[s, a] for part in (model.mdp.succ, model.mdp.prob))
            count = self.estimate(*parts, model.n_states)
            model.mdp.reward[s, a], model.known_env[s, a] = number, True
            succ, prob = model.mdp.succ[s, a, :count], model.mdp.prob[s, a, :count]
            planner.learn_env(s, a, succ, prob, number)
        elif kind == "task":
            next_q, prob, reward = (part[q, s] for part in model.table)
            count = self.estimate(next_q, prob, model.n_task_states)
            reward[:], model.known_task[q, s] = number, True
            planner.learn_task(q, s, next_q[:count], prob[:count], number)
        elif kind == "bonus":
            model.env_bonus[s, a] = number
            planner.set_bonus(s, a, number)
        elif kind == "pair bonus":
            model.bonus[s, q, a] = number
            planner.set_bonus(s, a, number, q=q)
        elif kind == "unknown":
            model.unknown[s, :, a] = number
            planner.set_unknown(s, a, number)
        elif kind == "pair unknown":
            model.unknown[s, q, a] = number
            planner.set_unknown(s, a, number, q=q)
        elif rng.random() < 0.3:
            model.done()[s, q] = True
            planner.finish(s, q)

    def estimate(self, outcomes: np.ndarray, prob: np.ndarray, size: int) -> int:
        """Another estimate: any outcomes, some of them twice or with probability 0."""
        count = int(self.rng.integers(1, WIDTH + 1))
        outcomes[:count] = self.rng.integers(0, size, count)
        weights = self.rng.random(count) * (self.rng.random(count) < 0.8)
        weights[0] += weights.sum() == 0.0
        prob[:] = 0.0
        prob[:count] = weights / weights.sum()
        return count


sizes = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
rewards = st.sampled_from([(0.0, 1.0, 10.0), (1.0, 5.0), (0.0, 2.0, -3.0), (-1.0, -7.0)])
operations = st.lists(st.sampled_from((*OPERATIONS, "replan")), min_size=1, max_size=60)


@given(sizes, rewards, st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.9]), operations)
@settings(max_examples=150)
def test_after_any_revisions_the_values_are_those_of_a_full_solve(
    size: tuple[int, int, int], paid: tuple[float, ...], seed: int, gamma: float, kinds: list[str]
) -> None:
    model = Model(*size)
    teller = Teller(model, paid, seed)
    planner = IncrementalPlanner(*size, gamma=gamma, optimistic=OPTIMISTIC, tolerance=1e-12)
    for kind in (*kinds, "replan"):
        if kind == "replan":
            planner.replan()
            expected = model.values(gamma)
            np.testing.assert_allclose(planner.value, expected, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(planner.q.max(axis=2), planner.value, rtol=1e-8, atol=1e-8)
        else:
            teller.tell(planner, kind)


@given(sizes, rewards, st.integers(0, 2**32 - 1), operations)
@settings(max_examples=60)
def test_revisions_of_the_factors_are_revisions_of_the_product(
    size: tuple[int, int, int], paid: tuple[float, ...], seed: int, kinds: list[str]
) -> None:
    model = Model(*size)
    teller = Teller(model, paid, seed)
    told = {"gamma": 0.9, "optimistic": OPTIMISTIC, "tolerance": 1e-12}
    factored = IncrementalPlanner(*size, **told)
    n_states, n_q, n_actions = size
    product = IncrementalPlanner.without_task(n_states * n_q, n_actions, **told)
    for q, s in np.ndindex(n_q, n_states):  # so that what is known stays known
        model.known_task[q, s] = True
        model.table[0][q, s], model.table[1][q, s, 0] = q, 1.0
        factored.learn_task(q, s, [q], [1.0], 0.0)
    for kind in kinds:
        if kind == "replan":
            factored.replan()
        else:
            teller.tell(factored, kind)
        for s, q, a in np.ndindex(*model.bonus.shape):
            x = s * n_q + q
            if model.known_env[s, a]:
                product.learn_env(x, a, *model.product_estimate(s, q, a))
            product.set_bonus(x, a, model.env_bonus[s, a] + model.bonus[s, q, a])
            product.set_unknown(x, a, model.unknown[s, q, a])
            if model.done()[s, q]:
                product.finish(x, 0)
        product.replan()
    factored.replan()
    expected = product.value.reshape(n_states, n_q)
    np.testing.assert_allclose(factored.value, expected, rtol=1e-8, atol=1e-8)


@given(sizes, rewards, st.integers(0, 2**32 - 1), operations, st.integers(0, 60))
@settings(max_examples=60)
def test_a_planner_restored_between_revisions_resumes_bit_for_bit(
    size: tuple[int, int, int], paid: tuple[float, ...], seed: int, kinds: list[str], at: int
) -> None:
    """Also if something waits for a backup, and if the only negative reward has been revised."""
    told = {"gamma": 0.9, "optimistic": OPTIMISTIC, "tolerance": 1e-12}
    first, copy = IncrementalPlanner(*size, **told), IncrementalPlanner(*size, **told)
    tellers = [Teller(Model(*size), paid, seed) for _ in range(2)]
    for number, kind in enumerate(kinds):
        if number == at:
            copy.restore({name: array.copy() for name, array in first.snapshot().items()})
        for planner, teller in zip((first, copy), tellers, strict=True):
            if planner is copy and number < at:
                continue
            if kind == "replan":
                planner.replan()
            else:
                teller.tell(planner, kind)
        if number < at:
            tellers[1].rng.bit_generator.state = tellers[0].rng.bit_generator.state
    if len(kinds) > at:
        assert first.rules == copy.rules
        for name, array in first.snapshot().items():
            np.testing.assert_array_equal(array, copy.snapshot()[name])


def corridor(length: int) -> IncrementalPlanner:
    """One action, one cell ahead; the last cell ends the episode."""
    planner = IncrementalPlanner.without_task(length, 1, gamma=0.9, optimistic=1.0, tolerance=1e-9)
    planner.finish(length - 1, 0)
    for s in range(length - 1):
        planner.learn_env(s, 0, [s + 1], [1.0], float(s == length - 2))
    planner.replan()
    return planner


def test_a_revision_costs_what_it_reaches() -> None:
    planner = corridor(100)
    planner.learn_env(2, 0, [3], [1.0], 0.5)
    assert planner.replan() == 3  # the state itself and its two predecessors
    planner.learn_env(2, 0, [3], [1.0], 0.5)
    assert planner.replan() == 1  # nothing has changed


def test_a_revision_that_replaces_a_successor_no_longer_hears_of_the_old_one() -> None:
    planner = corridor(6)
    planner.learn_env(0, 0, [3], [1.0], 0.0)
    planner.replan()
    assert planner.value[0, 0] == pytest.approx(0.9**2)
    planner.learn_env(1, 0, [1], [1.0], 0.0)
    assert planner.replan() > 100  # it decays for long, and nobody else listens
    assert planner.value[0, 0] == pytest.approx(0.9**2)
    planner.learn_env(3, 0, [4], [1.0], 1.0)
    planner.replan()
    assert planner.value[0, 0] == pytest.approx(0.9 * 1.9)


def test_a_successor_that_two_actions_share_stays_linked_for_the_other() -> None:
    planner = IncrementalPlanner.without_task(3, 2, gamma=0.5, optimistic=4.0, tolerance=1e-12)
    planner.learn_env(0, 0, [2], [1.0], 0.0)
    planner.learn_env(0, 1, [2], [1.0], 0.0)
    planner.learn_env(0, 0, [1], [1.0], -9.0)
    planner.replan()
    assert planner.value[0, 0] == 2.0
    planner.finish(2, 0)
    planner.replan()
    assert planner.value[0, 0] == 0.0


def test_a_value_falls_to_that_of_an_unknown_action_although_there_are_costs() -> None:
    planner = IncrementalPlanner.without_task(2, 2, gamma=0.5, optimistic=1.0, tolerance=1e-9)
    planner.learn_env(0, 0, [1], [1.0], 8.0)
    planner.learn_env(1, 0, [1], [1.0], -1.0)
    planner.replan()
    assert planner.value[0, 0] == 8.5
    planner.learn_env(0, 0, [1], [1.0], 0.0)
    planner.replan()
    assert planner.value[0, 0] == 1.0


def test_a_cost_that_has_been_revised_is_remembered_by_a_snapshot() -> None:
    """By it depends when a change counts as none: a resumed planner must not differ in that."""
    planner = corridor(3)
    planner.learn_env(0, 0, [1], [1.0], -1.0)
    planner.learn_env(0, 0, [1], [1.0], 1.0)
    planner.replan()
    restored = corridor(3)
    assert not restored.rules.signed
    restored.restore(planner.snapshot())
    assert restored.rules == planner.rules
    assert planner.rules.signed


def test_bonuses_of_a_pair_and_of_a_triple_add_up() -> None:
    planner = IncrementalPlanner(1, 2, 1, gamma=0.5, optimistic=9.0)
    planner.learn_env(0, 0, [0], [1.0], 1.0)
    for q in range(2):
        planner.learn_task(q, 0, [q], [1.0], 0.0)
    planner.set_bonus(0, 0, 0.25)
    planner.set_bonus(0, 0, 0.75, q=1)
    planner.replan()
    assert planner.value[0].tolist() == pytest.approx([2.5, 4.0])
    planner.set_bonus(0, 0, 0.0)  # in place of the one before
    planner.replan()
    assert planner.value[0].tolist() == pytest.approx([2.0, 3.5])
    assert planner.q_at(0, 1).tolist() == planner.q[0, 1].tolist()


def test_the_unknown_can_have_a_value_for_each_pair() -> None:
    optimistic = np.array([[[1.0, 2.0]], [[4.0, 3.0]]])  # [s, q, a]
    planner = IncrementalPlanner(2, 1, 2, gamma=0.5, optimistic=optimistic)
    assert planner.value[:, 0].tolist() == [2.0, 4.0]
    assert planner.greedy()[:, 0].tolist() == [1, 0]
    planner.learn_task(0, 1, [0], [1.0], 0.0)
    planner.learn_env(0, 1, [1], [1.0], -1.5)
    planner.replan()
    assert planner.q[0, 0].tolist() == [1.0, 0.5]
    planner.set_unknown(0, 0, 0.25)
    planner.replan()
    assert planner.value[0, 0] == 0.5
    assert planner.greedy()[0, 0] == 1


def test_bonuses_and_values_of_the_unknown_grow_with_the_planner() -> None:
    planner = IncrementalPlanner.without_task(1, 1, gamma=0.5, optimistic=2.0)
    planner.learn_env(0, 0, [0], [1.0], 0.0)
    planner.set_bonus(0, 0, 1.0)
    planner.replan()
    planner.grow(3)
    planner.set_unknown(2, 0, 7.0)
    planner.learn_env(1, 0, [2], [1.0], 0.0)
    planner.replan()
    assert planner.value[:, 0].tolist() == pytest.approx([2.0, 3.5, 7.0])


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ((0, 0, [2], [1.0], 0.0), "action 0 in state 0: an outcome is not one of 0 to 1"),
        ((0, 0, [0, 1], [1.0], 0.0), "action 0 in state 0: 2 outcomes and 1 probabilities"),
        ((0, 0, [0, 1], [0.9, 0.9], 0.0), "probabilities are not a distribution"),
        ((0, 0, [0], [float("nan")], 0.0), "probabilities are not a distribution"),
        ((0, 0, [0], [1.0], float("inf")), "the mean reward is inf; allowed: a finite number"),
        ((-1, 0, [0], [1.0], 0.0), "state -1 is not one of 0 to 1"),
        ((0, 1, [0], [1.0], 0.0), "action 1 is not one of 0 to 0"),
    ],
)
def test_an_estimate_that_makes_no_sense_is_refused(told: tuple, words: str) -> None:
    planner = IncrementalPlanner(2, 1, 1, gamma=0.5, optimistic=1.0)
    with pytest.raises(ModelError, match=words):
        planner.learn_env(*told)
    assert planner.replan() == 0


def test_bonuses_that_make_no_sense_are_refused() -> None:
    planner = IncrementalPlanner(2, 1, 1, gamma=0.5, optimistic=1.0)
    with pytest.raises(ModelError, match="inf is not a bonus"):
        planner.set_bonus(0, 0, float("inf"))
    with pytest.raises(ModelError, match="state 2 is not one of 0 to 1"):
        planner.set_unknown(2, 0, 1.0)


def tampered(name: str, number: float) -> dict[str, np.ndarray]:
    planner = corridor(4)
    planner.set_bonus(0, 0, 0.5)
    planner.replan()
    arrays = {key: array.copy() for key, array in planner.snapshot().items()}
    arrays[name].flat[0] = number
    return arrays


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("exploration.bonus", np.nan, "exploration.bonus: a number beyond"),
        ("exploration.env_bonus", np.inf, "exploration.env_bonus: a number beyond"),
        ("exploration.unknown", -np.inf, "exploration.unknown: a number beyond"),
        ("tables.value", 99.0, "tables.value: a value beyond"),
        ("env.succ", 3, "an edge in the chain of another state"),
        ("env.link", -2, "leads to an edge that is not linked"),
    ],
)
def test_a_snapshot_that_lies_is_refused(name: str, number: float, words: str) -> None:
    arrays = tampered(name, number)
    with pytest.raises(ModelError, match=words):
        corridor(4).restore(arrays)


def test_a_snapshot_with_bonuses_of_another_shape_is_refused() -> None:
    arrays = tampered("exploration.bonus", 0.0)
    arrays["exploration.bonus"] = arrays["exploration.bonus"][:, :2]
    with pytest.raises(ModelError, match=r"exploration.bonus holds float64 of shape \(1, 2, 1\)"):
        corridor(4).restore(arrays)
    del arrays["exploration.bonus"]
    with pytest.raises(KeyError):
        corridor(4).restore(arrays)
