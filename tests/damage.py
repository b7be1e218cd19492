"""What can be wrong with the file of a run: changes of it, with a checksum that fits."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import qrmax
from qrmax.errors import CheckpointError
from qrmax.training import checkpoint

Tables = dict[str, np.ndarray]
Change = Callable[[dict[str, Any], Tables], object]


def write_changed(path: Path, change: Change) -> None:
    """Change what a file holds, and give it the checksum that fits."""
    with safe_open(path, framework="numpy") as file:
        described = json.loads(file.metadata()["qrmax"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    change(described, arrays)
    text = json.dumps(described)
    header = {"qrmax": text, "sha256": checkpoint._checksum(text, arrays)}
    save_file(arrays, path, metadata=header)


def assert_refused(path: Path, words: str = "") -> None:
    """The file is named, nothing is executed or written."""
    before = path.read_bytes() if os.path.isfile(path) else None  # noqa: PTH113 (of any length)
    with pytest.raises(CheckpointError) as caught:
        qrmax.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    if before is not None:
        assert path.read_bytes() == before


def setting(*keys: Any) -> Callable[[Any], Change]:
    """Changes of one entry of the description."""

    def to(value: Any) -> Change:
        def change(described: dict[str, Any], _: Tables) -> None:
            place: Any = described
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = value

        return change

    return to


def without(*keys: Any) -> Change:
    def change(described: dict[str, Any], _: Tables) -> None:
        place: Any = described
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return change


def table(name: str, change_of: Callable[[np.ndarray], np.ndarray]) -> Change:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        arrays[name] = np.asarray(change_of(arrays[name].copy()), order="C")

    return change


def holding(value: float, place: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[place] = value
        return array

    return change


def narrower(array: np.ndarray) -> np.ndarray:
    return array[..., : array.shape[-1] - 1]


def wider(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, array], axis=-1)


def longer(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, array], axis=0)


def empty(array: np.ndarray) -> np.ndarray:
    return array[..., :0]
