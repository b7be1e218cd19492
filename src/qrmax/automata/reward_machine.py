"""Reward machines: finite automata that read labels and pay rewards.

A machine is in one of its named states. After each step of the world it reads the label of the
state reached, takes the edge whose guard holds, and pays that edge's reward. Terminal states end
the episode, each with success or with failure.

Tools disagree about three things, so here they are explicit:

- `consume_initial` (default True, as in the paper): at reset the machine reads the label of the
  start state, without pay;
- `undefined`: a label for which no edge of the current state matches leaves the machine where it is
  ("stay", the default) or ends the episode in the failure state "failed" ("fail");
- `strict`: where two edges of a state hold for the same label, the first one wins; a strict machine
  refuses to be built instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.automata.guards import Guard, Label, as_label
from qrmax.errors import TaskError, check_choice

FELL_OFF = "failed"
"""Where a machine with `undefined="fail"` goes when no edge matches."""


@dataclass(frozen=True, slots=True)
class Edge:
    """From one state to another when the guard holds, paying a reward.

    >>> Edge("start", "coffee & !mail", "has_coffee")
    Edge('start' -> 'has_coffee' when 'coffee & !mail' pays 0)
    """

    source: str
    guard: Guard
    target: str
    reward: float = 0.0

    def __init__(self, source: str, guard: Guard | str, target: str, reward: float = 0.0) -> None:
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "guard", Guard.parse(guard) if isinstance(guard, str) else guard)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "reward", _number(reward))
        if not math.isfinite(self.reward):
            raise TaskError(
                f"the reward of {source!r} -> {target!r} is {str(reward)[:40]!r}; "
                "allowed: finite numbers"
            )

    def __repr__(self) -> str:
        ends = f"{self.source!r} -> {self.target!r}"
        return f"Edge({ends} when {str(self.guard)!r} pays {self.reward:g})"


class MachineStep(NamedTuple):
    """What one label did."""

    state: str
    reward: float


class MachineRun(NamedTuple):
    """What a sequence of labels did."""

    state: str  # where the machine ended
    reward: float  # sum of the rewards
    states: tuple[str, ...]  # every state, the first included
    rewards: tuple[float, ...]  # one per label read
    success: bool
    failure: bool


class MachineTable(NamedTuple):
    """A machine over numbered labels: what planners and learners read."""

    next_state: NDArray[np.int32]  # [q, label]
    reward: NDArray[np.float64]  # [q, label]
    terminal: NDArray[np.bool_]  # [q]
    success: NDArray[np.bool_]  # [q]
    initial: NDArray[np.int32]  # [label]: the state after a reset into a world state so labelled


class RewardMachine:
    """A task: what is rewarded, as a finite automaton over labels.

    Terminal states, `success` and `failure`, end the episode. Where two edges of a state hold for
    a label the first wins; `strict` refuses such a machine. Where none holds the machine stays, or
    with `undefined="fail"` ends in the failure state "failed". At reset the machine reads the label
    of the start state, without pay, unless `consume_initial` is False. `states` fixes the states
    and their order; without it they are those that the edges name.

    >>> task = RewardMachine(
    ...     [Edge("start", "coffee", "has_coffee"), Edge("has_coffee", "office", "done", reward=1)],
    ...     initial="start",
    ...     success=["done"],
    ... )
    >>> task.step("start", {"coffee"})
    MachineStep(state='has_coffee', reward=0.0)
    >>> task.run([{"coffee"}, set(), {"office"}]).reward
    1.0
    >>> task
    RewardMachine('task': 3 states, 2 edges, 'start' -> success 'done')
    """

    def __init__(
        self,
        edges: Iterable[Edge],
        *,
        initial: str,
        success: Iterable[str] = (),
        failure: Iterable[str] = (),
        states: Iterable[str] | None = None,
        undefined: str = "stay",
        strict: bool = False,
        consume_initial: bool = True,
        name: str = "task",
        description: str = "",
    ) -> None:
        check_choice("undefined", undefined, ("stay", "fail"))
        self.name = name
        self.description = description
        self.edges = tuple(edges)
        for edge in self.edges:
            if not isinstance(edge, Edge):
                raise TaskError(f"{name}: {edge!r} is not an Edge(source, guard, target, reward)")
        self.initial = initial
        self.success = _names("success", success)
        self.undefined = undefined
        self.strict = strict
        self.consume_initial = consume_initial
        falls_off = [FELL_OFF] if undefined == "fail" else []
        self.failure = _names("failure", failure) | frozenset(falls_off)
        found = [self.initial, *(end for e in self.edges for end in (e.source, e.target))]
        ends = [*sorted(self.success), *sorted(self.failure)]
        declared = None if states is None else [*_checked("states", states), *falls_off]
        self.states = tuple(dict.fromkeys([*found, *ends] if declared is None else declared))
        self._index = {state: number for number, state in enumerate(self.states)}
        self._edges_of: dict[str, list[Edge]] = {state: [] for state in self.states}
        self._check(declared, found + ends)
        for edge in self.edges:
            self._edges_of[edge.source].append(edge)
        if strict:
            self._check_overlaps()

    @property
    def propositions(self) -> frozenset[str]:
        """Every proposition that some guard names."""
        return frozenset().union(*(edge.guard.propositions for edge in self.edges))

    @property
    def terminal(self) -> frozenset[str]:
        """The states that end an episode."""
        return self.success | self.failure

    def reachable(self) -> frozenset[str]:
        """The states that some sequence of labels leads to, if every edge can be taken."""
        reached = {self.initial, *([FELL_OFF] if self.undefined == "fail" else [])}
        ahead = [self.initial]
        while ahead:
            targets = {edge.target for edge in self._edges_of[ahead.pop()]} - reached
            reached |= targets
            ahead += targets
        return frozenset(reached)

    def index(self, state: str) -> int:
        """The number of a state in the table form."""
        self._check_state(state)
        return self._index[state]

    def step(self, state: str, label: Iterable[str]) -> MachineStep:
        """Read one label in `state`. Terminal states stay where they are and pay nothing."""
        self._check_state(state)
        read = as_label(label)
        for edge in self._edges_of[state]:
            if edge.guard.holds(read):
                return MachineStep(edge.target, edge.reward)
        if self.undefined == "fail" and state not in self.terminal:
            return MachineStep(FELL_OFF, 0.0)
        return MachineStep(state, 0.0)

    def reset(self, label: Iterable[str]) -> str:
        """The state at the start of an episode in a world state with this label."""
        return self.step(self.initial, label).state if self.consume_initial else self.initial

    def run(self, trace: Iterable[Iterable[str]]) -> MachineRun:
        """Read a whole sequence of labels from the initial state, and pay for each."""
        states, rewards = [self.initial], []
        for label in trace:
            state, reward = self.step(states[-1], label)
            states.append(state)
            rewards.append(reward)
        last = states[-1]
        return MachineRun(
            state=last,
            reward=math.fsum(rewards),
            states=tuple(states),
            rewards=tuple(rewards),
            success=last in self.success,
            failure=last in self.failure,
        )

    def table(self, labels: Sequence[Label]) -> MachineTable:
        """The machine over these labels, numbered in this order."""
        steps = [[self.step(state, label) for label in labels] for state in self.states]
        shape = (len(self.states), len(labels))
        return MachineTable(
            next_state=np.array(
                [[self._index[step.state] for step in row] for row in steps], dtype=np.int32
            ).reshape(shape),
            reward=np.array(
                [[step.reward for step in row] for row in steps], dtype=np.float64
            ).reshape(shape),
            terminal=np.array([state in self.terminal for state in self.states]),
            success=np.array([state in self.success for state in self.states]),
            initial=np.array([self._index[self.reset(label)] for label in labels], dtype=np.int32),
        )

    def __str__(self) -> str:
        """A table of the machine for people to read."""
        rows = [("from", "when", "to", "reward")]
        rows += [(e.source, str(e.guard), e.target, f"{e.reward:g}") for e in self.edges]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        head = f"{self.name}: {self.description}" if self.description else self.name
        otherwise = "stay, reward 0" if self.undefined == "stay" else f"{FELL_OFF!r}, reward 0"
        facts = {
            "initial": self.initial + (" (reads the start label)" * self.consume_initial),
            "success": ", ".join(sorted(self.success)) or "none",
            "failure": ", ".join(sorted(self.failure)) or "none",
            "otherwise": otherwise,
        }
        return "\n".join([head, "", *lines, "", *(f"{k}: {v}" for k, v in facts.items())])

    def __repr__(self) -> str:
        ends: Mapping[str, frozenset[str]] = {"success": self.success, "failure": self.failure}
        shown = ", ".join(
            f"{kind} {state!r}" for kind, group in ends.items() for state in sorted(group)
        )
        return (
            f"RewardMachine({self.name!r}: {len(self.states)} states, {len(self.edges)} edges, "
            f"{self.initial!r} -> {shown or 'no end'})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewardMachine) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        behaviour = (self.undefined, self.strict, self.consume_initial)
        ends = (self.initial, self.success, self.failure)
        return (self.name, self.description, self.states, self.edges, *ends, *behaviour)

    def _check(self, declared: list[str] | None, used: list[str]) -> None:
        if declared is not None:
            for state in used:
                if state not in self._index:
                    raise TaskError(
                        f"{self.name}: state {state!r} is used but not among the declared states "
                        f"{', '.join(map(repr, self.states))}"
                    )
            for state in self.states:  # FELL_OFF may be declared as well as implied
                if declared.count(state) > 1 + (state == FELL_OFF and self.undefined == "fail"):
                    raise TaskError(f"{self.name}: state {state!r} is declared twice")
        if both := self.success & self.failure:
            raise TaskError(f"{self.name}: {sorted(both)[0]!r} is both a success and a failure")
        for edge in self.edges:
            if edge.source in self.terminal:
                raise TaskError(
                    f"{self.name}: {edge!r} leaves a terminal state; the episode is over there"
                )
        if self.initial in self.terminal:
            raise TaskError(f"{self.name}: the initial state {self.initial!r} is terminal")

    def _check_overlaps(self) -> None:
        for edges in self._edges_of.values():
            for later, edge in enumerate(edges, start=1):
                for rival in edges[later:]:
                    label = edge.guard.overlap(rival.guard)
                    if label is not None:
                        raise TaskError(
                            f"{self.name}: strict, but two edges of {edge.source!r} overlap\n"
                            f"  {edge!r}\n  {rival!r}\n"
                            f"  both hold where exactly {{{', '.join(sorted(label))}}} is true;\n"
                            f"  make one guard exclude the other, or drop strict: the first wins"
                        )

    def _check_state(self, state: str) -> None:
        if state not in self._index:
            raise TaskError(
                f"{self.name} has no state {state!r}; states: {', '.join(map(repr, self.states))}"
            )


def _number(reward: float) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    return frozenset(_checked(what, names))


def _checked(what: str, names: Iterable[str]) -> Iterable[str]:
    """The names as given; a lone text is refused, since its letters would be taken for names."""
    if isinstance(names, str):
        raise TaskError(f"{what} is {names!r}; allowed: a list of names, such as [{names!r}]")
    return names
