"""Non-Markovian reward decision processes (NMRDPs): an MDP, a labelling function and a task.

After a step from `s` to `s'` the machine reads the label of `s'`:

    P(s', j | s, q, a) = P(s' | s, a) P(j | q, s')
    R(s, q, a, s', j)  = R_E(s, a, s') + R_Q(q, s', j)

where outcome j of the machine leads to its state eta(q, s', j); a deterministic machine has one
outcome.

An episode ends when the world ends it (`mdp.terminal`) or the task does (a terminal machine
state).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError, ParameterError, check_count, did_you_mean, warn
from qrmax.logic.guards import Label, as_label, braced
from qrmax.machines.reward_machine import RewardMachine
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.problems.coordinates import CoordinatesOfObservations
from qrmax.problems.labelling_function import LabelsOfObservations, LabelsOfTransitions
from qrmax.problems.mdp import MOST_REWARD, TabularMDP
from qrmax.problems.shaped import unshaped, warn_of_world_ends
from qrmax.problems.step_labels import split_by_label


class Problem:
    """An NMRDP: an MDP, a labelling function and a reward machine.

    >>> from qrmax.machines.edges import Edge
    >>> mdp = TabularMDP(succ=[[[1]], [[1]]], prob=[[[1.0]], [[1.0]]], start=0)
    >>> task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    >>> Problem(mdp, task, labels=[set(), {"goal"}], label=[0, 1])
    Problem('problem': 2 states x 2 task states, 1 actions)

    Args:
        mdp: the MDP.
        machine: the task.
        labels: the distinct labels, each a set of propositions.
        label: `label[s]` numbers the label of state `s` in `labels`.
        max_episode_steps: the step after which episodes are truncated; None for never.
        name: its name, for messages and files.
        world: the map whose cells the states are, or the like, for drawing.
        origin: `origin[s]` is the observation of an environment in state `s`, if that is not `s`.
    """

    def __init__(
        self,
        mdp: TabularMDP,
        machine: RewardMachine,
        labels: Iterable[Iterable[str]],
        label: ArrayLike,
        *,
        max_episode_steps: int | None = None,
        name: str = "problem",
        world: object | None = None,
        origin: ArrayLike | None = None,
    ) -> None:
        if not isinstance(mdp, TabularMDP) or not isinstance(machine, RewardMachine):
            raise ModelError(
                f"a problem is made of a {type(mdp).__name__} and a {type(machine).__name__}; "
                "needed: a TabularMDP and a RewardMachine, in this order"
            )
        self.mdp = mdp
        self.machine = machine
        self.labels: tuple[Label, ...] = tuple(
            as_label(names, f"labels[{number}]") for number, names in enumerate(labels)
        )
        self.label = self._check_label(np.array(label))  # [s]
        self.table = machine.table(self.labels)
        self.max_episode_steps = max_episode_steps
        self.name = name
        self.world = world
        self.origin = None if origin is None else self._check_origin(np.array(origin))  # [s]
        self._check_start()
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        warn_of_what_can_never_be(self)
        if machine.shaping is not None:
            warn_of_world_ends(self, *self._entered_labels())

    @staticmethod
    def with_step_labels(
        mdp: TabularMDP,
        machine: RewardMachine,
        labels: Iterable[Iterable[str]],
        label: ArrayLike,
        *,
        start_label: int = 0,
        **options: Any,
    ) -> Problem:
        """Make a problem whose labelling function is one of transitions.

        Its states are those of `mdp`, split by the label of the transition into them; see
        `step_labels`.

        Args:
            mdp: the MDP.
            machine: the task.
            labels: the distinct labels, each a set of propositions.
            label: `label[s, a, k]` numbers the label of the transition to `mdp.succ[s, a, k]`.
            start_label: the number of the label that is read at the start of an episode.
            options: further arguments of `Problem`.
        """
        split = split_by_label(mdp, label, start_label)
        return Problem(split.mdp, machine, labels, split.label, **options)

    @staticmethod
    def from_gymnasium(
        env: Any,
        task: RewardMachine | str | os.PathLike[str] | None = None,
        labels: LabelsOfObservations | None = None,
        *,
        transition_labels: LabelsOfTransitions | None = None,
        env_reward: bool | None = None,
        coordinates: CoordinatesOfObservations | None = None,
    ) -> Problem:
        """Make the exact problem of a Gymnasium environment that exposes its model, with a task.

        `env` is a `TaskWrapper`, or else `task`, `labels` (or `transition_labels`), `env_reward`
        and `coordinates` are given here; see `TaskWrapper` for these arguments.

        >>> import gymnasium, qrmax
        >>> problem = qrmax.Problem.from_gymnasium(
        ...     gymnasium.make("FrozenLake-v1"), "F(edge & F goal)",
        ...     labels={3: {"edge"}, 15: {"goal"}},
        ... )
        >>> problem
        Problem('FrozenLake-v1/F(edge & F goal)': 16 states x 3 task states, 4 actions)
        >>> round(qrmax.solve(problem, gamma=0.99).start_value, 4)
        0.7701

        So it can be solved, runs stop near the optimum, and training is compiled. `run.watch(env)`
        rolls out the learned policy in the environment, in its `TaskWrapper`. Episodes are
        truncated at the environment's time limit. Labels may depend on observations and actions,
        not on `info`, which is no part of a model.
        """
        from qrmax.problems.exposed import exposed_problem

        return exposed_problem(env, task, labels, transition_labels, env_reward, coordinates)

    def state_of(self, observation: int, info: Any = None) -> int:
        """The number of the state with this observation.

        They are the same, unless states were split by the label of the transition into them; then
        `info`, as returned by a `TaskWrapper`, has the label.
        """
        if self.origin is None:
            return observation
        if info is None:
            raise ParameterError(
                "labels belong to steps here, so a state is an observation and the label read: "
                "give both, run.act(observation, info)"
            )
        read = as_label(info["label"], 'info["label"]')
        found = [
            n
            for n in np.flatnonzero(self.origin == observation).tolist()
            if self.labels[self.label[n]] == read
        ]
        if not found:
            raise ParameterError(
                f"{self.name}: observation {observation} is never reached with the label "
                f"{braced(read)}; give an observation of the environment behind the problem"
            )
        return found[0]

    @property
    def n_states(self) -> int:
        """The number of world states."""
        return self.mdp.n_states

    @property
    def n_task_states(self) -> int:
        """The number of machine states."""
        return len(self.machine.states)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.mdp.n_actions

    @property
    def coordinates(self) -> NDArray[np.float64] | None:
        """The coordinates of its states, `[s, d]`: column and row on a map; None if it has none.

        >>> import qrmax
        >>> qrmax.make("office/map1/exp1").coordinates[13].tolist()
        [1.0, 1.0]
        """
        return self.mdp.coordinates

    @property
    def unshaped(self) -> Problem:
        """The problem by which policies are evaluated: itself, or without reward shaping.

        >>> import qrmax
        >>> task = qrmax.load_task("exp3").shaped(0.9, world_ends="decoration")
        >>> qrmax.make("office/map1", task=task).unshaped
        Problem('office/map1/exp3': 108 states x 5 task states, 4 actions)
        """
        return unshaped(self)

    def done(self) -> NDArray[np.bool_]:
        """The pairs (s, q) that end the episode, as a mask `[s, q]`."""
        return self.mdp.terminal[:, None] | self.table.terminal[None, :]

    def start(self) -> NDArray[np.float64]:
        """The distribution over pairs at the start of an episode, `[s, q]`."""
        pairs = np.zeros((self.n_states, self.n_task_states))
        states = np.flatnonzero(self.mdp.start)
        pairs[states, self.table.initial[self.label[states]]] = self.mdp.start[states]
        return pairs

    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a transition, of world and task together."""
        happens = (self.mdp.prob > 0.0) & ~self.mdp.terminal[:, None, None]  # not padding
        env = self.mdp.reward[happens] if happens.any() else np.zeros(1)
        task = self.table.reward
        return float(env.min()) + float(task.min()), float(env.max()) + float(task.max())

    def product(self) -> TabularMDP:
        """The product MDP, for joint-space learners: pair (s, q) is state s |Q| + q."""
        n_q = self.n_task_states
        mdp, table = self.mdp, self.table
        succ_label = self.label[mdp.succ]  # [s, a, k]
        next_q, task_prob, task_reward = (
            np.moveaxis(part[:, succ_label], 0, 1) for part in table[:3]
        )  # [s, q, a, k, j]
        succ, prob, reward = (
            part[:, None, :, :, None] for part in (mdp.succ, mdp.prob, mdp.reward)
        )
        shape = (self.n_states * n_q, self.n_actions, -1)
        return TabularMDP(
            (succ.astype(np.int64) * n_q + next_q).reshape(shape),
            (prob * task_prob).reshape(shape),
            (reward + task_reward).reshape(shape),
            terminal=self.done().reshape(-1),
            start=self.start().reshape(-1),
        )

    def nominal(self) -> Problem:
        """The same problem, with the deterministic MDP of most likely outcomes.

        Only the MDP becomes deterministic: a stochastic reward machine stays as it is.
        """
        nominal = copy.copy(self)
        nominal.mdp = self.mdp.nominal()
        nominal.name = f"{self.name} (nominal)"
        return nominal

    def draw(self, walker: int | None = None, *, machine: bool = True) -> Picture:
        """Draw the map, or the states as a grid or graph, and the machine beside it.

        `save` of the picture writes SVG, PNG or PDF; a notebook shows it. `walker` is the state of
        a walker; `machine=False` leaves the machine out.

        >>> import qrmax
        >>> qrmax.make("office/map1/exp1").draw().title
        'office/map1/exp1'
        """
        picture: Picture = drawn("problem_picture:draw_problem", self, walker, machine=machine)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        return (
            f"Problem({self.name!r}: {self.n_states} states x {self.n_task_states} task states, "
            f"{self.n_actions} actions)"
        )

    def _check_start(self) -> None:
        """Refuse a machine whose transition on the label of a start is random."""
        read = np.unique(self.label[self.mdp.start > 0])
        begun = {self.machine.reset(self.labels[number]) for number in read}  # else a TaskError
        if begun <= self.machine.terminal:
            warn_of_an_end_at_the_start(self.machine, self.labels[read[0]])

    def _entered_labels(self) -> tuple[list[int], list[int]]:
        """The labels of states in which the world ends episodes, and of others, once entered."""
        mdp = self.mdp
        happens = (mdp.prob > 0.0) & ~mdp.terminal[:, None, None]  # not padding
        entered = np.zeros(self.n_states, dtype=bool)
        entered[mdp.succ[happens]] = True
        ends, others = entered & mdp.terminal, entered & ~mdp.terminal
        return np.unique(self.label[ends]).tolist(), np.unique(self.label[others]).tolist()

    def _check_origin(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        if numbers.shape != (self.n_states,) or numbers.dtype.kind not in "iu":
            raise ModelError(f"origin must hold a whole number for each of {self.n_states} states")
        return numbers.astype(np.int32)

    def _check_label(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        n_states = self.mdp.n_states
        if numbers.shape != (n_states,) or numbers.dtype.kind not in "iu":
            raise ModelError(f"label must hold one whole number for each of {n_states} states")
        outside = (numbers < 0) | (numbers >= len(self.labels))
        if outside.any():
            state = int(outside.argmax())
            raise ModelError(
                f"label is {numbers[state]} at state {state}; allowed: 0 to {len(self.labels) - 1}"
            )
        label = numbers.astype(np.int32)
        label.flags.writeable = False
        return label


class _Labelled(Protocol):
    """A task over the labels of a world."""

    @property
    def name(self) -> str: ...
    @property
    def machine(self) -> RewardMachine: ...
    @property
    def labels(self) -> tuple[Label, ...]: ...


def warn_of_what_can_never_be(problem: _Labelled) -> None:
    """Warn of propositions of the task that are true nowhere: they may be misspelt."""
    machine = problem.machine
    if machine.success and not machine.success & machine.reachable():
        warn(
            f"task {machine.name!r} can never succeed: no edge leads to "
            f"{', '.join(map(repr, sorted(machine.success)))}"
        )
    present = frozenset[str]().union(*problem.labels)
    if missing := sorted(machine.propositions - present):
        there_are = f"there are: {', '.join(sorted(present)) or 'none'}"
        guesses = [did_you_mean(name, present) for name in missing]
        warn(
            f"task {machine.name!r} names {', '.join(map(repr, missing))}, which "
            f"{problem.name!r} does not have, so it is never true there; "
            + "; ".join(filter(None, [there_are, *guesses]))
        )


def warn_of_an_end_at_the_start(machine: RewardMachine, label: Label) -> None:
    """Warn of a task that is over at the start."""
    warn(
        f"task {machine.name!r} is over before the first step, so there is never a reward: the "
        f"label of the start, {braced(label)}, leads to {machine.reset(label)!r}\n"
        "  a formula such as 'G !hole' holds from the start: add a goal to be reached, or "
        'reward it at every step that satisfies it, RewardMachine.from_ltlf(..., pay="each")'
    )


def check_rewards(name: str, lowest: float, highest: float) -> None:
    """Raise a `ParameterError` unless values can be computed with these rewards.

    >>> check_rewards("mine", -1.0, 1e301)
    Traceback (most recent call last):
    ...
    qrmax.errors.ParameterError: a step of 'mine' can have a reward of 1e+301; allowed: ...
    """
    for reward in (lowest, highest):
        if not abs(reward) < MOST_REWARD:  # nor NaN
            raise ParameterError(
                f"a step of {name!r} can have a reward of {reward:g}; allowed: numbers above "
                f"{-MOST_REWARD:g}, below {MOST_REWARD:g}: beyond them values overflow; "
                "divide all rewards by the same number"
            )


def check_problem(problem: object) -> None:
    """Raise a `ParameterError` unless this is a problem, and not its name, say."""
    if not isinstance(problem, Problem):
        real = hasattr(problem, "plane")  # it has real positions
        raise ParameterError(
            f"problem is {str(problem)[:60]!r}; needed: a Problem, such as "
            "qrmax.make('office/map1/exp5')"
            + ("\n  one with continuous positions is for qrmax.solve_continuous" if real else "")
        )
