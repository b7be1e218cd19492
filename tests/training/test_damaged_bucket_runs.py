"""Files of runs with buckets that hold no run, or no longer: compiled code must never see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrmax
from damage import (
    Change,
    Tables,
    assert_refused,
    holding,
    longer,
    narrower,
    setting,
    table,
    wider,
    without,
    write_changed,
)
from qrmax.empirical.growth import padded
from qrmax.errors import CheckpointError
from small_runs import assert_same_run, session_of

KEYS, ROWS = "agent.buckets.keys", "agent.buckets.rows"
ROOM, TASK_STATES = 64, 4  # of tables; pairs need so many times as much
Described = dict[str, Any]


def a_run(name: str = "bucket-qrmax", steps: int = 70, **settings: Any) -> qrmax.Run:
    """In the middle of an episode."""
    lake = qrmax.make("continuous/frozen-lake/abc", step=0.9, noise=0.2)
    options = {"stop": "budget", "evaluate_every": 10**9, "t_env": 2, "grid": 10, **settings}
    run = qrmax.train(name, lake, max_steps=steps, **options)
    assert not session_of(run).player.over
    assert 1 < len(run.agent.buckets) < ROOM
    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


def state_of(described: Described) -> list[int]:
    state: list[int] = described["task"]["state"]
    return state


def stand(described: Described, x: float, y: float) -> None:
    """At a position, with its observation."""
    described["task"]["position"] = described["task"]["observed"] = [x, y]


def moved(described: Described, arrays: Tables) -> None:
    """Into the cell of another bucket that is known."""
    other = int(state_of(described)[0] == 0)
    key = int(arrays[KEYS][other, 1])
    stand(described, key % 16 + 0.5, key // 16 + 0.5)


def where_nobody_was(described: Described, arrays: Tables) -> None:
    """In a new bucket, under the number that it would get."""
    known = set(arrays[KEYS][:, 1].tolist())
    new = next(x | y << 4 for x in range(10) for y in range(10) if x | y << 4 not in known)
    stand(described, new % 16 + 0.5, new // 16 + 0.5)
    state_of(described)[0] = len(arrays[KEYS])


def filled_up(described: Described, arrays: Tables) -> None:
    """As many buckets as tables have room for; where one stands is none of them."""
    rest = np.arange(1000, 1000 + ROOM - len(arrays[KEYS]))
    more = np.stack([np.zeros_like(rest), rest], axis=1)
    arrays[KEYS] = np.concatenate([arrays[KEYS], more])
    where_nobody_was(described, arrays)


def changed_places(described: Described, arrays: Tables) -> None:
    """The keys of two buckets, one of them that of where one stands."""
    here, there = state_of(described)[0], int(state_of(described)[0] == 0)
    arrays[KEYS][[here, there]] = arrays[KEYS][[there, here]]


def another_number(described: Described, arrays: Tables) -> None:
    here = state_of(described)[0]
    state_of(described)[0] = (here + 1) % len(arrays[KEYS])


def roomier(prefix: str) -> Change:
    """Tables of a room that so few buckets do not need."""

    def change(_: Described, arrays: Tables) -> None:
        for name, array in arrays.items():
            if name.startswith(prefix):
                grown = {length: 2 * length for length in (ROOM, ROOM * TASK_STATES)}
                arrays[name] = padded(array, *(grown.get(length, length) for length in array.shape))

    return change


def too_many_keys(_: Described, arrays: Tables) -> None:
    more = np.arange(2 * ROOM).reshape(ROOM, 2) + 1000
    arrays[KEYS] = np.concatenate([arrays[KEYS], more])


position_to = setting("task", "position")

DESCRIPTIONS: dict[str, Change] = {
    "without a position": without("task", "position"),
    "to the right of the plane": position_to([10.0, 3.5]),
    "to the left of it": position_to([-1e-9, 3.5]),
    "above it": position_to([3.5, -0.5]),
    "below it": position_to([3.5, 10.0]),
    "far away": position_to([1e300, 3.5]),
    "nowhere": position_to([float("nan"), 3.5]),
    "nowhere in y": position_to([3.5, float("nan")]),
    "at infinity": position_to([3.5, float("inf")]),
    "position short": position_to([3.5]),
    "position long": position_to([3.5, 3.5, 3.5]),
    "position text": position_to("here"),
    "position nothing": position_to(None),
    "position no numbers": position_to([None, "x"]),
    "another bucket's position": moved,
    "an observation of another position": setting("task", "observed")([0.5, 0.5]),
    "no observation": setting("task", "observed")([]),
    "a new bucket's position": where_nobody_was,
    "a new bucket where there is no room": filled_up,
    "another bucket's number": another_number,
    "a number that no bucket has": setting("task", "state")([999, 0, 5, 0, 1]),
    "a number below 0": setting("task", "state")([-1, 0, 5, 0, 1]),
    "no functions": setting("config", "functions")(0),
    "a finer grid than keys have room for": setting("config", "grid")(2**20),
    "no grid": setting("config", "grid")(None),
    "another agent": setting("agent")("bucket-rmax"),
    "an agent for numbered states": setting("agent")("qrmax"),
    "a tabular problem": setting("kind")("tabular"),
}


@pytest.mark.parametrize("change", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_description_that_makes_no_sense_is_refused(change: Change, path: Path) -> None:
    a_run().save(path)
    write_changed(path, change)
    assert_refused(path)


TABLES: dict[str, Change] = {
    "keys missing": lambda _, arrays: arrays.pop(KEYS),
    "no keys": table(KEYS, lambda keys: keys[:0]),
    "a key twice": table(KEYS, lambda keys: np.concatenate([keys[:1], keys])),
    "all keys twice": table(KEYS, longer),
    "keys narrower": table(KEYS, narrower),
    "keys wider": table(KEYS, wider),
    "keys flat": table(KEYS, np.ravel),
    "keys of half the precision": table(KEYS, lambda keys: keys.astype(np.int32)),
    "keys as fractions": table(KEYS, lambda keys: keys.astype(np.float64)),
    "keys that changed places": changed_places,
    "more keys than tables have room for": too_many_keys,
    "hyperplanes missing": lambda _, arrays: arrays.pop(ROWS),
    "hyperplanes narrower": table(ROWS, narrower),
    "fewer hyperplanes": table(ROWS, lambda rows: rows[1:]),
    "more hyperplanes": table(ROWS, longer),
    "hyperplanes in single precision": table(ROWS, lambda rows: rows.astype(np.float32)),
    "a hyperplane that is no number": table(ROWS, holding(np.nan, place=1)),
    "a hyperplane at infinity": table(ROWS, holding(np.inf)),
    "a hyperplane too far away": table(ROWS, holding(1e300)),
    "roomier tables": roomier("agent."),
    "a roomier counter": roomier("agent.env."),
    "a roomier planner": roomier("agent.planner."),
    "an outcome outside": table("agent.env.outcome", holding(ROOM)),
    "a successor outside": table("agent.planner.env.succ", holding(ROOM)),
}


@pytest.mark.parametrize("change", TABLES.values(), ids=TABLES.keys())
def test_tables_that_make_no_sense_are_refused(change: Change, path: Path) -> None:
    a_run().save(path)
    write_changed(path, change)
    assert_refused(path)


@pytest.mark.parametrize("name", ["bucket-qrmax-rm", "bucket-rmax"])
@pytest.mark.parametrize(
    "change",
    [filled_up, changed_places, too_many_keys, roomier("agent."), table(ROWS, holding(np.nan))],
    ids=["filled up", "changed places", "too many keys", "roomier", "no number"],
)
def test_the_other_agents_refuse_them_as_well(name: str, change: Change, path: Path) -> None:
    a_run(name).save(path)
    write_changed(path, change)
    assert_refused(path)


@pytest.mark.parametrize("place", [0, 95])
def test_a_hyperplane_of_simhash_that_is_no_number_is_refused(place: int, path: Path) -> None:
    a_run(grid=None).save(path)
    write_changed(path, table(ROWS, holding(np.nan, place=place)))
    assert_refused(path, "hyperplane")


def test_a_byte_that_changed_is_noticed_or_does_not_matter(path: Path) -> None:
    run = a_run()
    run.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.integers(0, len(whole), 200).tolist():
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            assert_same_run(qrmax.load(path), run)
        except CheckpointError:
            noticed += 1
    assert noticed > 195


def test_a_change_that_makes_sense_is_loaded(path: Path) -> None:
    """So that the tests above refuse what is wrong, and not what was rewritten."""
    run = a_run()
    run.save(path)
    write_changed(path, lambda *_: None)
    assert_same_run(qrmax.load(path), run)
    x, y = session_of(run).player.position.tolist()
    there = np.floor(x) + 0.25, np.floor(y) + 0.75  # the same bucket
    write_changed(path, lambda described, _: stand(described, *there))
    assert qrmax.load(path).resume(100).trained == 100
