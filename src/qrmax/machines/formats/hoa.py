"""Tasks in HOA, the Hanoi Omega-Automata format (version 1) of automata tools.

    HOA: v1
    name: "exp1"
    States: 2
    Start: 0
    AP: 1 "office"
    acc-name: Buchi
    Acceptance: 1 Inf(0)
    properties: trans-labels explicit-labels state-acc deterministic complete
    rewards: "0.0" "1.0" "0.0"
    failure:
    --BODY--
    State: 0 "start"
    [!0] 0
    [0] 1
    State: 1 "done" {0}
    [t] 1
    --END--

Other tools read the language: the traces that end in success, as a deterministic automaton with
accepting states. The guards of a state are mutually exclusive, and staying is an edge, so the
machine that is read back is equivalent, with the same names, but not with the same edges. `rewards`
(of all edges, in order), `failure` (numbers of states), `description` and `consume-initial` are
headers of our own, in lower case, which other tools are to ignore. HOA has no probabilities:
stochastic machines are refused.

From other tools, deterministic automata with state-based Büchi acceptance are read. Accepting
states are successes and end the episode, with reward 1 for entering one; rejecting states that
cannot be left are failures; so is a label that no edge matches.
"""

from __future__ import annotations

import math
from pathlib import Path

from qrmax.errors import GuardError, TaskError
from qrmax.logic.guards import Guard, named
from qrmax.machines.edges import ALWAYS, Edge
from qrmax.machines.formats.fields import make_machine
from qrmax.machines.formats.hoa_reader import HOAReader, State
from qrmax.machines.formats.names import unused
from qrmax.machines.formats.number import number_of
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

MAX_COMPARISONS = 500_000  # of edges of one state, to check determinism


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """Format a task as HOA text that `parse` reads back to an equivalent machine."""
    if machine.is_stochastic:
        raise TaskError(
            f"{machine.name}: HOA has no probabilities; write stochastic reward machines as TOML"
        )
    propositions = sorted(machine.propositions)
    numbers = {name: str(number) for number, name in enumerate(propositions)}
    rewards: list[str] = []
    body: list[str] = []
    for number, state in enumerate(machine.states):
        accepting = " {0}" if state in machine.success else ""
        body.append(f"State: {number} {_quote(state)}{accepting}")
        for guard, (outcome,) in machine.events(state):
            rewards.append(_quote(repr(outcome.reward)))
            label = tuple(_to_hoa(item, numbers) for item in guard.postfix)
            body.append(f"[{Guard(label)}] {machine.index(outcome.state)}")
    failures = sorted(machine.index(state) for state in machine.failure)
    description = [f"description: {_quote(machine.description)}"] if machine.description else []
    head = [
        "HOA: v1",
        f"name: {_quote(machine.name)}",
        f"States: {len(machine.states)}",
        f"Start: {machine.index(machine.initial)}",
        " ".join([f"AP: {len(propositions)}", *map(_quote, propositions)]),
        "acc-name: Buchi",
        "Acceptance: 1 Inf(0)",
        "properties: trans-labels explicit-labels state-acc deterministic complete",
        *description,
        " ".join(["rewards:", *rewards]),
        " ".join(["failure:", *map(str, failures)]),
        *([] if machine.consume_initial else ["consume-initial: f"]),
    ]
    return "\n".join([*head, "--BODY--", *body, "--END--"]) + "\n"


def parse(source: Source) -> RewardMachine:
    """Parse a task from HOA text."""
    return _Task(source, HOAReader(source)).machine()


class _Task:
    """The interpretation of an automaton as a task."""

    def __init__(self, source: Source, automaton: HOAReader) -> None:
        self.source = source
        self.automaton = automaton
        self.states = automaton.states
        self.names = self._names()
        self.success = {state.number for state in self.states.values() if state.accepting}
        self.failure = self._failures() - self.success

    def machine(self) -> RewardMachine:
        ends = self.success | self.failure
        inner = [state for state in self.states.values() if state.number not in ends]
        pairs = sum(len(state.edges) * (len(state.edges) - 1) // 2 for state in inner)
        if pairs > MAX_COMPARISONS:
            raise self._error(
                f"checking determinism takes {pairs} comparisons of edges; "
                f"allowed: at most {MAX_COMPARISONS}"
            )
        complete = [self._is_complete(state) for state in inner]
        rewards = self._rewards()
        edges = [
            Edge(
                self.names[state.number], edge.guard, self._name(edge.target), rewards[edge.number]
            )
            for state in inner
            for edge in state.edges
        ]
        automaton = self.automaton
        return make_machine(
            self.source,
            edges,
            initial=self._start(),
            success=[self.names[number] for number in self.success],
            failure=[self.names[number] for number in self.failure],
            states=[*self.names.values()],
            undefined="stay" if all(complete) else "fail",
            consume_initial=automaton.text("consume-initial", "t") != "f",
            name=automaton.text("name", Path(self.source.name).stem),
            description=automaton.text("description", ""),
        )

    def _names(self) -> dict[int, str]:
        """Unique names of the states: HOA allows duplicates."""
        names: dict[int, str] = {}
        taken: set[str] = set()
        for state in self.states.values():
            name = state.name if state.name not in taken else f"{state.name} ({state.number})"
            names[state.number] = unused(name, taken)
            taken.add(names[state.number])
        return names

    def _failures(self) -> set[int]:
        told = self.automaton.headers.get("failure")
        if told is not None:
            return {self.automaton.number(token) for token in told} & {*self.states}
        return {s.number for s in self.states.values() if not s.accepting and s.is_sink}

    def _rewards(self) -> list[float]:
        """The reward of each edge: as given, or 1 for reaching a success."""
        edges = [edge for state in self.states.values() for edge in state.edges]
        told = self.automaton.headers.get("rewards")
        if told is None:
            return [float(edge.target in self.success) for edge in edges]
        if len(told) != len(edges):
            raise self._error(f"{len(told)} rewards for {len(edges)} edges")
        rewards = []
        for token in told:
            reward = number_of(token.text)
            if reward is None or not math.isfinite(reward):
                raise self.automaton.cursor.error("expected a finite number as a reward", token)
            rewards.append(reward)
        return rewards

    def _is_complete(self, state: State) -> bool:
        """Whether every label matches some edge; an error if one matches two."""
        if state.implicit == len(state.edges) > 0:
            return state.implicit == 1 << len(self.automaton.propositions)
        rest = ALWAYS
        try:
            for number, edge in enumerate(state.edges):
                for other in state.edges[:number]:
                    if edge.guard.overlap(other.guard) is not None:
                        raise self._error(
                            f"state {state.number} is not deterministic: {_cut(edge.guard)} "
                            f"and {_cut(other.guard)} can hold at once"
                        )
                rest = rest.but_not(edge.guard)
            return rest.example() is None
        except GuardError as error:
            raise self._error(f"state {state.number}: {error}") from error

    def _start(self) -> str:
        values = self.automaton.headers.get("Start", [])
        if len(values) != 1:
            raise self._error("needed: a header 'Start' with one number")
        return self._name(self.automaton.number(values[0]))

    def _name(self, number: int) -> str:
        if number not in self.names:
            raise self._error(f"no state {number}")
        return self.names[number]

    def _error(self, message: str) -> TaskError:
        return TaskError(f"{self.source.name}: {message}")


def _cut(guard: Guard) -> str:
    return repr(str(guard)[:80])


def _to_hoa(item: str, numbers: dict[str, str]) -> str:
    return {"true": "t", "false": "f"}.get(item) or numbers.get(named(item), item)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
