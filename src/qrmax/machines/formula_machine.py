"""Reward machines that pay for satisfying formulas, as restraining bolts do.

The machine reads labels and pays the reward of a formula for a step after which the labels read so
far satisfy it: the first time (`pay="once"`), or after every such step (`pay="each"`). Several
formulas are watched side by side, and what they pay is added up.

Where nothing more is to gain the episode ends: with success, in the state "satisfied", where every
formula with a positive reward is satisfied, otherwise with failure, in "violated". What could still
be lost then is spared: set `end_on_failure=False` where failing must not be a way out of that, and
`end_on_success=False` where the world goes on paying. Where all rewards are negative there is
nothing to gain from the start; the episode ends with failure when nothing more can be lost.

The labels begin with that of the start state, which is read at reset without pay: a formula that
holds for it alone is satisfied before anything is paid. With `consume_initial=False` they begin
with the label after the first step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TypedDict

from qrmax.errors import (
    ParameterError,
    SizeError,
    TaskError,
    UnknownNameError,
    check_choice,
    check_flag,
    shown,
)
from qrmax.logic.bdd import FALSE, Diagrams
from qrmax.logic.compiler import MAX_STATES, compile_formula
from qrmax.logic.dfa import DFA
from qrmax.logic.formula import Formula
from qrmax.logic.isop import guard_of, labels_by_target
from qrmax.logic.minimise import minimise
from qrmax.logic.product import Product, align
from qrmax.logic.transitions import (
    Acceptor,
    Transitions,
    in_breadth_first_order,
    state_ref,
)
from qrmax.logic.walk import unfold
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine

PAY = ("once", "each")
SATISFIED, VIOLATED = "satisfied", "violated"


class PayOptions(TypedDict, total=False):
    """What can be said beside formulas and rewards."""

    pay: str  # "once", the default, or "each"
    end_on_success: bool  # True unless said otherwise
    end_on_failure: bool  # True
    consume_initial: bool  # True
    name: str  # "task"
    max_states: int  # of the automaton of a formula, and of all side by side; 20,000


Watched = Sequence[tuple[DFA, float]]
"""Automata, each with what its acceptance is worth."""


def machine_of_formulas(
    formulas: str | Formula | Mapping[str, float],
    reward: float,
    logic: str,
    options: PayOptions,
) -> RewardMachine:
    """The machine that pays where formulas are satisfied."""
    _check_names(options)
    weighted = formulas.items() if isinstance(formulas, Mapping) else [(formulas, reward)]
    if not weighted:
        raise TaskError("no formula is given, so nothing would ever be paid")
    automata: list[tuple[DFA, float]] = []
    for formula, worth in weighted:
        dfa = compile_formula(formula, logic, max_states=options.get("max_states", MAX_STATES))
        if not any(dfa.accepting.intersection(dfa.successors(state)) for state in dfa.states):
            text = str(formula)[:80]
            raise TaskError(f"no labels can satisfy {text!r}, so it would never be paid for")
        automata.append((dfa, worth))
    return machine_of(automata, options)


def machine_of(automata: Watched, options: PayOptions) -> RewardMachine:
    """The machine that pays each reward where its automaton accepts."""
    _check_names(options)
    return _machine_of(automata, **options)


def _check_names(options: PayOptions) -> None:
    for name in options:
        if name not in PayOptions.__annotations__:
            raise UnknownNameError("option", name, PayOptions.__annotations__)


def _machine_of(
    automata: Watched,
    *,
    pay: str = "once",
    end_on_success: bool = True,
    end_on_failure: bool = True,
    consume_initial: bool = True,
    name: str = "task",
    max_states: int = MAX_STATES,
) -> RewardMachine:
    check_choice("pay", pay, PAY)
    check_flag("end_on_success", end_on_success)
    check_flag("end_on_failure", end_on_failure)
    for _, reward in automata:
        _check_reward(reward)
    ends = {SATISFIED: end_on_success, VIOLATED: end_on_failure}
    try:
        watch = _Watch(automata, pay, ends, max_states)
    except SizeError as error:
        raise SizeError(
            f"{name}: all formulas side by side need {error}: raise max_states"
        ) from error
    if not watch.can_pay:
        raise TaskError(f"{name}: no labels can satisfy this, so nothing would ever be paid")
    return RewardMachine(
        watch.edges(),
        initial=watch.names[0],
        success=[SATISFIED] if SATISFIED in watch.names.values() else [],
        failure=[VIOLATED] if VIOLATED in watch.names.values() else [],
        states=dict.fromkeys(watch.names.values()),
        consume_initial=consume_initial,
        name=name,
    )


class _Watch:
    """Several automata side by side, and what they pay."""

    def __init__(
        self, watched: Watched, pay: str, ends: Mapping[str, bool], max_states: int
    ) -> None:
        self.rewards = [float(reward) for _, reward in watched]
        self.pays_again = pay == "each"
        self.propositions, automata = align(
            [
                (dfa.propositions, dfa.acceptor if self.pays_again else _first_time(dfa.acceptor))
                for dfa, _ in watched
            ]
        )
        walk = Product([automaton.transitions for automaton in automata])
        self.transitions, places = unfold(walk, walk.initial, max_states)
        self.satisfied = [  # [state][formula]
            [a.accepting[state_ref(ref)] for a, ref in zip(automata, place, strict=True)]
            for place in places
        ]
        self.ends = ends
        self.live = _can_reach(self.transitions, self._where_to_gain())  # more can be gained there
        self.can_pay = 0 in self.live
        self.names = self._names()  # of the states that an episode can come to

    def edges(self) -> list[Edge]:
        """The edges between named states, but for those that stay without pay."""
        edges = []
        for state, name in self.names.items():
            if self._end(state):
                continue
            diagrams = Diagrams()
            labels: dict[tuple[str, float], int] = {}
            for target, leads in labels_by_target(self.transitions, state, diagrams).items():
                key = (self.names[target], math.fsum(self._payments(state, target)))
                labels[key] = diagrams.disj(labels.get(key, FALSE), leads)
            for (target_name, reward), function in labels.items():
                if (target_name, reward) != (name, 0.0):
                    guard = guard_of(function, diagrams, self.propositions)
                    edges.append(Edge(name, guard, target_name, reward))
        return edges

    def _payments(self, source: int, target: int) -> list[float]:
        """What is paid on the way from one state to the next, formula by formula."""
        before, after = self.satisfied[source], self.satisfied[target]
        return [
            reward
            for reward, was, now in zip(self.rewards, before, after, strict=True)
            if now and (self.pays_again or not was)
        ]

    def _where_to_gain(self) -> list[int]:
        """The states from which one label earns a positive reward, or any if none is positive."""
        at_least = 0.0 if max(self.rewards) > 0.0 else -math.inf
        return [
            state
            for state in range(len(self.satisfied))
            if any(
                max(self._payments(state, target), default=-math.inf) > at_least
                for target in self.transitions.successors(state)
            )
        ]

    def _names(self) -> dict[int, str]:
        names, ahead, numbers = {}, [0], count()
        for state in ahead:  # the list grows on the way
            if state not in names:
                names[state] = self._end(state) or f"q{next(numbers)}"
                ahead += [] if self._end(state) else self.transitions.successors(state)
        return names

    def _end(self, state: int) -> str:
        """The end that the episode comes to here, or nothing."""
        if state in self.live:
            return ""
        pairs = zip(self.satisfied[state], self.rewards, strict=True)
        wanted = [now for now, reward in pairs if reward > 0.0]
        end = SATISFIED if wanted and all(wanted) else VIOLATED
        return end if self.ends[end] else ""


def _first_time(acceptor: Acceptor) -> Acceptor:
    """Accepts from the first time on that some labels, at least one, have been accepted."""
    old, accepting = acceptor
    root = [
        state_ref(state) if accepts else ref
        for state, (ref, accepts) in enumerate(zip(old.root, accepting, strict=True))
    ]
    begins = len(root)  # as state 0 does, but without having accepted
    transitions = old._replace(root=[*root, old.root[0]])
    return minimise(in_breadth_first_order(Acceptor(transitions, [*accepting, False]), begins))


def _can_reach(transitions: Transitions, goals: Sequence[int]) -> set[int]:
    """The states from which labels can lead to one of the goals, and the goals."""
    before: list[list[int]] = [[] for _ in transitions.root]
    for state in range(len(before)):
        for target in transitions.successors(state):
            before[target].append(state)
    found, ahead = set(goals), list(goals)
    while ahead:
        new = set(before[ahead.pop()]) - found
        found |= new
        ahead += new
    return found


def _check_reward(reward: float) -> None:
    fits = isinstance(reward, int | float) and math.isfinite(reward) and reward != 0.0
    if not fits or isinstance(reward, bool):
        raise ParameterError(f"reward is {shown(reward)}; allowed: finite numbers but 0")
