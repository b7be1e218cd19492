"""MDPs as files, in the format of their suffix.

.drn     Storm's explicit format      read and written
"""

from __future__ import annotations

import os
from pathlib import Path

from qrmax.errors import UnknownNameError
from qrmax.problems.formats import drn
from qrmax.problems.labelled import LabelledMDP
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.source import Source, write_whole

_FORMATS = {".drn": drn}
SUFFIXES = tuple(_FORMATS)
MAX_BYTES = 2**30  # a line for each successor: some ten million of them


def save_model(model: LabelledMDP | TabularMDP | Problem, path: str | os.PathLike[str]) -> None:
    """Write an MDP to a file, whole or not at all.

    Names and labels are kept, and all digits of numbers; a reward is that of a state-action pair,
    the mean over successors. If the initial state is random, a state is added that draws it, in a
    step of its own.

    Args:
        model: the MDP. Of a `Problem`, the product of its MDP and its task is written, whose states
            are labelled `success` if the task has succeeded; make a `qrmax.LabelledMDP` for others.
        path: the path of the file; its suffix is the format.
    """
    suffix = _suffix(path)
    write_whole(path, _FORMATS[suffix].format(LabelledMDP.of(model)).encode())


def load_model(
    path: str | os.PathLike[str], *, reward: str | None = None, start: int | None = None
) -> LabelledMDP:
    """Read an MDP from a file of a model checker; its `problem(task)` makes a problem of it.

    A state is terminal if it has no choices, or if it is labelled `terminal` or `deadlock` and is
    absorbing without reward.

    Args:
        path: the path of the file; its suffix is the format.
        reward: the name of the reward model, if there are several.
        start: the number of the initial state, if not exactly one is labelled `init`.
    """
    suffix = _suffix(path)
    model: LabelledMDP = _FORMATS[suffix].parse(
        Source.read(path, max_bytes=MAX_BYTES), reward=reward, start=start
    )
    model.name = Path(path).stem
    return model


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise an `UnknownNameError` unless the suffix is that of a format of models."""
    _suffix(path)


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UnknownNameError("format of a model", suffix, _FORMATS)
    return suffix
