"""MDPs as files: the suffix says in which format.

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
    """Write an MDP to a file, whole or not at all, in the format that its suffix says.

    Of a problem it is the product of its MDP and its task, which is labelled `success` where the
    task has succeeded; `qrmax.LabelledMDP` is for what else is to be written. Names and labels are
    kept, numbers to the last digit; a reward is that of a state and an action, the mean over
    successors. Where the start is random, a state is added that draws it, in a step of its own.
    """
    suffix = _suffix(path)
    write_whole(path, _FORMATS[suffix].format(LabelledMDP.of(model)).encode())


def load_model(
    path: str | os.PathLike[str], *, reward: str | None = None, start: int | None = None
) -> LabelledMDP:
    """Read an MDP from a file of a model checker; its `problem(task)` makes a problem of it.

    `reward` names the reward model that is meant where there are several, `start` the number of the
    state in which episodes start where not just one is labelled `init`. States that are labelled
    `terminal` or `deadlock` and can only stay there for nothing, or have no choice, end episodes.
    """
    suffix = _suffix(path)
    model: LabelledMDP = _FORMATS[suffix].parse(
        Source.read(path, max_bytes=MAX_BYTES), reward=reward, start=start
    )
    model.name = Path(path).stem
    return model


def check_format(path: str | os.PathLike[str]) -> None:
    """Raise an `UnknownNameError` unless models can be files of this suffix."""
    _suffix(path)


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UnknownNameError("format of a model", suffix, _FORMATS)
    return suffix
