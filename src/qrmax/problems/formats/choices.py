"""States with choices, as in files of model checkers, and their `TabularMDP`.

In these files each state has choices of its own; in a `TabularMDP` every state has all actions. If
the choices of each state have different names, an action is a name; otherwise it is the index in
the list. For an action that a state lacks, its first choice is repeated, which changes no optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError
from qrmax.logic.guards import Label
from qrmax.problems.labelled import LabelledMDP, is_action_name
from qrmax.problems.mdp import MASS_TOLERANCE, TabularMDP
from qrmax.source import Source

INIT, TERMINAL, DEADLOCK = "init", "terminal", "deadlock"
DRAWS_START = "draws_start"
"""Labels with a meaning: of initial states; of terminal states, in our files and in others; and of
a state that is added if the initial state is random, whose only choice leads to initial states."""

BEGINS = frozenset({INIT, DRAWS_START})
ENDS = BEGINS | {TERMINAL, DEADLOCK}  # these are not propositions

MOST_ENTRIES = 2**24
ROUNDED = 1e-6  # probabilities in a file may sum to 1 up to this: Storm writes ten digits


@dataclass(slots=True)
class Choice:
    """A choice: its name ("" for none), its reward and its successors."""

    name: str
    reward: float
    line: int
    succ: list[int] = field(default_factory=list)
    prob: list[float] = field(default_factory=list)


@dataclass(slots=True)
class ListedState:
    """A state as listed in a file."""

    line: int
    reward: float
    labels: frozenset[str]
    name: str = ""
    choices: list[Choice] = field(default_factory=list)


def assemble(source: Source, states: list[ListedState], start: int | None) -> LabelledMDP:
    """The model of these states, which are numbered from 0."""
    actions = _actions(states)
    width = max((len(choice.succ) for state in states for choice in state.choices), default=1)
    if len(states) * len(actions) * width > MOST_ENTRIES:
        raise ModelError(
            f"{source.name}: {len(states)} states, {len(actions)} actions and up to {width} "
            f"successors make a table of more than {MOST_ENTRIES} entries"
        )
    shape = (len(states), len(actions), width)
    succ, prob, reward = np.zeros(shape, np.int32), np.zeros(shape), np.zeros(shape)
    terminal = np.zeros(len(states), dtype=bool)
    for s, state in enumerate(states):
        terminal[s] = _ends(s, state)
        for a, choice in enumerate(_in_order(state, actions)):
            size = len(choice.succ)
            succ[s, a, :size] = choice.succ
            prob[s, a, :size] = _probabilities(source, choice)
            reward[s, a, :size] = state.reward + choice.reward
    numbers: dict[Label, int] = {}
    label = [
        numbers.setdefault(state.labels - (ENDS if terminal[s] else BEGINS), len(numbers))
        for s, state in enumerate(states)
    ]
    first, keep = _start(source, states, start, succ, prob)
    named = any(state.name for state in states[:keep])
    return LabelledMDP(
        TabularMDP(
            succ[:keep], prob[:keep], reward[:keep], terminal=terminal[:keep], start=first[:keep]
        ),
        [*numbers],
        label[:keep],
        state_names=[state.name for state in states[:keep]] if named else None,
        action_names=actions if all(map(is_action_name, actions)) else None,
    )


def _ends(s: int, state: ListedState) -> bool:
    """Whether a state is terminal: without choices, or labelled so and absorbing without reward."""
    absorbing = all(
        {*choice.succ} <= {s} and state.reward + choice.reward == 0.0 for choice in state.choices
    )
    return absorbing and (not state.choices or bool(state.labels & {TERMINAL, DEADLOCK}))


def _actions(states: list[ListedState]) -> list[str]:
    """The names of the actions; "" if they are indices in the lists."""
    acting = [
        state
        for s, state in enumerate(states)
        if DRAWS_START not in state.labels and not _ends(s, state)
    ]
    lists = [[choice.name for choice in state.choices] for state in acting]
    if any("" in names or len({*names}) < len(names) for names in lists):
        return [""] * max(map(len, lists))  # there are some
    return [*dict.fromkeys(name for names in lists for name in names)] or [""]


def _in_order(state: ListedState, actions: list[str]) -> list[Choice]:
    """The choice for each action."""
    if not state.choices:
        return []
    if actions[0]:
        by_name = {choice.name: choice for choice in state.choices}
        return [by_name.get(name, state.choices[0]) for name in actions]
    missing = len(actions) - len(state.choices)  # negative for terminal states at most
    return [*state.choices, *[state.choices[0]] * missing][: len(actions)]


def _probabilities(source: Source, choice: Choice) -> NDArray[np.float64]:
    prob = np.array(choice.prob)
    mass = float(prob.sum())
    if not abs(mass - 1.0) <= ROUNDED:
        raise source.error(
            ModelError, f"the probabilities of a choice sum to {mass}; needed: 1", line=choice.line
        )
    return prob if abs(mass - 1.0) <= MASS_TOLERANCE else prob / mass


def _start(
    source: Source,
    states: list[ListedState],
    given: int | None,
    succ: NDArray[np.int32],
    prob: NDArray[np.float64],
) -> tuple[NDArray[np.float64], int]:
    """The initial state distribution, and the number of states to keep."""
    start = np.zeros(len(states))
    begun = [s for s, state in enumerate(states) if INIT in state.labels]
    if given is not None:
        if not 0 <= given < len(states):
            raise ModelError(
                f"{source.name}: start is {given}; allowed: 0 to {len(states) - 1}, its states"
            )
        start[given] = 1.0
    elif len(begun) != 1:
        raise ModelError(
            f"{source.name}: {len(begun)} states are labelled {INIT!r}, so it is not clear where "
            "episodes start; label one of them so, or give load_model(..., start=0)"
        )
    elif DRAWS_START in states[begun[0]].labels:
        last = len(states) - 1
        if begun[0] != last or (succ[:last] == last)[prob[:last] > 0.0].any():
            raise source.error(
                ModelError,
                f"a state labelled {DRAWS_START!r} has to be the last one, and nothing may lead "
                "to it",
                line=states[begun[0]].line,
            )
        np.add.at(start, succ[last, 0], prob[last, 0])
        return start, last
    else:
        start[begun[0]] = 1.0
    return start, len(states)
