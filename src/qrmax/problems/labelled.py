"""MDPs with a labelling function and names, as model checkers exchange them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError, ParameterError, shown
from qrmax.logic.guards import Label, as_label
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem

SUCCESS = "success"
"""The label of a product's states in which the task has succeeded."""

_ACTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)


class LabelledMDP:
    """An MDP, the propositions that are true in its states, and names of states and actions.

    >>> walk = TabularMDP([[[1]], [[1]]], [[[1.0]], [[1.0]]], [[[5.0]], [[0.0]]])
    >>> model = LabelledMDP(walk, labels=[(), {"there"}], label=[0, 1], action_names=["go"])
    >>> model
    LabelledMDP(2 states, 1 actions, propositions: there)
    >>> model.problem("F there")
    Problem('model/F there': 2 states x 2 task states, 1 actions)

    Args:
        mdp: the MDP.
        labels: the distinct labels, each a set of propositions; by default the empty one alone.
        label: `label[s]` numbers the label of state `s` in `labels`; by default 0 for all states.
        state_names: a name for each state.
        action_names: a name for each action: a letter or _, then letters, digits, _ . -
        name: the name of the model, for messages and files.
    """

    def __init__(
        self,
        mdp: TabularMDP,
        labels: Iterable[Iterable[str]] = ((),),
        label: ArrayLike | None = None,
        *,
        state_names: Iterable[str] | None = None,
        action_names: Iterable[str] | None = None,
        name: str = "model",
    ) -> None:
        self.mdp = mdp
        self.labels: tuple[Label, ...] = tuple(as_label(names) for names in labels)
        numbers = np.zeros(mdp.n_states, np.int32) if label is None else np.asarray(label)
        fits = numbers.shape == (mdp.n_states,) and numbers.dtype.kind in "iu"
        if not fits or not ((numbers >= 0) & (numbers < len(self.labels))).all():
            raise ModelError(
                f"label must number one of the {len(self.labels)} labels for each of the "
                f"{mdp.n_states} states"
            )
        self.label: NDArray[np.int32] = numbers.astype(np.int32)  # [s]
        self.state_names = _names("state_names", state_names, mdp.n_states)
        self.action_names = _names("action_names", action_names, mdp.n_actions)
        for action in self.action_names or ():
            if not is_action_name(action):
                raise ModelError(
                    f"an action is named {shown(action)}; allowed: a letter or _, then letters, "
                    "digits, _ . -"
                )
        if self.action_names and len({*self.action_names}) < mdp.n_actions:
            raise ModelError(f"two actions have the same name: {', '.join(self.action_names)}")
        self.name = name

    @staticmethod
    def of(model: LabelledMDP | TabularMDP | Problem) -> LabelledMDP:
        """A `TabularMDP` without labels; a problem as the product of its MDP and its task."""
        match model:
            case LabelledMDP():
                return model
            case TabularMDP():
                return LabelledMDP(model)
            case Problem():
                return _product(model)
        raise ParameterError(
            f"model is {shown(model)}; needed: a Problem, a TabularMDP or a LabelledMDP"
        )

    @property
    def propositions(self) -> list[str]:
        """The propositions that are true in some state, sorted."""
        return sorted(frozenset[str]().union(*(self.labels[n] for n in np.unique(self.label))))

    def problem(
        self,
        task: RewardMachine | str | os.PathLike[str] | None = None,
        *,
        max_episode_steps: int | None = None,
        name: str | None = None,
    ) -> Problem:
        """The problem of this MDP and a task.

        Args:
            task: a `RewardMachine`, or what `load_task` takes; without one, the rewards are those
                of the MDP alone.
            max_episode_steps: the step after which episodes are truncated; None for never.
            name: its name; by default those of the model and the task.
        """
        if task is None:
            machine = RewardMachine([], initial="going", states=["going"], name="rewards")
        else:
            machine = task if isinstance(task, RewardMachine) else load_task(task)
        return Problem(
            self.mdp,
            machine,
            self.labels,
            self.label,
            max_episode_steps=max_episode_steps,
            name=f"{self.name}/{machine.name}" if name is None else name,
        )

    def __repr__(self) -> str:
        names = ", ".join(self.propositions) or "none"
        return (
            f"LabelledMDP({self.mdp.n_states} states, {self.mdp.n_actions} actions, "
            f"propositions: {names})"
        )


def is_action_name(text: str) -> bool:
    """Whether this can be the name of an action in files of model checkers."""
    return _ACTION.fullmatch(text) is not None


def _names(what: str, given: Iterable[str] | None, size: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(given)
    if len(names) != size or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{what} holds {len(names)} entries; needed: {size} texts")
    for name in names:
        if not name.isprintable():
            raise ModelError(f"{what} has {shown(name)}; allowed: characters that can be printed")
    return names


def _product(problem: Problem) -> LabelledMDP:
    """The product of MDP and machine; its labels are those of the MDP, and `success`."""
    if any(SUCCESS in label for label in problem.labels):
        raise ModelError(
            f"{problem.name} has a proposition {SUCCESS!r}, which in a product says that the task "
            "has succeeded; give the proposition another name"
        )
    states = problem.machine.states
    done = problem.table.success  # [q]
    labels = [label | names for label in problem.labels for names in (set(), {SUCCESS})]
    label = 2 * problem.label[:, None] + done[None, :]
    return LabelledMDP(
        problem.product(),
        labels,
        label.reshape(-1),
        state_names=[f"{s}, {q}" for s in _places(problem) for q in states],
        action_names=_moves(problem),
        name=problem.name,
    )


def world_of(problem: Problem) -> LabelledMDP:
    """The MDP of a problem and its labels, without the task."""
    return LabelledMDP(
        problem.mdp,
        problem.labels,
        problem.label,
        state_names=_places(problem),
        action_names=_moves(problem),
        name=problem.name,
    )


def _places(problem: Problem) -> list[str]:
    """The names of the MDP's states: column x and row y if they are cells of a map."""
    width = getattr(problem.world, "width", None)
    if width is None:
        return [str(s) for s in range(problem.n_states)]
    return [f"x={s % width} y={s // width}" for s in range(problem.n_states)]


def _moves(problem: Problem) -> list[str] | None:
    """The names of the actions if they are moves on a map."""
    moves = ("up", "right", "down", "left", "stay")
    on_map = problem.world is not None and problem.n_actions in (4, 5)
    return [*moves[: problem.n_actions]] if on_map else None
