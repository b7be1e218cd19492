"""Reward machines: finite automata that read labels and output rewards.

A machine is in one of its named states. After each step of the environment it reads the label of
the state reached, takes the edge whose guard holds, and outputs that edge's reward. Terminal states
end the episode, each with success or with failure.

Tools disagree about three conventions, so here they are explicit:

- `consume_initial` (default True, as in the paper): at reset the machine reads the label of the
  start state, without a reward;
- `undefined`: on a label that no edge of the current state matches, the machine stays ("stay", the
  default) or ends the episode in the failure state "failed" ("fail");
- `strict`: if two edges of a state hold for the same label, the first one is taken; a strict
  machine cannot be built with such edges.

Edges with a `probability` make a stochastic reward machine: see `edges`. Outcomes are drawn from
the generator given to `step`, one number for each event that has several outcomes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qrmax.draw import draw
from qrmax.errors import ParameterError, TaskError, check_choice, shown
from qrmax.logic.guards import Guard, Label, as_label, braced
from qrmax.logic.text_table import aligned
from qrmax.machines.edges import Edge, Event, Outcome, events_of, exclusive
from qrmax.machines.equivalence import Counterexample, counterexample
from qrmax.machines.machine_table import MachineTable, table_of
from qrmax.machines.validity import check_declared, check_ends, check_overlaps
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.seeding import Chance

if TYPE_CHECKING:
    from typing import Unpack

    from qrmax.logic.dfa import DFA
    from qrmax.logic.formula import Formula
    from qrmax.machines.formula_machine import FormulaOptions
    from qrmax.machines.shaping import Shaping

FAILED = "failed"
"""The failure state of a machine with `undefined="fail"`, entered when no edge matches."""


class MachineStep(NamedTuple):
    """The result of reading one label."""

    state: str
    reward: float


class MachineRun(NamedTuple):
    """The result of reading a sequence of labels."""

    state: str  # the last one
    reward: float  # sum of the rewards
    states: tuple[str, ...]  # every state, the first included
    rewards: tuple[float, ...]  # one per label read
    success: bool
    failure: bool


class RewardMachine:
    """A task: a non-Markovian reward function, as a finite automaton over labels.

    Args:
        edges: the transitions; if the guards of two hold, the first is taken. (Edges with the same
            guard and probabilities below 1 are alternatives, of which one is drawn.)
        initial: the initial state.
        success: the terminal states that end an episode with success.
        failure: the terminal states that end it with failure.
        states: all states, in order; by default those that the edges mention.
        undefined: "stay" in the same state on a label that no edge matches, or "fail": end in the
            failure state "failed".
        strict: raise an error if the guards of two edges of a state overlap.
        consume_initial: read the label of the start state at reset, without a reward.
        name: for tables and messages.
        description: one line.

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
        self.shaping: Shaping | None = None  # set by `shaped`
        self.edges = tuple(edges)
        for edge in self.edges:
            if not isinstance(edge, Edge):
                raise TaskError(f"{name}: {edge!r} is not an Edge(source, guard, target, ...)")
        self.initial = initial
        self.success = _names("success", success)
        self.undefined = undefined
        self.strict = strict
        self.consume_initial = consume_initial
        implied = [FAILED] if undefined == "fail" else []
        self.failure = _names("failure", failure) | frozenset(implied)
        found = [self.initial, *(end for e in self.edges for end in (e.source, e.target))]
        ends = [*sorted(self.success), *sorted(self.failure)]
        declared = None if states is None else [*_checked("states", states), *implied]
        self.states = tuple(dict.fromkeys([*found, *ends] if declared is None else declared))
        self._index = {state: number for number, state in enumerate(self.states)}
        if declared is not None:
            check_declared(self, declared, used=found + ends, implied=implied)
        check_ends(self)
        self._edges_of: dict[str, list[Edge]] = {state: [] for state in self.states}
        for edge in self.edges:
            self._edges_of[edge.source].append(edge)
        self._cases = self._find_cases()
        self.most_outcomes = max(
            len(case.outcomes) for cases in self._cases.values() for case in cases
        )
        if strict:
            check_overlaps(self)

    @staticmethod
    def from_ltlf(
        formula: str | Formula | Mapping[str, float],
        reward: float = 1.0,
        **options: Unpack[FormulaOptions],
    ) -> RewardMachine:
        """Compile a formula of LTLf to a machine that gives `reward` when the trace satisfies it.

        Args:
            formula: one formula, or several with a reward each: {formula: reward, ...}.
            reward: the reward of a single formula.
            **options: `pay` ("once", or "each" for after every step), `end_on_success`,
                `end_on_failure`, `consume_initial`, `name`, `max_states`; their semantics is in
                `help(qrmax.machines.formula_machine)`.

        >>> task = RewardMachine.from_ltlf("F(coffee & F office) & G !hole")
        >>> task
        RewardMachine('task': 4 states, 5 edges, 'q0' -> success 'satisfied', failure 'violated')
        >>> task.run([{"coffee"}, set(), {"office"}]).reward
        1.0
        """
        from qrmax.machines.formula_machine import machine_of_formulas

        return machine_of_formulas(formula, reward, "ltlf", options)

    @staticmethod
    def from_ldlf(
        formula: str | Formula | Mapping[str, float],
        reward: float = 1.0,
        **options: Unpack[FormulaOptions],
    ) -> RewardMachine:
        """Compile a formula of LDLf; otherwise as `from_ltlf`."""
        from qrmax.machines.formula_machine import machine_of_formulas

        return machine_of_formulas(formula, reward, "ldlf", options)

    @staticmethod
    def from_ppltl(
        formula: str | Formula | Mapping[str, float],
        reward: float = 1.0,
        **options: Unpack[FormulaOptions],
    ) -> RewardMachine:
        """Compile a formula of PPLTL; otherwise as `from_ltlf`."""
        from qrmax.machines.formula_machine import machine_of_formulas

        return machine_of_formulas(formula, reward, "ppltl", options)

    @staticmethod
    def from_dfa(dfa: DFA, reward: float = 1.0, **options: Unpack[FormulaOptions]) -> RewardMachine:
        """The machine that gives `reward` when the automaton accepts; options as in `from_ltlf`."""
        from qrmax.machines.formula_machine import machine_of

        return machine_of([(dfa, reward)], options)

    def to_dfa(self) -> DFA:
        """The minimal DFA of the traces that lead to success.

        >>> task = RewardMachine([Edge("go", "goal", "there", 1)], initial="go", success=["there"])
        >>> task.to_dfa()
        DFA(2 states over goal)
        """
        from qrmax.logic.dfa import DFA

        edges = list(self.edges)
        if self.undefined == "fail":
            edges += [
                Edge(state, "true", FAILED) for state in self.states if state not in self.terminal
            ]
        return DFA.from_edges(edges, initial=self.initial, accepting=self.success)

    def shaped(self, gamma: float, *, world_ends: Guard | str = "false") -> RewardMachine:
        """The same task with potential-based reward shaping.

        Optimal policies are preserved; see `shaping`. Runs on the shaped task are evaluated on the
        unshaped one, which its attribute `shaping` refers to: shaping lowers all values by the
        potential of the start. Shaping a shaped machine replaces its shaping.

        Args:
            gamma: the agent's discount factor.
            world_ends: a guard that holds for the labels of states in which the environment itself
                ends the episode, such as "decoration" in the Office.

        >>> task = RewardMachine([Edge("go", "goal", "there", 1)], initial="go", success=["there"])
        >>> task.shaped(0.5).run([set(), {"goal"}]).rewards
        (-0.5, 0.0)
        """
        from qrmax.machines.shaping import shape

        ends = Guard.parse(world_ends) if isinstance(world_ends, str) else world_ends
        return shape(self if self.shaping is None else self.shaping.unshaped, gamma, ends)

    def restricted(
        self, labels: Iterable[Iterable[str]], *, name: str | None = None
    ) -> RewardMachine:
        """The same task for an environment with these labels alone.

        It has the states reachable under these labels, and short guards that separate them; its
        behaviour on any other label is unspecified. The rewards of a shaped machine are kept, but
        not its `shaping`.

        Args:
            labels: the labels that occur, such as `qrmax.load_map("map1").labels()`.
            name: of the new machine; by default that of the old one.

        >>> task = RewardMachine.from_ltlf("F(coffee & !mail & F office)")
        >>> for edge in task.restricted([[], ["coffee"], ["mail"], ["office"]]).edges:
        ...     print(edge.source, "->", edge.target, "when", edge.guard)
        q0 -> q1 when coffee
        q1 -> satisfied when office
        """
        from qrmax.machines.restriction import restrict

        return restrict(self, labels, name)

    @property
    def propositions(self) -> frozenset[str]:
        """The propositions that occur in guards."""
        return frozenset().union(*(edge.guard.propositions for edge in self.edges))

    @property
    def terminal(self) -> frozenset[str]:
        """The states that end an episode."""
        return self.success | self.failure

    @property
    def is_stochastic(self) -> bool:
        """Whether this is a stochastic reward machine: some event has several outcomes."""
        return self.most_outcomes > 1

    def reachable(self) -> frozenset[str]:
        """The states reachable from the initial one, if every edge can be taken."""
        reached = {self.initial, *([FAILED] if self.undefined == "fail" else [])}
        ahead = [self.initial]
        while ahead:
            targets = {edge.target for edge in self._edges_of[ahead.pop()]} - reached
            reached |= targets
            ahead += targets
        return frozenset(reached)

    def counterexample(self, other: RewardMachine) -> Counterexample | None:
        """A shortest trace that separates this machine from another, or None if equivalent.

        Machines are equivalent if they give the same rewards and end alike on every trace from
        their initial states. Names of states do not matter, nor does `consume_initial`: whether
        the label of the start is part of the trace.

        >>> intended = RewardMachine([Edge("s", "a & b", "t", 1)], initial="s", success=["t"])
        >>> given = RewardMachine([Edge("s", "a", "t", 1)], initial="s", success=["t"])
        >>> print(intended.counterexample(given))
        at the start, reading {a}:
          task  's' -> 's', reward 0
          task  's' -> 't', reward 1
        """
        if not isinstance(other, RewardMachine):
            raise ParameterError(
                f"{shown(other)} is not a RewardMachine; qrmax.load_task reads one"
            )
        return counterexample(self, other)

    def equivalent(self, other: RewardMachine) -> bool:
        """Whether two machines are equivalent: see `counterexample`."""
        return self.counterexample(other) is None

    def edges_of(self, state: str) -> Sequence[Edge]:
        """The edges that leave a state."""
        self._check_state(state)
        return self._edges_of[state]

    def index(self, state: str) -> int:
        """The index of a state in the table form."""
        self._check_state(state)
        return self._index[state]

    def outcomes(self, state: str, label: Iterable[str]) -> tuple[Outcome, ...]:
        """The outcomes of reading a label in `state`; probabilities are positive and sum to 1.

        Terminal states are absorbing, with reward 0.
        """
        self._check_state(state)
        read = as_label(label)
        return next(event.outcomes for event in self._cases[state] if event.guard.holds(read))

    def cases(self, state: str) -> list[Event]:
        """The events of a state, to be tried in order; the guard of the last always holds."""
        self._check_state(state)
        return self._cases[state]

    def events(self, state: str) -> list[Event]:
        """The events of a state with mutually exclusive guards: each label satisfies exactly one.

        >>> task = RewardMachine([Edge("s", "a", "t"), Edge("s", "b", "u")], initial="s")
        >>> for event in task.events("s"):
        ...     print(event.guard, "->", event.outcomes[0].state)
        a -> t
        b & !a -> u
        !a & !b -> s
        """
        return exclusive(self.cases(state))

    def step(self, state: str, label: Iterable[str], rng: Chance | None = None) -> MachineStep:
        """Read one label in `state`. Terminal states are absorbing, with reward 0.

        Args:
            state: the current state.
            label: the propositions that are true.
            rng: the generator to draw from if there are several outcomes; not used otherwise.
        """
        read = as_label(label)
        outcomes = self.outcomes(state, read)
        chosen = outcomes[0]
        if len(outcomes) > 1:
            if rng is None:
                raise TaskError(
                    f"{self.name}: the transition from {state!r} on {braced(read)} is stochastic; "
                    "give a generator to draw from, such as rng=np.random.default_rng(7)"
                )
            chosen = outcomes[draw((o.probability for o in outcomes), rng.random())]
        return MachineStep(chosen.state, chosen.reward)

    def reset(self, label: Iterable[str]) -> str:
        """The state at the start of an episode that begins in a state with this label."""
        read = as_label(label)
        state = self.first_state(read)
        if state is None:
            raise TaskError(
                f"{self.name}: the start has the label {braced(read)}, on which the transition "
                f"from {self.initial!r} is stochastic; set consume_initial = false, or change the "
                "labels"
            )
        return state

    def without_start_label(self) -> RewardMachine:
        """The same machine with `consume_initial=False`, which reads no label at the start."""
        machine = copy.copy(self)
        machine.consume_initial = False
        if self.shaping is not None:
            plain = self.shaping.unshaped.without_start_label()
            machine.shaping = self.shaping._replace(unshaped=plain)
        return machine

    def first_state(self, label: Label) -> str | None:
        """The start state of an episode that begins with this label; None if it is stochastic."""
        if not self.consume_initial:
            return self.initial
        outcomes = self.outcomes(self.initial, label)
        return outcomes[0].state if len(outcomes) == 1 else None

    def run(self, trace: Iterable[Iterable[str]], rng: Chance | None = None) -> MachineRun:
        """Read a sequence of labels from the initial state, collecting the rewards.

        Args:
            trace: the labels.
            rng: the generator that a stochastic machine draws from, as in `step`.
        """
        states, rewards = [self.initial], []
        for label in trace:
            state, reward = self.step(states[-1], label, rng)
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
        """The transition and reward tables over these labels, numbered in this order."""
        return table_of(self, labels)

    def __str__(self) -> str:
        """A text table of the machine."""
        head = ["from", "when", "to", "reward", "probability"]
        rows = [
            [e.source, str(e.guard), e.target, f"{e.reward:g}", f"{e.probability:g}"]
            for e in self.edges
        ]
        columns = 4 + any(edge.probability < 1.0 for edge in self.edges)
        lines = aligned(head[:columns], [row[:columns] for row in rows])
        title = f"{self.name}: {self.description}" if self.description else self.name
        otherwise = "stay, reward 0" if self.undefined == "stay" else f"{FAILED!r}, reward 0"
        facts = {
            "initial": self.initial + (" (reads the start label)" * self.consume_initial),
            "success": ", ".join(sorted(self.success)) or "none",
            "failure": ", ".join(sorted(self.failure)) or "none",
            "otherwise": otherwise,
        }
        return "\n".join([title, "", *lines, "", *(f"{k}: {v}" for k, v in facts.items())])

    def draw(self, state: str | None = None) -> Picture:
        """Draw the machine, with one of its states highlighted as the current one, if given.

        `save` of the picture writes SVG, PNG or PDF; a notebook shows it.
        """
        picture: Picture = drawn("machine_picture:draw_machine", self, state)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        ends: Mapping[str, frozenset[str]] = {"success": self.success, "failure": self.failure}
        ended = ", ".join(
            f"{kind} {state!r}" for kind, group in ends.items() for state in sorted(group)
        )
        return (
            f"RewardMachine({self.name!r}: {len(self.states)} states, {len(self.edges)} edges, "
            f"{self.initial!r} -> {ended or 'no end'})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewardMachine) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        behaviour = (self.undefined, self.strict, self.consume_initial)
        ends = (self.initial, self.success, self.failure)
        return (self.name, self.description, self.states, self.edges, *ends, *behaviour)

    def _find_cases(self) -> dict[str, list[Event]]:
        try:
            return {
                state: events_of(edges, self._otherwise(state))
                for state, edges in self._edges_of.items()
            }
        except TaskError as error:
            raise TaskError(f"{self.name}: {error}") from error

    def _otherwise(self, state: str) -> Outcome:
        """The outcome of a label that no edge matches."""
        fails = self.undefined == "fail" and state not in self.terminal
        return Outcome(1.0, FAILED if fails else state, 0.0)

    def _check_state(self, state: str) -> None:
        if state not in self._index:
            raise TaskError(
                f"{self.name} has no state {state!r}; states: {', '.join(map(repr, self.states))}"
            )


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    return frozenset(_checked(what, names))


def _checked(what: str, names: Iterable[str]) -> Iterable[str]:
    """The names as given; a single string is an error, since its letters would be names."""
    if isinstance(names, str):
        raise TaskError(f"{what} is {names!r}; allowed: a list of names, such as [{names!r}]")
    return names
