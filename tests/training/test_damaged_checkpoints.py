"""Files that hold no run, or no longer: each is refused by name, and nothing else happens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import qrmax
from damage import (
    Change,
    Tables,
    assert_refused,
    empty,
    holding,
    longer,
    narrower,
    setting,
    table,
    wider,
    without,
    write_changed,
)
from qrmax.errors import CheckpointError
from qrmax.training import checkpoint
from small_runs import LEARNERS, assert_same_run, corridor


def a_run(name: str = "qrmax", steps: int = 40) -> qrmax.Run:
    return LEARNERS[name].train(corridor(length=3, start=1), max_steps=steps, evaluate_every=20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


# --- damage


@pytest.mark.parametrize("name", ["q-learning", "qrmax"])
def test_a_byte_that_changed_is_noticed_or_does_not_matter(name: str, path: Path) -> None:
    """Every byte of the header once, and many of the tables."""
    run = a_run(name)
    run.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    tables_begin = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(tables_begin), *rng.integers(tables_begin, len(whole), 500).tolist()]
    noticed = 0
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        try:
            assert_same_run(qrmax.load(path), run)
        except CheckpointError:
            noticed += 1
    assert noticed > 0.98 * len(places)


def test_a_single_bit_of_a_table_is_noticed(path: Path) -> None:
    a_run().save(path)
    whole = path.read_bytes()
    for place, bit in ((len(whole) - 1, 0), (len(whole) - 500, 7), (len(whole) - 900, 3)):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        assert_refused(path, "checksum does not fit")


def test_a_file_cut_short_anywhere_is_refused(path: Path) -> None:
    a_run().save(path)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    lengths = {0, 1, 7, 8, 9, 100, header - 1, header, header + 1, len(whole) - 8, len(whole) - 1}
    for length in lengths | set(range(0, len(whole), 997)):
        path.write_bytes(whole[:length])
        assert_refused(path)


def test_a_file_with_more_at_its_end_is_refused(path: Path) -> None:
    a_run().save(path)
    path.write_bytes(path.read_bytes() + b"\0")
    assert_refused(path)


def test_tables_that_changed_places_are_noticed(path: Path) -> None:
    """The same bytes and shapes under other names."""
    a_run().save(path)
    with safe_open(path, framework="numpy") as file:
        header = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    tau, outcome = "agent.env.tau", "agent.env.outcome"
    arrays[tau], arrays[outcome] = arrays[outcome], arrays[tau]
    save_file(arrays, path, metadata=header)
    assert_refused(path, "checksum does not fit")


# --- files that never were a run


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"\0" * 8,
        b"\xff" * 4096,
        b"a letter to a friend, long enough to look like something",
        b"PK\x03\x04 a zip file",
        b"\x80\x04\x95 a pickle",
        (2**63).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
    ],
    ids=lambda content: f"{len(content)} bytes: {content[:8]!r}",
)
def test_a_foreign_file_is_refused(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    assert_refused(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"qrmax": "{}"}])
def test_a_safetensors_file_of_others_is_refused(metadata: Any, path: Path) -> None:
    save_file({"weight": np.zeros((3, 3), dtype=np.float32)}, path, metadata=metadata)
    assert_refused(path, "run of qrmax")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '"qrmax run"', "[" * 100_000, "{}", '{"format": "other"}']
)
def test_a_description_that_is_none_is_refused(text: str, path: Path) -> None:
    header = {"qrmax": text, "sha256": checkpoint._checksum(text, {})}
    save_file({}, path, metadata=header)
    assert_refused(path)


def test_a_file_of_a_later_schema_asks_for_a_later_qrmax(path: Path) -> None:
    a_run().save(path)

    def later(described: dict[str, Any], _: Tables) -> None:
        described.update(schema=3, version="9.0", surprise="new")

    write_changed(path, later)
    assert_refused(path, "written by qrmax 9.0 in schema 3")
    assert_refused(path, "update qrmax")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "nowhere", "there is no such file")
    assert_refused(tmp_path, "is a folder")
    assert_refused(tmp_path / ("x" * 5000), "there is no such file")
    with pytest.raises(CheckpointError, match="no such file"):
        qrmax.load("a\0b")


def test_a_file_that_is_refused_can_be_written_anew(path: Path) -> None:
    path.write_bytes(b"something else")
    run = a_run()
    run.save(path)
    assert_same_run(qrmax.load(path), run)


# --- made up, with a checksum that fits: compiled code must never see it


def in_a_circle(link: np.ndarray) -> np.ndarray:
    """A chain of predecessors that has no end."""
    edge = int(np.flatnonzero(link.ravel() >= 0)[0])
    link.flat[edge] = edge
    return link


def test_a_file_of_an_earlier_schema_is_refused(path: Path) -> None:
    a_run().save(path)
    write_changed(path, lambda described, _: described.update(schema=1, version="0.0.1"))
    assert_refused(path, "written by qrmax 0.0.1 in schema 1")
    assert_refused(path, "train it again")


def all_empty(prefix: str, *names: str) -> Change:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        for name in names:
            arrays[prefix + name] = empty(arrays[prefix + name])

    return change


def over_for_one(described: dict[str, Any], arrays: Tables) -> None:
    """The agent has had all its steps, and the episode goes on."""
    arrays["agent.episode.stage"] = np.array([20])
    described["task"]["state"] = [1, 0, 20, 0, 3]


step_to, state_to, curve_to = (
    setting("progress", "step"),
    setting("task", "state"),
    setting("curve"),
)

DESCRIPTIONS: dict[str, Change] = {
    **{f"without {key}": without(key) for key in ("agent", "config", "training", "task", "curve")},
    "without progress": without("progress"),
    "without a stream": without("streams", "agent"),
    "without labels": without("task", "labels"),
    "unknown agent": setting("agent")("sarsa"),
    "agent no text": setting("agent")(["qrmax"]),
    "another agent": setting("agent")("rmax"),
    "unknown setting": setting("config", "speed")(3),
    "impossible setting": setting("config", "gamma")(2.0),
    "config no table": setting("config")(3),
    "unknown rule": setting("training", "stop")("never"),
    "rule no text": setting("training", "stop")({}),
    "impossible rule": setting("training", "within")(7),
    "no budget": setting("training", "max_steps")(0),
    "seed below 0": setting("training", "seed")(-1),
    "seed no number": setting("training", "seed")("seven"),
    "stream of others": setting("streams", "world", "bit_generator")("MT19937"),
    "stream nonsense": setting("streams", "world")([1, 2]),
    "stream too large": setting("streams", "world", "state", "state")(2**200),
    "machine no TOML": setting("task", "machine")("this is no task"),
    "machine of others": setting("task", "machine")('initial = "a"\nedges = []\n'),
    "machine no text": setting("task", "machine")(3),
    "labels too few": setting("task", "labels")([[]]),
    "labels nonsense": setting("task", "labels")(3),
    "limit below 1": setting("task", "max_episode_steps")(0),
    "limit no number": setting("task", "max_episode_steps")("long"),
    "step no number": step_to("many"),
    "step a fraction": step_to(1.5),
    "step below 0": step_to(-5),
    "step nothing": step_to(None),
    "step huge": step_to(10**30),
    "streak below 0": setting("progress", "streak")(-1),
    "first after step": setting("progress", "first")(10**6),
    "reason nonsense": setting("progress", "reason")("boredom"),
    "reason no text": setting("progress", "reason")(5),
    "seconds no number": setting("progress", "seconds")("long"),
    "progress unknown": setting("progress", "mood")("good"),
    "progress no table": setting("progress")([1, 2]),
    "curve no list": curve_to(3),
    "curve short row": curve_to([[20, 0.0]]),
    "curve text": curve_to([["a", "b", "c", "d", "e"]]),
    "curve step no number": curve_to([[None, 0.0, 0.0, 0.0, 3]]),
    "state too large": state_to([3, 0, 0, 0, 5]),
    "state below 0": state_to([-1, 0, 0, 0, 5]),
    "machine state too large": state_to([0, 3, 0, 0, 5]),
    "age below 0": state_to([0, 0, -1, 0, 5]),
    "age beyond the limit": state_to([0, 0, 31, 1, 5]),
    "not cut off at the limit": state_to([0, 0, 30, 0, 5]),
    "not over in the end": state_to([0, 2, 3, 0, 5]),
    "over neither": state_to([0, 0, 0, 2, 5]),
    "state short": state_to([0, 0, 0]),
    "state long": state_to([0, 0, 0, 0, 5, 0]),
    "under way before it has begun": state_to([0, 0, 0, 0, 0]),
    "state text": state_to("0000"),
    "state infinite": state_to([float("inf"), 0, 0, 0, 5]),
    "state not a number": state_to([float("nan"), 0, 0, 0, 5]),
    "state huge": state_to([0, 0, 10**30, 1, 5]),
    "state nothing": state_to(None),
    "an environment": setting("kind")("environment"),
    "real positions": setting("kind")("continuous"),
    "played by no one": setting("kind")("nothing"),
    "task nothing": setting("task")(None),
}


@pytest.mark.parametrize("change", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_description_that_makes_no_sense_is_refused(change: Change, path: Path) -> None:
    a_run().save(path)
    write_changed(path, change)
    assert_refused(path)


TABLES: dict[str, dict[str, Change]] = {
    "q-learning": {
        "missing": lambda _, arrays: arrays.pop("agent.qt"),
        "narrower": table("agent.qt", narrower),
        "of one action": table("agent.qt", lambda a: a[..., :1]),
        "wider": table("agent.qt", wider),
        "empty": table("agent.qt", empty),
        "longer": table("agent.qt", longer),
        "flat": table("agent.qt", np.ravel),
        "single precision": table("agent.qt", lambda a: a.astype(np.float32)),
        "whole numbers": table("agent.qt", lambda a: a.astype(np.int64)),
        "world missing": lambda _, arrays: arrays.pop("problem.succ"),
        "successor outside": table("problem.succ", holding(3)),
        "successor below 0": table("problem.succ", holding(-1)),
        "chance below 0": table("problem.prob", holding(-0.5)),
        "chance not a number": table("problem.prob", holding(np.nan)),
        "reward not a number": table("problem.reward", holding(np.nan)),
        "reward of other shape": table("problem.reward", wider),
        "label outside": table("problem.label", holding(9)),
        "start nowhere": table("problem.start", np.zeros_like),
        "terminal as numbers": table("problem.terminal", lambda a: a.astype(np.int8)),
    },
    "qrmax": {
        "missing": lambda _, arrays: arrays.pop("agent.env.n"),
        "counts longer": table("agent.env.n", longer),
        "outcome outside": table("agent.env.outcome", holding(3)),
        "outcome far outside": table("agent.env.outcome", holding(2**31 - 1)),
        "outcome below nothing": table("agent.env.outcome", holding(-2)),
        "machine outcome outside": table("agent.task.outcome", holding(3)),
        "outcome after nothing": table("agent.env.outcome", holding(-1, place=4)),
        "outcomes wider": table("agent.env.outcome", wider),
        "tau narrower": table("agent.env.tau", narrower),
        "rho narrower": table("agent.env.rho", narrower),
        "rho wider": table("agent.env.rho", wider),
        "counts empty": all_empty("agent.env.", "outcome", "tau"),
        "machine counts empty": all_empty("agent.task.", "outcome", "tau"),
        "planner's successor outside": table("agent.planner.env.succ", holding(3)),
        "planner's successor below 0": table("agent.planner.env.succ", holding(-1)),
        "planner's chances narrower": table("agent.planner.env.prob", narrower),
        "planner's successors wider": table("agent.planner.env.succ", wider),
        "planner empty": all_empty("agent.planner.env.", "succ", "prob", "link"),
        "link narrower": table("agent.planner.env.link", narrower),
        "links in a circle": table("agent.planner.env.link", in_a_circle),
        "link outside": table("agent.planner.env.link", holding(10**6)),
        "link below": table("agent.planner.env.link", holding(-9)),
        "head outside": table("agent.planner.env.head", holding(10**6)),
        "head below": table("agent.planner.env.head", holding(-9)),
        "machine's state outside": table("agent.planner.task.next_state", holding(3)),
        "machine's chances wider": table("agent.planner.task.prob", wider),
        "machine's states wider": table("agent.planner.task.next_state", wider),
        "machine empty": all_empty("agent.planner.task.", "next_state", "prob"),
        "label outside": table("agent.planner.task.label", holding(3)),
        "ring outside": table("agent.planner.work.ring", holding(3)),
        "first outside": table("agent.planner.work.first", holding(3)),
        "length too large": table("agent.planner.work.length", holding(4)),
        "length of another list": table("agent.planner.work.length", holding(2)),
        "length below 0": table("agent.planner.work.length", holding(-1)),
        "values as numbers": table("agent.planner.tables.value", lambda a: a.astype(np.int64)),
        "moves of other shape": table("agent.planner.moves", longer),
    },
    "rmax": {
        "outcome outside": table("agent.pair.outcome", holding(9)),
        "outcome below nothing": table("agent.pair.outcome", holding(-2)),
        "tau narrower": table("agent.pair.tau", narrower),
        "planner's successor outside": table("agent.planner.env.succ", holding(9)),
    },
    "qrmax-published": {
        "untried missing": lambda _, arrays: arrays.pop("agent.untried"),
        "untried of one action": table("agent.untried", lambda a: a[..., :1]),
        "untried as numbers": table("agent.untried", lambda a: a.astype(np.int8)),
        "outcome outside": table("agent.env.outcome", holding(3)),
    },
    "ucbvi-b-rm": {
        "counts missing": lambda _, arrays: arrays.pop("agent.seen.n"),
        "counts longer": table("agent.seen.n", longer),
        "counts that do not add up": table("agent.seen.n", holding(10**6)),
        "outcome outside": table("agent.seen.outcome", holding(3)),
        "outcome below nothing": table("agent.seen.outcome", holding(-2)),
        "outcomes wider": table("agent.seen.outcome", wider),
        "tau narrower": table("agent.seen.tau", narrower),
        "tau below 0": table("agent.seen.tau", holding(-1)),
        "rho wider": table("agent.seen.rho", wider),
        "listed too many": table("agent.seen.listed", holding(99)),
        "listed below 0": table("agent.seen.listed", holding(-1)),
        "counts empty": all_empty("agent.seen.", "outcome", "tau"),
        "believed successor outside": table("agent.belief.succ", holding(3)),
        "believed successor below 0": table("agent.belief.succ", holding(-1)),
        "believed too many": table("agent.belief.listed", holding(99)),
        "believed below 0": table("agent.belief.listed", holding(-1)),
        "weights narrower": table("agent.belief.weight", narrower),
        "weights of fewer actions": table("agent.belief.weight", lambda a: a[:, :2]),
        "rewards of fewer actions": table("agent.belief.reward", lambda a: a[:, :2]),
        "belief empty": all_empty("agent.belief.", "succ", "weight"),
        "machine's state outside": table("agent.task.next_state", holding(3)),
        "machine's state below 0": table("agent.task.next_state", holding(-1)),
        "machine's states wider": table("agent.task.next_state", wider),
        "machine's pay of other shape": table("agent.task.reward", wider),
        "stage beyond the horizon": table("agent.episode.stage", holding(21)),
        "stage below 0": table("agent.episode.stage", holding(-1)),
        "two stages": table("agent.episode.stage", lambda a: np.repeat(a, 2)),
        "over for the agent but not for the world": over_for_one,
        "fewer stages": table("agent.stages.ahead", lambda a: a[:-1]),
        "more stages": table("agent.stages.beyond", longer),
        "starts of other shape": table("agent.episode.starts", wider),
        "ends as numbers": table("agent.episode.done", lambda a: a.astype(np.int8)),
        "another horizon": setting("config", "horizon")(21),
    },
    "psrl": {
        "outcome outside": table("agent.seen.outcome", holding(9)),
        "believed successor outside": table("agent.belief.succ", holding(9)),
        "machine's state outside": table("agent.task.next_state", holding(1)),
        "paid more often than tried": table("agent.seen.rho", holding(1e6)),
        "paid below 0": table("agent.seen.rho", holding(-1.0)),
        "paid no number": table("agent.seen.rho", holding(np.nan)),
    },
    "opsrl": {
        "weights of fewer models": table("agent.belief.weight", lambda a: a[:, :8]),
        "rewards of fewer models": table("agent.belief.reward", lambda a: a[:, :8]),
        "another number of models": setting("config", "samples")(3),
    },
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id=f"{name}: {what}")
        for name, changes in TABLES.items()
        for what, change in changes.items()
    ],
)
def test_tables_that_make_no_sense_are_refused(name: str, change: Change, path: Path) -> None:
    a_run(name).save(path)
    write_changed(path, change)
    assert_refused(path)


def test_a_change_that_makes_sense_is_loaded(path: Path) -> None:
    """So that the tests above refuse what is wrong, and not what was rewritten."""
    run = a_run()
    run.save(path)
    write_changed(path, lambda *_: None)
    assert_same_run(qrmax.load(path), run)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    write_changed(copy, setting("task", "state")([0, 1, 29, 0, 5]))
    assert qrmax.load(copy).resume(60).trained == 60
