"""MDPs of Gymnasium environments that expose their model (FrozenLake, CliffWalking, Taxi, ...).

Such an environment has a table `P[s][a] = [(probability, s', reward, terminated), ...]`. In a
`TabularMDP` states are terminal, here transitions are. So

    a state into which every transition terminates           is terminal
    one into which only some do, or that is an initial state gets a terminal copy, added at the end

and the states 0, 1, ... are the observations. Only attributes of the environment are read, so that
Gymnasium itself is not needed here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError, ParameterError, shown
from qrmax.logic.guards import Label, as_label
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task
from qrmax.problems.coordinates import (
    CoordinatesOfObservations,
    check_function,
    observed_coordinates,
)
from qrmax.problems.labelling_function import (
    Labelling,
    LabelsOfObservations,
    LabelsOfTransitions,
)
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.problems.step_labels import split_by_label

HARMLESS = (
    "HumanRendering",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "RecordVideo",
    "RenderCollection",
    "TimeLimit",
)
"""Gymnasium's wrappers that do not change observations, actions, rewards and terminations."""


class Exposed(NamedTuple):
    """The model of an environment."""

    mdp: TabularMDP
    origin: NDArray[np.int32]  # [s]: the observation in state s
    max_episode_steps: int | None
    name: str
    tasked: Any  # the layer with the task, a `TaskWrapper`; None if there is none


def exposed_model(env: Any) -> Exposed:
    """Read the model of an environment; a `ModelError` if it exposes none."""
    inner, tasked, limit = _through_wrappers(env)
    table = getattr(inner, "P", None)
    if table is None:
        raise ModelError(
            f"{_name(env)} exposes no model: it has no table env.unwrapped.P of transitions; "
            "train on the environment itself, in a qrmax.TaskWrapper"
        )
    if getattr(inner, "fickle_passenger", False):
        raise ModelError(
            f"{_name(env)} has fickle_passenger=True, and passengers who change their minds are "
            "not in its table of transitions; leave it out, or train on the environment itself"
        )
    n_states, n_actions = _size(inner, "observation_space"), _size(inner, "action_space")
    entries = _Entries.read(table, n_states, n_actions, _name(env))
    start = _start(inner, n_states, _name(env))
    return Exposed(*entries.model(start), limit, _name(env), tasked)


def exposed_problem(
    env: Any,
    task: RewardMachine | str | os.PathLike[str] | None,
    labels: LabelsOfObservations | None,
    step_labels: LabelsOfTransitions | None,
    env_reward: bool | None,
    coordinates: CoordinatesOfObservations | None = None,
) -> Problem:
    """The problem of an environment and a task; see `Problem.from_gymnasium`."""
    model = exposed_model(env)
    given = (task, labels, step_labels, env_reward, coordinates)
    if model.tasked is not None:
        if any(each is not None for each in given):
            raise ParameterError(
                f"{model.name} has a task already, in its TaskWrapper; give no other beside it, "
                "or give the environment without it, env.env"
            )
        machine, env_reward = model.tasked.machine, model.tasked.env_reward
        labelling, coordinates = model.tasked.labelling, model.tasked.coordinates
    elif task is None or (labels is None) == (step_labels is None):
        raise ParameterError(
            f"{model.name} needs a task, and either labels=... or transition_labels=...; or give "
            "it in a TaskWrapper, which has them"
        )
    else:
        machine = task if isinstance(task, RewardMachine) else load_task(task)
        labelling = Labelling(machine, labels, step_labels)
    check_function(coordinates)
    observations = model.origin.tolist()
    mdp = TabularMDP(
        model.mdp.succ,
        model.mdp.prob,
        None if env_reward is False else model.mdp.reward,
        terminal=model.mdp.terminal,
        start=model.mdp.start,
        coordinates=None
        if coordinates is None
        else observed_coordinates(coordinates, observations),
    )
    options: dict[str, Any] = {
        "max_episode_steps": model.max_episode_steps,
        "name": f"{model.name}/{machine.name}",
    }
    if labelling.of_observations is not None:
        named = observed_labels(labelling.of_observations, observations)
        return Problem(mdp, machine, *named, **options)
    assert labelling.of_transitions is not None
    names, numbers = transition_labels(labelling.of_transitions, model)
    split = split_by_label(mdp, numbers, start=0)
    return Problem(
        split.mdp,
        machine.without_start_label(),  # as in a TaskWrapper: there is no transition yet
        names,
        split.label,
        origin=model.origin[split.origin],
        **options,
    )


class _Entries(NamedTuple):
    """The table as arrays, `[s, a, k]`, padded with probability 0."""

    succ: NDArray[np.int64]
    prob: NDArray[np.float64]
    reward: NDArray[np.float64]
    ends: NDArray[np.bool_]

    @staticmethod
    def read(table: Any, n_states: int, n_actions: int, name: str) -> _Entries:
        try:
            rows = [[[*table[s][a]] for a in range(n_actions)] for s in range(n_states)]
        except (LookupError, TypeError):
            raise ModelError(
                f"{name}: env.unwrapped.P does not have a list for each of the {n_states} states "
                f"and {n_actions} actions; needed: P[s][a] = [(probability, next state, reward, "
                "terminated), ...]"
            ) from None
        shape = (n_states, n_actions, max(1, *(len(row) for rows_s in rows for row in rows_s)))
        read = _Entries(
            np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)
        )
        for s, rows_s in enumerate(rows):
            for a, row in enumerate(rows_s):
                for k, entry in enumerate(row):
                    try:
                        prob, succ, reward, ends = entry
                        read.prob[s, a, k], read.succ[s, a, k] = prob, succ
                        read.reward[s, a, k], read.ends[s, a, k] = reward, ends
                    except (TypeError, ValueError, OverflowError):
                        raise _bad_entry(name, (s, a, k), entry) from None
        outside = (read.succ < 0) | (read.succ >= n_states)
        if outside.any():
            s, a, k = np.argwhere(outside)[0].tolist()
            raise _bad_entry(name, (s, a, k), rows[s][a][k])
        return read

    def model(self, start: NDArray[np.float64]) -> tuple[TabularMDP, NDArray[np.int32]]:
        n_states, happens = len(self.succ), self.prob > 0.0
        entered, goes_on = np.zeros((2, n_states), dtype=bool)
        entered[self.succ[happens & self.ends]] = True
        goes_on[self.succ[happens & ~self.ends]] = True
        goes_on |= start > 0.0
        copied = np.flatnonzero(entered & goes_on)
        ending_in = np.arange(n_states)
        ending_in[copied] = n_states + np.arange(len(copied))
        succ = np.where(self.ends, ending_in[self.succ], self.succ)
        origin = np.concatenate([np.arange(n_states), copied])
        mdp = TabularMDP(
            succ[origin],
            self.prob[origin],
            self.reward[origin],
            terminal=np.concatenate([entered & ~goes_on, np.ones(len(copied), dtype=bool)]),
            start=np.concatenate([start, np.zeros(len(copied))]),
        )
        return mdp, origin.astype(np.int32)


def _bad_entry(name: str, place: tuple[int, int, int], entry: object) -> ModelError:
    s, a, k = place
    return ModelError(
        f"{name}: env.unwrapped.P[{s}][{a}][{k}] is {shown(entry)}; needed: (probability, "
        "next state, reward, terminated), with the number of a state there is"
    )


def observed_labels(
    labels: Callable[..., Iterable[str]], observations: Iterable[int]
) -> tuple[list[Label], NDArray[np.int32]]:
    """The labels of these observations, and the number of the label of each."""
    numbers: dict[Label, int] = {}
    label = [
        numbers.setdefault(as_label(labels(observation, NoInfo())), len(numbers))
        for observation in observations
    ]
    return [*numbers], np.array(label, dtype=np.int32)


def transition_labels(
    labels: Callable[..., Iterable[str]], model: Exposed
) -> tuple[list[Label], NDArray[np.int32]]:
    """The labels of the transitions, and their numbers `[s, a, k]`; number 0 is the empty label."""
    mdp, origin = model.mdp, model.origin
    numbers: dict[Label, int] = {frozenset(): 0}
    label = np.zeros(mdp.succ.shape, dtype=np.int32)
    happens = (mdp.prob > 0.0) & ~mdp.terminal[:, None, None]
    for s, a, k in np.argwhere(happens).tolist():
        read = labels(int(origin[s]), a, int(origin[mdp.succ[s, a, k]]), NoInfo())
        label[s, a, k] = numbers.setdefault(as_label(read), len(numbers))
    return [*numbers], label


class NoInfo(dict[str, Any]):
    """The `info` of a transition in a model: access to any key is an error."""

    @staticmethod
    def _refuse(key: object, *_: object) -> Any:
        raise ParameterError(
            f"the labelling function asks info for {key!r}, which is not part of the model; labels "
            "of an exact model must depend on observations (and actions) alone"
        )

    def __missing__(self, key: str) -> Any:
        return self._refuse(key)

    def __contains__(self, key: object) -> bool:
        return bool(self._refuse(key))

    def get(self, key: str, default: Any = None) -> Any:
        """Raise the error."""
        return self._refuse(key, default)


def _through_wrappers(env: Any) -> tuple[Any, Any, int | None]:
    """The layer with the model, that with the task, and the time limit.

    An error if a wrapper changes the model.
    """
    if not hasattr(env, "unwrapped"):
        raise ParameterError(
            f"env is {shown(env)}; needed: an environment, such as gymnasium.make('FrozenLake-v1')"
        )
    layer, tasked, limits = env, None, []
    while layer is not env.unwrapped and not hasattr(layer, "P"):
        kind = type(layer)
        if hasattr(layer, "labels_steps") and tasked is None:
            tasked = layer
        elif kind.__name__ not in HARMLESS or not kind.__module__.startswith("gymnasium."):
            raise ModelError(
                f"{_name(env)} is wrapped in {kind.__name__}, which may change what its table of "
                "transitions says; give the environment without it, such as env.unwrapped"
            )
        if kind.__name__ == "TimeLimit":
            limits.append(int(layer._max_episode_steps))
        layer = layer.env
    if (own := getattr(layer, "max_episode_steps", None)) is not None:
        limits.append(int(own))
    return layer, tasked, min(limits, default=None)


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(env.unwrapped).__name__


def _size(env: Any, space: str) -> int:
    found = getattr(env, space, None)
    if type(found).__name__ != "Discrete" or int(getattr(found, "start", 0)) != 0:
        raise ModelError(
            f"{space} is {shown(found)}; an exposed model needs Discrete(n), counted from 0"
        )
    return int(found.n)  # type: ignore[union-attr]


def _start(env: Any, n_states: int, name: str) -> NDArray[np.float64]:
    given = getattr(env, "initial_state_distrib", None)
    if given is None:
        raise ModelError(
            f"{name} does not give the start of episodes: it has no env.unwrapped."
            "initial_state_distrib, probabilities of states"
        )
    start = np.asarray(given, dtype=np.float64)
    if start.shape != (n_states,):
        raise ModelError(
            f"{name}: initial_state_distrib has shape {start.shape}; needed: ({n_states},)"
        )
    return start
