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

Edges with a `probability` make a machine random: see `edges`. Whatever is random there is drawn
from the generator that `step` is given, one number for each event that has several outcomes.
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
from qrmax.seeding import Chance

if TYPE_CHECKING:
    from typing import Unpack

    from qrmax.logic.dfa import DFA
    from qrmax.logic.formula import Formula
    from qrmax.machines.formula_machine import PayOptions
    from qrmax.machines.shaping import Shaping

FELL_OFF = "failed"
"""Where a machine with `undefined="fail"` goes when no edge matches."""


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


class RewardMachine:
    """A task: what is rewarded, as a finite automaton over labels.

    Terminal states, `success` and `failure`, end the episode. Where two edges of a state hold for
    a label the first wins; `strict` refuses such a machine. (Edges with the same guard and
    probabilities below 1 are alternatives: they do not compete.) Where none holds the machine
    stays, or with `undefined="fail"` ends in the failure state "failed". At reset the machine reads
    the label of the start state, without pay, unless `consume_initial` is False. `states` fixes the
    states and their order; without it they are those that the edges name.

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
        self.shaping: Shaping | None = None  # how it was made, where `shaped` made it
        self.edges = tuple(edges)
        for edge in self.edges:
            if not isinstance(edge, Edge):
                raise TaskError(f"{name}: {edge!r} is not an Edge(source, guard, target, ...)")
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
        if declared is not None:
            check_declared(self, declared, used=found + ends, implied=falls_off)
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
        **options: Unpack[PayOptions],
    ) -> RewardMachine:
        """A task said in logic: the machine pays `reward` when the labels satisfy the formula.

        Several formulas are given with a reward each: {formula: reward, ...}. The options are
        `pay` ("once", or "each" for after every step), `end_on_success`, `end_on_failure`,
        `consume_initial`, `name` and `max_states`; for what exactly they mean, see
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
        **options: Unpack[PayOptions],
    ) -> RewardMachine:
        """The same as `from_ltlf` for formulas of LDLf."""
        from qrmax.machines.formula_machine import machine_of_formulas

        return machine_of_formulas(formula, reward, "ldlf", options)

    @staticmethod
    def from_ppltl(
        formula: str | Formula | Mapping[str, float],
        reward: float = 1.0,
        **options: Unpack[PayOptions],
    ) -> RewardMachine:
        """The same as `from_ltlf` for formulas of PPLTL."""
        from qrmax.machines.formula_machine import machine_of_formulas

        return machine_of_formulas(formula, reward, "ppltl", options)

    @staticmethod
    def from_dfa(dfa: DFA, reward: float = 1.0, **options: Unpack[PayOptions]) -> RewardMachine:
        """The machine that pays when the automaton accepts; the options are as in `from_ltlf`."""
        from qrmax.machines.formula_machine import machine_of

        return machine_of([(dfa, reward)], options)

    def to_dfa(self) -> DFA:
        """The smallest DFA of the traces after which the machine has come to a success.

        >>> task = RewardMachine([Edge("go", "goal", "there", 1)], initial="go", success=["there"])
        >>> task.to_dfa()
        DFA(2 states over goal)
        """
        from qrmax.logic.dfa import DFA

        edges = list(self.edges)
        if self.undefined == "fail":
            edges += [
                Edge(state, "true", FELL_OFF) for state in self.states if state not in self.terminal
            ]
        return DFA.from_edges(edges, initial=self.initial, accepting=self.success)

    def shaped(self, gamma: float, *, world_ends: Guard | str = "false") -> RewardMachine:
        """The same task with rewards on the way, for agents that learn from rewards alone.

        The best policies stay the same if `gamma` is the agent's and `world_ends` holds for the
        labels where the world ends the episode, such as "decoration" in the Office; see `shaping`.
        Its `shaping` says what it was made of, and runs on it are judged by that: the values of the
        shaped task are smaller by what the start is worth. A shaped machine is shaped anew.

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
        """The same task where no other labels occur, such as those of `qrmax.load_map("map1")`.

        It has the states that these labels lead to, and guards that tell these labels apart, as
        short as they can be; what it does for any other label is left open. Of a shaped machine
        the rewards are kept, but not what it was made of.

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
        """Every proposition that some guard names."""
        return frozenset().union(*(edge.guard.propositions for edge in self.edges))

    @property
    def terminal(self) -> frozenset[str]:
        """The states that end an episode."""
        return self.success | self.failure

    @property
    def is_random(self) -> bool:
        """Whether some event has more than one outcome."""
        return self.most_outcomes > 1

    def reachable(self) -> frozenset[str]:
        """The states that some sequence of labels leads to, if every edge can be taken."""
        reached = {self.initial, *([FELL_OFF] if self.undefined == "fail" else [])}
        ahead = [self.initial]
        while ahead:
            targets = {edge.target for edge in self._edges_of[ahead.pop()]} - reached
            reached |= targets
            ahead += targets
        return frozenset(reached)

    def counterexample(self, other: RewardMachine) -> Counterexample | None:
        """The shortest labels after which the other machine does something else, or None.

        Machines do the same if they pay the same and end alike, whatever labels they read from
        their initial states; what states are called does not matter, nor does
        `consume_initial`: whether the label of the start is one of those that are read.

        >>> wanted = RewardMachine([Edge("s", "a & b", "t", 1)], initial="s", success=["t"])
        >>> given = RewardMachine([Edge("s", "a", "t", 1)], initial="s", success=["t"])
        >>> print(wanted.counterexample(given))
        at the start, reading {a}:
          task  's' -> 's', reward 0
          task  's' -> 't', reward 1
        """
        if not isinstance(other, RewardMachine):
            raise ParameterError(f"{shown(other)} is no RewardMachine; qrmax.load_task reads one")
        return counterexample(self, other)

    def equivalent(self, other: RewardMachine) -> bool:
        """Whether the other machine does the same: see `counterexample`."""
        return self.counterexample(other) is None

    def edges_of(self, state: str) -> Sequence[Edge]:
        """The edges that leave a state."""
        self._check_state(state)
        return self._edges_of[state]

    def index(self, state: str) -> int:
        """The number of a state in the table form."""
        self._check_state(state)
        return self._index[state]

    def outcomes(self, state: str, label: Iterable[str]) -> tuple[Outcome, ...]:
        """What reading one label in `state` can do; the probabilities add up to 1, none is 0.

        Terminal states stay where they are and pay nothing.
        """
        self._check_state(state)
        read = as_label(label)
        return next(event.outcomes for event in self._cases[state] if event.guard.holds(read))

    def cases(self, state: str) -> list[Event]:
        """What can happen in a state, to be tried in order; the guard of the last always holds."""
        self._check_state(state)
        return self._cases[state]

    def events(self, state: str) -> list[Event]:
        """What can happen in a state: for each label exactly one of the guards holds.

        >>> task = RewardMachine([Edge("s", "a", "t"), Edge("s", "b", "u")], initial="s")
        >>> for event in task.events("s"):
        ...     print(event.guard, "->", event.outcomes[0].state)
        a -> t
        b & !a -> u
        !a & !b -> s
        """
        return exclusive(self.cases(state))

    def step(self, state: str, label: Iterable[str], rng: Chance | None = None) -> MachineStep:
        """Read one label in `state`. Terminal states stay where they are and pay nothing.

        Where there are several outcomes one is drawn with `rng`, which is needed then and only
        then: a certain event leaves it alone.
        """
        read = as_label(label)
        outcomes = self.outcomes(state, read)
        chosen = outcomes[0]
        if len(outcomes) > 1:
            if rng is None:
                raise TaskError(
                    f"{self.name}: what {braced(read)} does in {state!r} is random; "
                    "give a generator to draw from, such as rng=np.random.default_rng(7)"
                )
            chosen = outcomes[draw((o.probability for o in outcomes), rng.random())]
        return MachineStep(chosen.state, chosen.reward)

    def reset(self, label: Iterable[str]) -> str:
        """The state at the start of an episode in a world state with this label."""
        read = as_label(label)
        state = self.first_state(read)
        if state is None:
            raise TaskError(
                f"{self.name}: the start reads {braced(read)}, and what that does in "
                f"{self.initial!r} is random; set consume_initial = false, or change the labels"
            )
        return state

    def without_start_label(self) -> RewardMachine:
        """The same machine with `consume_initial=False`: it reads no label at the start."""
        machine = copy.copy(self)
        machine.consume_initial = False
        if self.shaping is not None:
            plain = self.shaping.unshaped.without_start_label()
            machine.shaping = self.shaping._replace(unshaped=plain)
        return machine

    def first_state(self, label: Label) -> str | None:
        """Where an episode starts in a world state with this label; None where that is random."""
        if not self.consume_initial:
            return self.initial
        outcomes = self.outcomes(self.initial, label)
        return outcomes[0].state if len(outcomes) == 1 else None

    def run(self, trace: Iterable[Iterable[str]], rng: Chance | None = None) -> MachineRun:
        """Read a whole sequence of labels from the initial state, and pay for each.

        `rng` is what a random machine draws from, as in `step`.
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
        """The machine over these labels, numbered in this order."""
        return table_of(self, labels)

    def __str__(self) -> str:
        """A table of the machine for people to read."""
        head = ["from", "when", "to", "reward", "probability"]
        rows = [
            [e.source, str(e.guard), e.target, f"{e.reward:g}", f"{e.probability:g}"]
            for e in self.edges
        ]
        columns = 4 + any(edge.probability < 1.0 for edge in self.edges)
        lines = aligned(head[:columns], [row[:columns] for row in rows])
        title = f"{self.name}: {self.description}" if self.description else self.name
        otherwise = "stay, reward 0" if self.undefined == "stay" else f"{FELL_OFF!r}, reward 0"
        facts = {
            "initial": self.initial + (" (reads the start label)" * self.consume_initial),
            "success": ", ".join(sorted(self.success)) or "none",
            "failure": ", ".join(sorted(self.failure)) or "none",
            "otherwise": otherwise,
        }
        return "\n".join([title, "", *lines, "", *(f"{k}: {v}" for k, v in facts.items())])

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
        """What a label does that no edge is for."""
        falls_off = self.undefined == "fail" and state not in self.terminal
        return Outcome(1.0, FELL_OFF if falls_off else state, 0.0)

    def _check_state(self, state: str) -> None:
        if state not in self._index:
            raise TaskError(
                f"{self.name} has no state {state!r}; states: {', '.join(map(repr, self.states))}"
            )


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    return frozenset(_checked(what, names))


def _checked(what: str, names: Iterable[str]) -> Iterable[str]:
    """The names as given; a lone text is refused, since its letters would be taken for names."""
    if isinstance(names, str):
        raise TaskError(f"{what} is {names!r}; allowed: a list of names, such as [{names!r}]")
    return names
