import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.empirical.counts import NO_OUTCOME, Counter


def test_a_pair_is_known_once_it_has_had_its_samples() -> None:
    counter = Counter(2, 2, threshold=3)
    assert [counter.record(1, 0, outcome=0, reward=0.0) for _ in range(4)] == [
        False,
        False,
        True,
        False,  # it was known before
    ]
    assert counter.is_known(1, 0)
    assert not counter.is_known(0, 1)


def test_what_comes_after_a_pair_is_known_is_not_counted() -> None:
    counter = Counter(1, 1, threshold=2)
    for outcome in (5, 6, 7):
        counter.record(0, 0, outcome, reward=1.0)
    n, outcome, tau, rho = counter.counts
    assert n.tolist() == [[2]]
    assert outcome[0, 0].tolist() == [5, 6, NO_OUTCOME, NO_OUTCOME]
    assert tau[0, 0].tolist() == [1, 1, 0, 0]
    assert rho.sum() == 2.0


def test_an_estimate_is_of_what_was_seen() -> None:
    counter = Counter(1, 1, threshold=4)
    for outcome, reward in [(9, 1.0), (3, -2.0), (9, 5.0), (9, 0.0)]:
        counter.record(0, 0, outcome, reward)
    outcomes, prob, reward = counter.estimate(0, 0)
    assert outcomes.tolist() == [9, 3]  # in the order of their first time
    assert prob.tolist() == [0.75, 0.25]
    assert reward == 1.0


def test_outcome_0_is_an_outcome() -> None:
    counter = Counter(1, 1, threshold=2)
    counter.record(0, 0, outcome=0, reward=0.0)
    counter.record(0, 0, outcome=1, reward=0.0)
    assert counter.estimate(0, 0).outcomes.tolist() == [0, 1]


def test_there_is_room_for_as_many_outcomes_as_turn_up() -> None:
    counter = Counter(2, 1, threshold=100)
    counter.record(1, 0, outcome=50, reward=2.0)
    for outcome in range(9):  # twice more than there was room for
        counter.record(0, 0, outcome, reward=float(outcome))
        counter.record(0, 0, outcome, reward=0.0)
    n, outcome, tau, rho = counter.counts
    assert outcome.shape == tau.shape == (2, 1, 16)
    assert outcome[0, 0].tolist() == [*range(9), *[NO_OUTCOME] * 7]
    assert tau[0, 0].tolist() == [2] * 9 + [0] * 7
    assert rho[0, 0] == sum(range(9))
    assert (n[1, 0], outcome[1, 0, 0], tau[1, 0, 0], rho[1, 0]) == (1, 50, 1, 2.0)
    assert [array.dtype for array in counter.counts] == [np.int32, np.int32, np.int32, np.float64]


def test_moves_and_rewards_count_until_each_has_enough() -> None:
    samples = [(5, 1.0), (6, 3.0), (7, 8.0)]
    quick_moves = Counter(1, 1, threshold=2, for_rewards=3)
    quick_rewards = Counter(1, 1, threshold=3, for_rewards=2)
    for counter in (quick_moves, quick_rewards):
        became_known = [counter.record(0, 0, *sample) for sample in samples]
        assert became_known == [False, False, True]
    assert quick_moves.estimate(0, 0).outcomes.tolist() == [5, 6]
    assert quick_moves.estimate(0, 0).prob.tolist() == [0.5, 0.5]
    assert quick_moves.estimate(0, 0).reward == 4.0
    assert quick_rewards.estimate(0, 0).outcomes.tolist() == [5, 6, 7]
    assert quick_rewards.estimate(0, 0).reward == 2.0


def test_a_counter_that_grows_keeps_what_it_has_counted() -> None:
    counter, roomy = Counter(1, 2, threshold=2), Counter(3, 5, threshold=2)
    for each in (counter, roomy):
        each.record(0, 1, 0, 1.0)
    counter.grow(3, 5)
    for each in (counter, roomy):
        each.record(2, 4, 2, 7.0)
    for ours, theirs in zip(counter.counts, roomy.counts, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("room", [1, 3])
def test_the_room_it_starts_with_makes_no_difference(room: int) -> None:
    small, large = Counter(1, 1, threshold=9, outcomes=room), Counter(1, 1, threshold=9)
    for outcome in [4, 1, 4, 2, 7, 0, 1, 4, 3]:
        assert small.record(0, 0, outcome, 0.5) == large.record(0, 0, outcome, 0.5)
    for mine, theirs in zip(small.estimate(0, 0), large.estimate(0, 0), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 6), st.integers(-3, 3)),
        max_size=80,
    ),
    st.integers(1, 8),
)
def test_counting_is_what_counting_by_hand_gives(
    samples: list[tuple[int, int, int, int]], threshold: int
) -> None:
    counter = Counter(2, 3, threshold=threshold, outcomes=1)
    by_hand: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, j, outcome, reward in samples:
        seen = by_hand.setdefault((i, j), [])
        if len(seen) < threshold:
            seen.append((outcome, reward))
        before = counter.is_known(i, j)
        assert counter.record(i, j, outcome, reward) == (counter.is_known(i, j) and not before)
    for (i, j), seen in by_hand.items():
        outcomes, prob, reward = counter.estimate(i, j)
        assert outcomes.tolist() == list(dict.fromkeys(outcome for outcome, _ in seen))
        shares = [sum(o == other for o, _ in seen) / len(seen) for other in outcomes]
        assert prob.tolist() == shares
        assert reward == sum(paid for _, paid in seen) / len(seen)
