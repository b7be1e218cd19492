"""Tampered files of runs, whose checksum fits: a sample of the campaign in `campaigns/tamper.py`.

Whatever an array or a number of the file says, loading it and training on ends: with an error, or
with a run. What used to hang or to crash is below by name.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrmax
from campaigns import tamper
from damage import Change, assert_refused, holding, setting, table, write_changed
from qrmax.errors import CheckpointError
from qrmax.training import run_file
from small_runs import LEARNERS, corridor


@pytest.mark.parametrize("name", ["qrmax", "bucket-rmax", "ucbvi-b-rm"])
def test_a_sample_of_tampered_files_is_refused_or_trained_on_with(name: str) -> None:
    found = tamper.try_all(name, seed=5, count=40, seconds=60.0)
    assert found.troubles == []
    assert found.outcomes["refused"] > 5
    assert found.outcomes["trained on"] > 5


def a_run(name: str) -> qrmax.Run:
    return LEARNERS[name].train(corridor(length=3, start=1), max_steps=40, evaluate_every=20)


def adding(amount: int, *names: str) -> Change:
    """More of the same in the first entry that counts something."""

    def change(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for name in names:
            place = int(np.flatnonzero(arrays[name])[0])
            arrays[name].flat[place] += amount

    return change


def circling(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """A worklist on which one state waits and another one stands."""
    arrays["agent.planner.work.ring"][0, 0] = 1
    arrays["agent.planner.work.first"][0] = 0
    arrays["agent.planner.work.length"][0] = 1
    arrays["agent.planner.work.waiting"][0] = [True, False, False]


def breaking_off(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """A chain of predecessors whose first edge is in no chain."""
    head, link = arrays["agent.planner.env.head"], arrays["agent.planner.env.link"]
    link[head[head >= 0][0]] = -2


TABLES: dict[str, dict[str, Change]] = {
    "qrmax": {
        "samples of the machine forgotten": table("agent.task.n", np.zeros_like),
        "samples below 0": table("agent.env.n", holding(-1)),
        "more samples than a known pair has": adding(1, "agent.env.n"),
        "more outcomes than samples": adding(1, "agent.env.tau"),
        "more of both": adding(10**9, "agent.env.n", "agent.env.tau"),
        "rewards that are no number": table("agent.env.rho", holding(np.nan)),
        "rewards without a sample": table("agent.task.rho", lambda rho: rho + 1.0),
        "probabilities of more than 1": table("agent.planner.env.prob", lambda p: 2.0 * p),
        "probabilities below 0": table("agent.planner.env.prob", lambda p: -p),
        "a probability that is no number": table("agent.planner.env.prob", holding(np.nan)),
        "probabilities of the machine": table("agent.planner.task.prob", lambda p: 2.0 * p),
        "a reward that is no number": table("agent.planner.env.reward", holding(np.nan)),
        "a reward below all numbers": table("agent.planner.task.reward", holding(-np.inf)),
        "a reward too large to add up": table("agent.planner.env.reward", holding(1e308)),
        "a value that is no number": table("agent.planner.tables.value", holding(np.nan)),
        "a value beyond what can be earned": table("agent.planner.tables.value", holding(1e9)),
        "gains of other values": table("agent.planner.tables.gain", lambda gain: gain + 1.0),
        "labels of others": table("agent.planner.task.label", lambda label: label[::-1]),
        "another waits than stands there": circling,
        "a chain that leads to no link": breaking_off,
        "another discount": setting("config", "gamma")(0.95),
    },
    "rmax": {"more samples than a known pair has": adding(1, "agent.pair.n")},
    "qrmax-published": {"more outcomes than samples": adding(1, "agent.task.tau")},
    "ucbvi-b-rm": {
        "samples of more steps than there were": adding(10**9, "agent.seen.n", "agent.seen.tau"),
        "rewards that are no number": table("agent.seen.rho", holding(np.nan)),
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
def test_what_no_training_can_lead_to_is_refused(name: str, change: Change, tmp_path: Path) -> None:
    path = tmp_path / "run"
    a_run(name).save(path)
    write_changed(path, change)
    assert_refused(path)


def test_a_whole_number_too_large_for_compiled_code_is_taken_as_a_real_one(tmp_path: Path) -> None:
    path = tmp_path / "run"
    a_run("psrl").save(path)
    write_changed(path, setting("config", "prior")(10**30))
    assert qrmax.load(path).resume(60).trained == 60


# --- files larger than memory


def sparse(path: Path, size: int, header: bytes = b"") -> None:
    """A file of that size, which takes no room on the disk."""
    with path.open("wb") as file:
        file.write(header)
        file.truncate(size)


def promising(size: int, **metadata: str) -> bytes:
    """The beginning of a safetensors file with an array of that size."""
    array = f'{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}'
    about = ",".join(f'"{key}":"{value}"' for key, value in metadata.items())
    text = f'{{"__metadata__":{{{about}}},"agent.qt":{array}}}'.encode()
    return len(text).to_bytes(8, "little") + text


TERABYTE = 10**12


def test_a_huge_file_is_refused_by_its_header(tmp_path: Path) -> None:
    path = tmp_path / "huge.run"
    sparse(path, TERABYTE)
    assert_refused_unread(path, "is damaged, or was not written by run.save(...)")
    sparse(path, TERABYTE, promising(TERABYTE))
    assert_refused_unread(path, "is a safetensors file, but not a run of qrmax")
    sparse(path, TERABYTE, promising(100, qrmax="{}"))
    assert_refused_unread(path, "is damaged: its header declares 100 bytes of arrays")


def test_a_run_larger_than_memory_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.run"
    header = promising(TERABYTE, qrmax="{}")
    sparse(path, TERABYTE + len(header), header)
    assert_refused_unread(path, "holds 931.3 GiB; to load it takes 2.7 TiB of memory, and ")


def assert_refused_unread(path: Path, words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        qrmax.load(path)
    assert str(caught.value).startswith(f"{path}: {words}")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="is not a regular file"):
        qrmax.load(tmp_path / "pipe")


def test_the_free_memory_is_known_here() -> None:
    free = run_file.free_memory()
    assert free is None or 2**20 < free < 2**50
