"""Problems with reward shaping: their unshaped form, and a check of `world_ends`.

A shaped task has additional potential-based rewards; see `qrmax.machines.shaping`. Optimal policies
stay optimal, but values are smaller by the potential of the initial state, so that relative gaps
are meaningless. And they stay optimal only if `world_ends` holds for the labels of states in which
the world ends episodes, and for no others. A problem knows these labels.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import warn
from qrmax.logic.guards import Label, braced, written
from qrmax.machines.machine_table import MachineTable
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.shaping import SHAPED, Shaping


class _Posed(Protocol):
    """A problem, whatever its world."""

    name: str
    machine: RewardMachine
    labels: tuple[Label, ...]
    table: MachineTable


Posed = TypeVar("Posed", bound=_Posed)


def unshaped(problem: Posed) -> Posed:
    """The same problem without reward shaping; itself if the task is not shaped.

    Both have the same states, so that policies of one are policies of the other.
    """
    if problem.machine.shaping is None:
        return problem
    plain = copy.copy(problem)
    plain.machine = problem.machine.shaping.unshaped
    plain.table = plain.machine.table(plain.labels)
    plain.name = problem.name.removesuffix(SHAPED)
    return plain


def warn_of_world_ends(problem: _Posed, ends: Iterable[int], others: Iterable[int]) -> None:
    """Warn if the world ends episodes at labels for which `world_ends` is false, or the reverse.

    `ends` and `others` number the labels of states that can be entered, in which the world ends the
    episode, and in which it does not.
    """
    shaping = problem.machine.shaping
    if shaping is None:
        return
    owing = _owing(problem, shaping)
    end_labels, other_labels = (
        {problem.labels[number] for number in numbers if owing[number]}
        for numbers in (ends, others)
    )
    holds = shaping.world_ends.holds
    mistakes = [
        ("it does not hold", "ends episodes: ending them there looks too good", end_labels, False),
        ("it holds", "does not: being there looks worse than it is", other_labels, True),
    ]
    for what, why, labels, held in mistakes:
        wrong = sorted(braced(label) for label in labels if holds(label) is held)
        if wrong:
            warn(
                f"world_ends of the shaped task is {str(shaping.world_ends)!r}; {what} at "
                f"{', '.join(wrong)}, where the world of {problem.name!r} {why}; "
                f"{_advice(shaping.gamma, end_labels, other_labels)}"
            )


def _owing(problem: _Posed, shaping: Shaping) -> NDArray[np.bool_]:
    """The labels for which it matters: the potential after reading them may be positive."""
    potential = np.array([shaping.potential[state] for state in problem.machine.states])
    owed = (potential[problem.table.next_state] > 0.0) & (problem.table.prob > 0.0)  # [q, label, j]
    return np.asarray(owed.any(axis=(0, 2)))


def _advice(gamma: float, ends: set[Label], others: set[Label]) -> str:
    telling = frozenset[str]().union(*ends) - frozenset[str]().union(*others)
    if not all(label & telling for label in ends):
        return "give the end a proposition of its own, and that as world_ends"
    guard = " | ".join(written(name) for name in sorted(telling))
    return f"give shaped({gamma:g}{f', world_ends={guard!r}' if guard else ''})"
