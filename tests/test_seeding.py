import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmax import seeding
from qrmax.errors import ParameterError
from qrmax.seeding import BLOCK, PER_STEP, Stream, stream, stream_at


def numbers(source: Stream, count: int) -> list[float]:
    return [source.random() for _ in range(count)]


def test_a_stream_depends_on_seed_and_name_alone() -> None:
    first = numbers(stream(7, "world"), 5)
    other = stream(7, "agent")
    numbers(other, 3)
    stream(8, "world").random()
    assert numbers(stream(7, "world"), 5) == first
    assert numbers(stream(np.int64(7), "world"), 5) == first


def test_streams_are_the_same_on_every_machine() -> None:
    """Results that were published with a seed stay what they were."""
    assert numbers(stream(7, "world"), 3) == [
        0.34271632161767585,
        0.6016633008492543,
        0.2919109959990024,
    ]
    assert stream(0, "").random() == 0.40724949650608866


def test_different_seeds_and_names_give_different_streams() -> None:
    given = [(seed, name) for seed in range(5) for name in ("world", "agent", "evaluation", "")]
    firsts = {stream(seed, name).random() for seed, name in given}
    assert len(firsts) == len(given)


def test_seeds_may_be_as_large_as_one_likes() -> None:
    assert stream(2**200, "world").random() != stream(2**200 + 1, "world").random()


def test_the_numbers_are_those_of_numpys_generator() -> None:
    source = stream(7, "world")
    bits = np.random.PCG64()
    bits.state = source.position()
    assert (
        numbers(source, 2 * BLOCK + 3) == np.random.Generator(bits).random(2 * BLOCK + 3).tolist()
    )


def test_the_numbers_are_uniform() -> None:
    drawn = np.array(numbers(stream(7, "world"), 20_000))
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    shares = np.histogram(drawn, bins=10, range=(0, 1))[0] / drawn.size
    np.testing.assert_allclose(shares, 0.1, atol=0.01)


@given(before=st.integers(0, 40), after=st.integers(1, 40), block=st.integers(PER_STEP, 9))
@settings(max_examples=40)
def test_a_stream_goes_on_exactly_from_any_position(before: int, after: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeding, "BLOCK", block)
        original = stream(7, "world")
        numbers(original, before)
        position = json.loads(json.dumps(original.position()))
        copy = stream_at(position)
        assert numbers(copy, after) == numbers(original, after)
        assert copy.position() == original.position()


@pytest.mark.parametrize("before", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_a_stream_goes_on_exactly_at_the_border_of_a_block(before: int) -> None:
    original, straight = stream(7, "world"), stream(7, "world")
    numbers(original, before)
    numbers(straight, before)
    copy = stream_at(original.position())
    assert numbers(copy, 3) == numbers(original, 3) == numbers(straight, 3)


def test_asking_for_the_position_changes_nothing() -> None:
    watched, alone = stream(7, "world"), stream(7, "world")
    for _ in range(20):
        watched.position()
        assert watched.random() == alone.random()
    assert watched.position() == alone.position()


@pytest.mark.parametrize("before", [0, 5, BLOCK - 2, BLOCK])
def test_drawing_ahead_moves_nothing(before: int) -> None:
    """Compiled loops take numbers from the block and move its place."""
    source, plain = stream(7, "world"), stream(7, "world")
    numbers(source, before)
    numbers(plain, before)
    source.refill()
    assert source.position() == plain.position()
    assert source.block.size - source.at[0] >= PER_STEP
    taken = source.block[source.at[0] : source.at[0] + PER_STEP].tolist()
    source.at[0] += PER_STEP
    assert taken == numbers(plain, PER_STEP)
    assert source.position() == plain.position()


@pytest.mark.parametrize("seed", [-1, 1.0, 1.5, "7", None, True, [7]])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with pytest.raises(ParameterError, match=r"^seed is .*; allowed: whole numbers from 0 on"):
        stream(seed, "world")


GOOD = stream(7, "world").position()


@pytest.mark.parametrize(
    "position",
    [
        {},
        None,
        [],
        "PCG64",
        7,
        {"bit_generator": "PCG64"},
        {**GOOD, "bit_generator": "MT19937"},
        {**GOOD, "state": None},
        {**GOOD, "state": {}},
        {**GOOD, "state": {**GOOD["state"], "state": "x"}},
        {**GOOD, "state": {**GOOD["state"], "state": -1}},
        {**GOOD, "state": {**GOOD["state"], "inc": 2**130}},
        {**GOOD, "state": {**GOOD["state"], "inc": 1.5}},
        {**GOOD, "has_uint32": "no"},
        {**GOOD, "more": 1},
        {**GOOD, "uinteger": 2**70},
    ],
    ids=lambda position: str(position)[:40],
)
def test_what_is_no_position_is_refused(position: object) -> None:
    with pytest.raises(ParameterError, match="not a position of a random stream"):
        stream_at(position)
