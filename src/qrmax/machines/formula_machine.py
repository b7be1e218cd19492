"""Reward machines that reward satisfying formulas, as restraining bolts do.

The machine gives the reward of a formula for a step after which the trace read so far satisfies it:
the first time (`pay="once"`), or after every such step (`pay="each"`). Several formulas are
monitored in parallel, and their rewards are summed.

When no more reward can be gained the episode ends: with success, in the state "satisfied", if every
formula with a positive reward is satisfied; otherwise with failure, in "violated". Penalties that
were still possible are then avoided: set `end_on_failure=False` if failing must not be a way out of
them, and `end_on_success=False` if the environment itself goes on giving rewards. If all rewards
are negative there is nothing to gain; the episode ends with failure when no penalty is left.

The trace begins with the label of the start state, which is read at reset without a reward: a
formula that it satisfies alone is satisfied before any reward is given. With
`consume_initial=False` the trace begins with the label after the first step.
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

PAY_MODES = ("once", "each")
SATISFIED, VIOLATED = "satisfied", "violated"


class FormulaOptions(TypedDict, total=False):
    """The options of machines made from formulas."""

    pay: str  # "once", the default, or "each"
    end_on_success: bool  # True by default
    end_on_failure: bool  # True
    consume_initial: bool  # True
    name: str  # "task"
    max_states: int  # of the automaton of a formula, and of their product; 20,000


WeightedDFAs = Sequence[tuple[DFA, float]]
"""Automata, each with the reward for its acceptance."""


def machine_of_formulas(
    formulas: str | Formula | Mapping[str, float],
    reward: float,
    logic: str,
    options: FormulaOptions,
) -> RewardMachine:
    """The machine that gives each formula's reward when it is satisfied."""
    _check_names(options)
    weighted = formulas.items() if isinstance(formulas, Mapping) else [(formulas, reward)]
    if not weighted:
        raise TaskError("no formula is given, so there would never be a reward")
    automata: list[tuple[DFA, float]] = []
    for formula, worth in weighted:
        dfa = compile_formula(formula, logic, max_states=options.get("max_states", MAX_STATES))
        if not any(dfa.accepting.intersection(dfa.successors(state)) for state in dfa.states):
            text = str(formula)[:80]
            raise TaskError(f"no trace satisfies {text!r}, so its reward would never be given")
        automata.append((dfa, worth))
    return machine_of(automata, options)


def machine_of(automata: WeightedDFAs, options: FormulaOptions) -> RewardMachine:
    """The machine that gives each reward when its automaton accepts."""
    _check_names(options)
    return _machine_of(automata, **options)


def _check_names(options: FormulaOptions) -> None:
    for name in options:
        if name not in FormulaOptions.__annotations__:
            raise UnknownNameError("option", name, FormulaOptions.__annotations__)


def _machine_of(
    automata: WeightedDFAs,
    *,
    pay: str = "once",
    end_on_success: bool = True,
    end_on_failure: bool = True,
    consume_initial: bool = True,
    name: str = "task",
    max_states: int = MAX_STATES,
) -> RewardMachine:
    check_choice("pay", pay, PAY_MODES)
    check_flag("end_on_success", end_on_success)
    check_flag("end_on_failure", end_on_failure)
    for _, reward in automata:
        _check_reward(reward)
    ends = {SATISFIED: end_on_success, VIOLATED: end_on_failure}
    try:
        monitor = _Monitor(automata, pay, ends, max_states)
    except SizeError as error:
        raise SizeError(
            f"{name}: the product of all formulas needs {error}: raise max_states"
        ) from error
    if not monitor.can_reward:
        raise TaskError(f"{name}: no trace satisfies this, so there would never be a reward")
    return RewardMachine(
        monitor.edges(),
        initial=monitor.names[0],
        success=[SATISFIED] if SATISFIED in monitor.names.values() else [],
        failure=[VIOLATED] if VIOLATED in monitor.names.values() else [],
        states=dict.fromkeys(monitor.names.values()),
        consume_initial=consume_initial,
        name=name,
    )


class _Monitor:
    """The product of several automata, with their rewards."""

    def __init__(
        self, weighted: WeightedDFAs, pay: str, ends: Mapping[str, bool], max_states: int
    ) -> None:
        self.rewards = [float(reward) for _, reward in weighted]
        self.repeats = pay == "each"
        self.propositions, automata = align(
            [
                (dfa.propositions, dfa.acceptor if self.repeats else _first_time(dfa.acceptor))
                for dfa, _ in weighted
            ]
        )
        product = Product([automaton.transitions for automaton in automata])
        self.transitions, places = unfold(product, product.initial, max_states)
        self.satisfied = [  # [state][formula]
            [a.accepting[state_ref(ref)] for a, ref in zip(automata, place, strict=True)]
            for place in places
        ]
        self.ends = ends
        self.live = _can_reach(self.transitions, self._gainful())  # more can be gained from these
        self.can_reward = 0 in self.live
        self.names = self._names()  # of the states that an episode can reach

    def edges(self) -> list[Edge]:
        """The edges between named states, but for self-loops with reward 0."""
        edges = []
        for state, name in self.names.items():
            if self._end(state):
                continue
            diagrams = Diagrams()
            labels: dict[tuple[str, float], int] = {}
            for target, leads in labels_by_target(self.transitions, state, diagrams).items():
                key = (self.names[target], math.fsum(self._rewards(state, target)))
                labels[key] = diagrams.disj(labels.get(key, FALSE), leads)
            for (target_name, reward), function in labels.items():
                if (target_name, reward) != (name, 0.0):
                    guard = guard_of(function, diagrams, self.propositions)
                    edges.append(Edge(name, guard, target_name, reward))
        return edges

    def _rewards(self, source: int, target: int) -> list[float]:
        """The rewards that the formulas give for a transition."""
        before, after = self.satisfied[source], self.satisfied[target]
        return [
            reward
            for reward, was, now in zip(self.rewards, before, after, strict=True)
            if now and (self.repeats or not was)
        ]

    def _gainful(self) -> list[int]:
        """The states from which one label earns a positive reward, or any if none is positive."""
        at_least = 0.0 if max(self.rewards) > 0.0 else -math.inf
        return [
            state
            for state in range(len(self.satisfied))
            if any(
                max(self._rewards(state, target), default=-math.inf) > at_least
                for target in self.transitions.successors(state)
            )
        ]

    def _names(self) -> dict[int, str]:
        names, ahead, numbers = {}, [0], count()
        for state in ahead:  # grows during the loop
            if state not in names:
                names[state] = self._end(state) or f"q{next(numbers)}"
                ahead += [] if self._end(state) else self.transitions.successors(state)
        return names

    def _end(self, state: int) -> str:
        """The terminal state that the episode ends in here, or an empty string."""
        if state in self.live:
            return ""
        pairs = zip(self.satisfied[state], self.rewards, strict=True)
        goals = [now for now, reward in pairs if reward > 0.0]
        end = SATISFIED if goals and all(goals) else VIOLATED
        return end if self.ends[end] else ""


def _first_time(acceptor: Acceptor) -> Acceptor:
    """The automaton that accepts a trace once a nonempty prefix has been accepted."""
    old, accepting = acceptor
    root = [
        state_ref(state) if accepts else ref
        for state, (ref, accepts) in enumerate(zip(old.root, accepting, strict=True))
    ]
    initial = len(root)  # a copy of state 0 that has not accepted yet
    transitions = old._replace(root=[*root, old.root[0]])
    return minimise(in_breadth_first_order(Acceptor(transitions, [*accepting, False]), initial))


def _can_reach(transitions: Transitions, goals: Sequence[int]) -> set[int]:
    """The states from which a goal is reachable, including the goals."""
    predecessors: list[list[int]] = [[] for _ in transitions.root]
    for state in range(len(predecessors)):
        for target in transitions.successors(state):
            predecessors[target].append(state)
    found, ahead = set(goals), list(goals)
    while ahead:
        new = set(predecessors[ahead.pop()]) - found
        found |= new
        ahead += new
    return found


def _check_reward(reward: float) -> None:
    fits = isinstance(reward, int | float) and math.isfinite(reward) and reward != 0.0
    if not fits or isinstance(reward, bool):
        raise ParameterError(f"reward is {shown(reward)}; allowed: finite numbers other than 0")
