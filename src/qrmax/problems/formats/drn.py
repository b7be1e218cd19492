"""DRN, the explicit format of the model checker Storm.

    @type: MDP
    @parameters

    @reward_models
    reward
    @nr_states
    2
    @nr_choices
    3
    @model
    state 0 init
    //x=0 y=0
        action up [0.5]
                0 : 0.25
                1 : 0.75
        action down [0]
                0 : 1
    state 1 goal terminal
    //x=0 y=1
        action end [0]
                1 : 1

Comments after states are their names; Storm writes the values of variables there. Labels are the
propositions, and those of `choices`. A reward belongs to a choice: it is the mean over its
successors. Numbers are written with all digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError, shown
from qrmax.machines.formats.number import NUMBER, number_of
from qrmax.problems.formats.choices import (
    DRAWS_START,
    INIT,
    TERMINAL,
    Choice,
    ListedState,
    assemble,
)
from qrmax.problems.labelled import LabelledMDP
from qrmax.problems.mdp import TabularMDP
from qrmax.source import Source

TYPES = ("MDP", "DTMC")
REWARD = "reward"
NO_NAME = "__NOLABEL__"  # Storm's text for a choice without a name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([^\s"]+))')
_REWARDS = re.compile(r"\s*\[([^\]]*)\]")
_STATE = re.compile(r"state\s+(\d+)", re.ASCII)
_ACTION = re.compile(r"\s*action\s+([^\s\[]+)")
_TARGET = re.compile(rf"\s*(\d+)\s*:\s*({NUMBER})(?:/({NUMBER}))?\s*", re.ASCII)


def format(model: LabelledMDP) -> str:  # noqa: A001 (as in the modules of task formats)
    """The model as text."""
    return "\n".join(_lines(model)) + "\n"


def _lines(model: LabelledMDP) -> Iterator[str]:
    mdp = model.mdp
    starts = np.flatnonzero(mdp.start)
    added = int(len(starts) > 1)
    choices = int(np.where(mdp.terminal, 1, mdp.n_actions).sum()) + added
    yield from ("@type: MDP", "@parameters", "", "@reward_models", REWARD)
    yield from ("@nr_states", str(mdp.n_states + added), "@nr_choices", str(choices), "@model")
    words = [" ".join(_quoted(name) for name in sorted(label)) for label in model.labels]
    actions = model.action_names or [str(a) for a in range(mdp.n_actions)]
    rewards = _rewards_of_choices(mdp).tolist()
    for s in range(mdp.n_states):
        first = INIT if not added and s == starts[0] else ""
        last = TERMINAL if mdp.terminal[s] else ""
        yield " ".join(filter(None, [f"state {s}", first, last, words[model.label[s]]]))
        if model.state_names is not None:
            yield f"//{model.state_names[s]}"
        if mdp.terminal[s]:
            yield from ("\taction end [0]", f"\t\t{s} : 1")
            continue
        for a, name in enumerate(actions):
            yield f"\taction {name} [{_number(rewards[s][a])}]"
            chance: dict[int, float] = {}
            for t, p in zip(mdp.succ[s, a].tolist(), mdp.prob[s, a].tolist(), strict=True):
                if p > 0.0:
                    chance[t] = chance.get(t, 0.0) + p
            for t in sorted(chance):
                yield f"\t\t{t} : {_number(chance[t])}"
    if added:
        yield f"state {mdp.n_states} {INIT} {DRAWS_START}"
        yield "\taction start [0]"
        for s in starts.tolist():
            yield f"\t\t{s} : {_number(float(mdp.start[s]))}"


def _rewards_of_choices(mdp: TabularMDP) -> NDArray[np.float64]:
    """The mean reward of each action, `[s, a]`; not rounded if it is that of all successors."""
    happens = mdp.prob > 0.0
    least = np.where(happens, mdp.reward, np.inf).min(axis=2)
    most = np.where(happens, mdp.reward, -np.inf).max(axis=2)
    return np.where(least == most, least, mdp.expected_reward())


def _number(x: float) -> str:
    return repr(int(x) if x == int(x) and abs(x) < 1e15 else x)


def _quoted(name: str) -> str:
    if name in (INIT, TERMINAL, DRAWS_START):
        raise ModelError(
            f"the proposition {name!r} has a meaning of its own in DRN; give it another name"
        )
    if '"' in name or not name.isprintable():
        raise ModelError(f"the proposition {shown(name)} cannot be written in DRN")
    return name if _PLAIN.fullmatch(name) else f'"{name}"'


def parse(source: Source, *, reward: str | None = None, start: int | None = None) -> LabelledMDP:
    """Read a model; see `load_model` for `reward` and `start`."""
    return _Reader(source, reward, start).model()


class _Reader:
    """A parser, line by line; `number` is that of the current line, counted from 1."""

    def __init__(self, source: Source, reward: str | None, start: int | None) -> None:
        self.source = source
        self.lines = source.lines()
        self.number = 0
        self.wanted = reward
        self.start = start
        self.reward_models: list[str] = []
        self.chosen: int | None = None
        self.sizes: dict[str, int] = {}
        self.states: list[ListedState] = []

    def error(self, message: str, column: int | None = None) -> ModelError:
        line = min(self.number, len(self.lines))
        return self.source.error(ModelError, message, line=line, column=column)

    def model(self) -> LabelledMDP:
        self.read_header()
        self.chosen = self.choose_reward()
        while self.number < len(self.lines):
            line = self.next_line()
            if line.strip().startswith("//"):
                self.read_name(line)
            elif line.strip():
                self.read_row(line)
        self.check_size("@nr_states", len(self.states))
        self.check_size("@nr_choices", sum(len(state.choices) for state in self.states))
        if not self.states:
            raise self.error("there are no states")
        self.check_targets()
        return assemble(self.source, self.states, self.start)

    def next_line(self) -> str:
        if self.number >= len(self.lines):
            raise self.error("the text ends here; after @model come the states")
        self.number += 1
        return self.lines[self.number - 1]

    def read_header(self) -> None:
        while True:
            line = self.next_line().rstrip()
            key, _, value = line.partition(":")
            match key.strip():
                case "@model":
                    return
                case "@type":
                    if value.strip() not in TYPES:
                        raise self.error(
                            f"a model of type {shown(value.strip())}; allowed: {', '.join(TYPES)}"
                        )
                case "@value_type":
                    if value.strip() not in ("double", "rational"):
                        raise self.error(f"values are {shown(value.strip())}; allowed: numbers")
                case "@parameters":
                    if self.next_line().strip():
                        raise self.error("the model has parameters; give each a value first")
                case "@reward_models":
                    named = self.next_line()
                    names = (named[:-1] if named.endswith(" ") else named).split(" ")
                    self.reward_models = names if named else []
                case "@nr_states" | "@nr_choices" as size:
                    self.sizes[size] = self.read_count()
                case other if other and not other.startswith("//"):
                    raise self.error(
                        f"{shown(other)} is not known; allowed: @type, @value_type, @parameters, "
                        "@reward_models, @nr_states, @nr_choices, @model"
                    )

    def read_count(self) -> int:
        text = self.next_line().strip()
        if not re.fullmatch(r"[0-9]{1,12}", text):
            raise self.error(f"{shown(text)} is not a whole number")
        return int(text)

    def choose_reward(self) -> int | None:
        models = self.reward_models
        if self.wanted is not None:
            if self.wanted not in models:
                there = ", ".join(map(repr, models)) or "none"
                raise ModelError(
                    f"{self.source.name}: no reward model {self.wanted!r}; there are: {there}"
                )
            return models.index(self.wanted)
        if len(models) > 1:
            raise ModelError(
                f"{self.source.name}: there are several reward models, "
                f"{', '.join(map(repr, sorted(models)))}; choose one, such as "
                f"reward={max(models)!r}"
            )
        return 0 if models else None

    def read_name(self, line: str) -> None:
        """Read the name of a state from the comment right after it."""
        if self.states and not self.states[-1].name and not self.states[-1].choices:
            text = " ".join(line.strip().removeprefix("//").split())
            self.states[-1].name = "".join(char for char in text if char.isprintable())

    def read_row(self, line: str) -> None:
        if found := _TARGET.fullmatch(line):
            self.read_target(found)
        elif found := _ACTION.match(line):
            if not self.states:
                raise self.error("an action before the first state")
            name = "" if found[1].isdigit() or found[1] == NO_NAME else found[1]
            pay, rest = self.read_rewards(line, found.end())
            if line[rest:].strip():
                raise self.error(f"unexpected {shown(line[rest:].strip())}", rest + 1)
            self.states[-1].choices.append(Choice(name, pay, self.number))
        elif found := _STATE.match(line):
            if found[1] != str(len(self.states)):
                raise self.error(
                    f"state {found[1][:20]}; states are numbered: {len(self.states)} is next", 7
                )
            pay, rest = self.read_rewards(line, found.end())
            labels = self.read_labels(line, rest)
            self.states.append(ListedState(self.number, pay, labels))
        else:
            raise self.error("expected 'state N', 'action NAME' or 'N : PROBABILITY'", 1)

    def read_rewards(self, line: str, at: int) -> tuple[float, int]:
        """The selected reward of those in brackets, and the column after them."""
        found = _REWARDS.match(line, at)
        if found is None:
            return 0.0, at
        given = found[1].split(",")
        if len(given) != len(self.reward_models):
            raise self.error(
                f"{len(given)} rewards, and {len(self.reward_models)} reward models", at + 1
            )
        if self.chosen is None:
            return 0.0, found.end()
        return self.number_in(given[self.chosen].strip(), found.start(1) + 1), found.end()

    def read_labels(self, line: str, at: int) -> frozenset[str]:
        labels = set()
        while line[at:].strip():
            found = _TOKEN.match(line, at)
            if found is None or (found[2] or "_")[0] in "{!":
                raise self.error(
                    f"unexpected {shown(line[at:].strip())}; after a state come its labels, odd "
                    'ones in quotes, "like this"',
                    at + 1,
                )
            labels.add(found[1] if found[1] is not None else found[2])
            at = found.end()
        return frozenset(labels)

    def read_target(self, found: re.Match[str]) -> None:
        if not self.states or not self.states[-1].choices:
            raise self.error("a successor before the first action of a state")
        choice = self.states[-1].choices[-1]
        text = found[2] if found[3] is None else f"{found[2]}/{found[3]}"
        prob = self.number_in(text, found.start(2) + 1)
        if not 0.0 <= prob <= 1.0 + 1e-9:
            raise self.error(f"a probability of {prob:g}; allowed: 0 to 1", found.start(2) + 1)
        if len(found[1]) > 10:
            raise self.error(f"no state has the number {shown(found[1])}", found.start(1) + 1)
        choice.succ.append(int(found[1]))
        choice.prob.append(prob)

    def number_in(self, text: str, column: int) -> float:
        above, slash, below = text.partition("/")
        parts = [number_of(above), number_of(below) if slash else 1.0]
        if parts[0] is None or not parts[1]:
            raise self.error(f"{shown(text)} is not a number", column)
        value = parts[0] / parts[1]
        if not math.isfinite(value):
            raise self.error(f"{shown(text)} is not finite", column)
        return value

    def check_size(self, key: str, found: int) -> None:
        if self.sizes.get(key, found) != found:
            raise ModelError(
                f"{self.source.name}: {key} is {self.sizes[key]}, and {found} are listed"
            )

    def check_targets(self) -> None:
        for state in self.states:
            for choice in state.choices:
                if choice.succ and max(choice.succ) >= len(self.states):
                    raise self.source.error(
                        ModelError,
                        f"this choice leads to state {max(choice.succ)}; there are "
                        f"{len(self.states)} states, counted from 0",
                        line=choice.line,
                    )
