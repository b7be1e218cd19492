"""Buckets: numbers in the order in which they turn up, found again at both speeds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import qrmax
from qrmax.agents import step_loops
from qrmax.agents.buckets.buckets import FIRST, NOTHING, Buckets, hash_of
from qrmax.agents.buckets.simhash import simhash, uniform_grid
from qrmax.errors import ModelError, ObservationError, ParameterError
from qrmax.problems.observations import Observations
from qrmax.problems.plane import Plane
from qrmax.problems.sensor import Sensor

pytestmark = pytest.mark.small_enough_without_jit

PLANE = Observations([0.0, -5.0], [10.0, 5.0])
HALF_OPEN = Observations([-np.inf, 0.0], [np.inf, 10.0])


def hashed(
    box: Observations = PLANE, functions: int = 4, bits: int = 8, *, aware: bool = False
) -> Buckets:
    projection = simhash(box.dimension, functions, bits, 1.0, np.random.default_rng(7))
    return Buckets(box, projection, event_aware=aware)


def gridded(box: Observations = PLANE, cells: int = 10, *, aware: bool = False) -> Buckets:
    return Buckets(box, uniform_grid(box.dimension, cells), event_aware=aware)


def on_the_way(count: int, seed: int = 0, box: Observations = PLANE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low, high = np.maximum(box.low, -20.0), np.minimum(box.high, 20.0)
    return rng.uniform(low - 1.0, high + 1.0, (count, box.dimension))


kinds = pytest.mark.parametrize("kind", [hashed, gridded])


# --- numbering


@kinds
@given(
    visits=st.lists(
        st.tuples(st.floats(-2.0, 12.0), st.floats(-7.0, 7.0), st.integers(0, 3)), max_size=60
    ),
    aware=st.booleans(),
)
def test_what_has_the_same_key_has_the_same_number_in_order_of_appearance(
    kind: object, visits: list[tuple[float, float, int]], aware: bool
) -> None:
    buckets = kind(aware=aware)
    seen: dict[tuple[int, ...], int] = {}
    for x, y, label in visits:
        key = buckets._key([x, y], label)
        assert key[0] == (label if aware else 0)
        assert buckets.find([x, y], label) == seen.get(key)
        assert buckets.number([x, y], label) == seen.setdefault(key, len(seen))
        assert buckets.number([x, y], label) == buckets.find([x, y], label) == seen[key]
        assert len(buckets) == len(seen)


@pytest.mark.parametrize(
    "buckets", [hashed(functions=16, bits=16), gridded(cells=200), gridded(cells=60, aware=True)]
)
def test_growth_never_changes_a_number(buckets: Buckets) -> None:
    """Thousands of buckets: the table of keys and that of slots double several times."""
    places, labels = on_the_way(6000), np.random.default_rng(1).integers(0, 3, 6000)
    rooms, given_before = set(), np.zeros(0, dtype=np.int64)
    for upto in range(300, len(places) + 1, 300):
        for place, label in zip(places[upto - 300 : upto], labels[upto - 300 : upto], strict=True):
            buckets.number(place, int(label))
        found = buckets.find_all(places[:upto], labels[:upto])
        np.testing.assert_array_equal(found[: upto - 300], given_before)
        rooms.add((len(buckets.lookup().keys), len(buckets.lookup().slots)))
        given_before = found
    assert len(buckets) == given_before.max() + 1 > 1500
    assert len(rooms) >= 4


def test_labels_tell_buckets_apart_only_where_they_are_event_aware() -> None:
    aware, unaware = gridded(aware=True), gridded()
    assert [aware.number([1.0, 1.0], label) for label in (0, 2, 1, 2)] == [0, 1, 2, 1]
    assert [unaware.number([1.0, 1.0], label) for label in (0, 2, 1, 2)] == [0] * 4


@kinds
def test_all_at_once_is_as_one_by_one(kind: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmax.agents.buckets.buckets.AT_ONCE", 700)  # in several stretches
    buckets = kind(aware=True)
    places, labels = on_the_way(400), np.random.default_rng(1).integers(0, 3, 400)
    for place, label in zip(places[:200], labels[:200], strict=True):
        buckets.number(place, int(label))
    expected = [
        buckets.find(place, int(label)) for place, label in zip(places, labels, strict=True)
    ]
    assert buckets.find_all(places, labels).tolist() == [
        NOTHING if number is None else number for number in expected
    ]
    assert None in expected
    assert buckets.find_all(np.empty((0, 2)), []).shape == (0,)
    other = kind(aware=True)
    one_by_one = [
        buckets.number(place, int(label)) for place, label in zip(places, labels, strict=True)
    ]
    assert other.number_all(places, labels).tolist() == one_by_one
    with pytest.raises(ParameterError, match=r"labels have shape \(3,\); needed: .* 400 "):
        buckets.find_all(places, [0, 1, 2])
    with pytest.raises(ObservationError, match="nan in dimension 1"):
        buckets.find_all([[0.0, 0.0], [0.0, np.nan]], [0, 0])


# --- what is no observation


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ([np.nan, 0.0], "has nan in dimension 0"),
        ([0.0, np.inf], "has inf in dimension 1"),
        ([0.0], "has 1 numbers; needed: 2"),
        ([0.0, 0.0, 0.0], "has 3 numbers; needed: 2"),
        ([[0.0, 0.0]], r"has the shape \(1, 2\); needed: \(2,\)"),
        (None, "nan|numbers"),
    ],
)
def test_what_is_no_observation_has_no_bucket(observation: object, message: str) -> None:
    buckets = hashed()
    for look in (buckets.number, buckets.find):
        with pytest.raises(ObservationError, match=message):
            look(observation, 0)
    assert len(buckets) == 0


def test_a_picture_has_a_shape_and_a_kind_of_number() -> None:
    picture = Observations(np.zeros((2, 3), dtype=np.uint8), np.full((2, 3), 255, dtype=np.uint8))
    buckets = gridded(picture, cells=4)
    dark, light = np.zeros((2, 3), dtype=np.uint8), np.full((2, 3), 255, dtype=np.uint8)
    assert [buckets.number(each, 0) for each in (dark, light, dark)] == [0, 1, 0]
    assert buckets.find(dark.reshape(-1), 0) == 0
    assert buckets.find(dark.astype(np.float32), 0) == 0
    with pytest.raises(ObservationError, match=r"the shape \(3, 2\); needed: \(2, 3\)"):
        buckets.find(dark.T, 0)


def test_what_is_out_of_bounds_is_clipped_and_what_has_none_is_squashed() -> None:
    buckets = gridded(HALF_OPEN, cells=4)
    assert buckets.number([0.5, 11.0], 0) == buckets.number([0.5, 10.0], 0)
    far, farther, near = (buckets.number([x, 5.0], 0) for x in (1e6, 1e300, 0.5))
    assert far == farther != near


# --- at both speeds


@njit
def bucket(ground: step_loops.Ground, label: int) -> int:
    """Compiled code alone can call it."""
    step_loops._sense(ground, np.zeros(1), np.zeros(1, dtype=np.int64))
    return step_loops._bucket(ground, label)


def ground(buckets: Buckets, scale: np.ndarray) -> step_loops.Ground:
    """A plane in which only the units matter; a line has a second coordinate that is not seen."""
    nowhere = np.zeros((1, 2))
    plane = Plane(
        nowhere, nowhere[0], np.ones((1, 4), dtype=bool), 1, np.zeros(1), scale.astype(float)
    )
    d = len(scale)
    return step_loops.Ground(plane, np.zeros(2), Sensor.of(d), np.zeros(d), buckets.lookup())


def compiled(buckets: Buckets, scale: np.ndarray, place: np.ndarray, label: int) -> int:
    where = ground(buckets, scale)
    where.position[: len(place)] = place
    return bucket(where, label)


LINE = Observations([0.0], [1.0])
LOOKUPS = {
    f"{kind.__name__} {name}{' aware' * aware}": (kind(box, aware=aware), np.array(scale))
    for kind, (name, box, scale), aware in product(
        (hashed, gridded),
        [
            ("line", LINE, [0.05]),
            ("plane", PLANE, [1.0, 1.0]),
            ("other units", PLANE, [0.025, 0.1]),
            ("half open", HALF_OPEN, [1.0, 1.0]),
        ],
        (False, True),
    )
}


@pytest.mark.parametrize(("buckets", "scale"), LOOKUPS.values(), ids=LOOKUPS.keys())
def test_the_compiled_lookup_finds_the_same_bucket(buckets: Buckets, scale: np.ndarray) -> None:
    box = buckets.observations
    places, labels = on_the_way(400, box=box) / scale, np.random.default_rng(2).integers(0, 3, 400)
    for place, label in zip(places[:200], labels[:200], strict=True):
        buckets.number(place * scale, int(label))
    known = 0
    for place, label in zip(places, labels, strict=True):
        expected = buckets.find(place * scale, int(label))
        known += expected is not None
        found = compiled(buckets, scale, place, int(label))
        assert found == (NOTHING if expected is None else expected)
    assert known > 200


def test_the_compiled_lookup_finds_each_of_thousands() -> None:
    buckets = gridded(cells=100)
    middles = [(x + 0.05, y + 0.05) for x in np.arange(0, 10, 0.2) for y in np.arange(-5, 5, 0.2)]
    numbers = [buckets.number(place, 0) for place in middles]
    assert numbers == list(range(2500))
    where = ground(buckets, np.ones(2))
    for number in range(0, 2500, 7):
        where.position[:] = middles[number]
        assert bucket(where, 0) == number


@pytest.mark.parametrize("name", ["continuous/line/ab", "continuous/bottleneck/abc"])
def test_the_borders_of_cells_of_a_problem_fall_on_the_same_side(name: str) -> None:
    """Where rounding decides, it decides alike."""
    problem = qrmax.make(name)
    scale, columns = problem.plane.scale, problem.plane.columns
    buckets = gridded(problem.observations, cells=columns)
    for x in [*range(columns), *np.nextafter(np.arange(1.0, columns), 0.0)]:
        place = np.array([x, 0.5])[: len(scale)]
        number = buckets.number(place * scale, 0)
        assert compiled(buckets, scale, place, 0) == number


@pytest.mark.parametrize("cells", [10, 30, 100])
def test_what_a_lookup_costs_does_not_depend_on_how_many_buckets_there_are(cells: int) -> None:
    """How many slots it looks at until it has found a key: one or two."""
    buckets = gridded(cells=cells)
    for place in np.random.default_rng(0).permutation(cells * cells):
        y, x = divmod(int(place), cells)
        buckets.number([(x + 0.5) * 10.0 / cells, (y + 0.5) * 10.0 / cells - 5.0], 0)
    lookup = buckets.lookup()
    size, looks = len(lookup.slots), []
    for number in range(len(buckets)):
        slot, count = hash_of(tuple(lookup.keys[number].tolist())) & (size - 1), 1
        while lookup.slots[slot] != number:
            slot, count = (slot + 1) & (size - 1), count + 1
        looks.append(count)
    assert len(looks) == cells * cells <= size / 2
    assert np.mean(looks) < 1.6
    assert max(looks) < 30


# --- keeping


@kinds
@pytest.mark.parametrize("count", [0, 1, FIRST, FIRST + 1, 700])
def test_a_snapshot_restores_every_number(kind: object, count: int) -> None:
    buckets, copy = kind(aware=True), kind(aware=True)
    places, labels = on_the_way(2000), np.random.default_rng(1).integers(0, 3, 2000)
    for place, label in zip(places, labels, strict=True):
        if len(buckets) == count:
            break
        buckets.number(place, int(label))
    copy.number([9.0, 3.0], 1)  # what it knew before is forgotten
    copy.restore(buckets.snapshot())
    for one, other in zip(buckets.snapshot().values(), copy.snapshot().values(), strict=True):
        assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
    np.testing.assert_array_equal(copy.find_all(places, labels), buckets.find_all(places, labels))
    for place, label in zip(places[::-1], labels[::-1], strict=True):  # and both go on alike
        assert copy.number(place, int(label)) == buckets.number(place, int(label))
    np.testing.assert_array_equal(copy.lookup().slots, buckets.lookup().slots)


def test_a_snapshot_brings_its_hyperplanes() -> None:
    one, other = (
        Buckets(PLANE, simhash(2, 4, 8, 1.0, np.random.default_rng(seed))) for seed in (1, 2)
    )
    for place in on_the_way(100):
        one.number(place, 0)
    other.restore(one.snapshot())
    assert other.find_all(on_the_way(100), [0] * 100).tolist() == [
        one.find(place, 0) for place in on_the_way(100)
    ]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("keys", lambda keys: np.concatenate([keys, keys[:1]]), "is listed twice"),
        ("keys", lambda keys: keys[:, :1], "do not fit"),
        ("rows", lambda rows: rows[1:], "do not fit"),
        ("rows", lambda rows: rows * np.nan, "hyperplane"),
        ("rows", lambda rows: rows * np.inf, "hyperplane"),
        ("rows", lambda rows: rows * 1e30, "hyperplane"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(name: str, change: object, message: str) -> None:
    buckets = hashed()
    for place in on_the_way(30):
        buckets.number(place, 0)
    kept = buckets.snapshot()
    with pytest.raises(ModelError, match=message):
        buckets.restore({**kept, name: change(kept[name])})
