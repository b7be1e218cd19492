"""A policy as one small file: what `policy_reader.py` acts by, without qrmax or NumPy.

The file is JSON: the task as a machine (guards as nested lists), how an observation becomes the
number of a state, and what to do in each.

    format, sha256     "qrmax policy 1", and a checksum of all the rest
    agent, trained_on  for people
    propositions       that the task names
    machine            states, initial, terminal, success; reads_start: whether the label of the
                       start is read; cases[q]: [guard, [state, ...]], to be tried in order; several
                       states mean that chance decides
    names, labels      the names that a label is made of, and labels in the order of their numbers
    encoder            digits: [path, first, size] of each part of a numbered observation; or
                       bounds, rows: [weights, top, word, shift], words and keys of buckets;
                       labelled: 1 where the label is part of the state
    horizon            None, or the number of stages of the policy
    policy             [stage][state][q], the number of an action; first_action is to be added
"""

from __future__ import annotations

import hashlib
import json
from itertools import product
from typing import Any

import numpy as np

from qrmax._version import __version__
from qrmax.agents.base import Agent, Tabular
from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.errors import ParameterError
from qrmax.logic.guards import Guard, is_name, named
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.arrays import IntArray
from qrmax.problems.problem import Problem
from qrmax.training.environment import EnvPlayer
from qrmax.training.trainer import Session

FORMAT = "qrmax policy 1"
DEEPEST = 200  # guards within guards
CONSTANTS = {"true": "&", "false": "|"}  # all of nothing, any of nothing

Nested = Any
"""A guard: the name of a proposition, or a list of a sign and guards."""


def check_exportable(agent: Agent) -> None:
    """Raise a `ParameterError` where an agent keeps no table."""
    if not isinstance(agent, Tabular):
        raise ParameterError(
            f"{agent.name!r} keeps a network, not a table that a small file can hold; "
            "run.save(...) keeps it, and qrmax.load(...).act(observation, info) acts by it; an "
            "agent whose policy can be exported is 'bucket-qrmax'"
        )


def policy_file(session: Session, recommendation: Any) -> bytes:
    """The policy that a session recommends, as the bytes of a file."""
    check_exportable(session.agent)
    task = session.task
    machine = task.machine
    labels = [sorted(label) for label in task.labels]
    reads_start = machine.consume_initial and not getattr(task, "labels_steps", False)
    if isinstance(recommendation, BucketPolicy):
        encoder = _buckets(recommendation.buckets, len(recommendation.table))
        stages = [recommendation.table]
    else:
        encoder = _numbers(task)
        stages = [recommendation] if recommendation.ndim == 2 else [*recommendation]
        if isinstance(task, Problem) and task.origin is not None:
            stages = [_by_observation(task, task.origin, table) for table in stages]
    if encoder["labelled"] and len({*map(tuple, labels)}) < len(labels):
        raise ParameterError(
            f"{task.name!r} has a label twice, so that its names do not tell its number, which is "
            "part of a state here: give each label once"
        )
    names = machine.propositions if isinstance(task, EnvPlayer) else set().union(*labels)
    described = {
        "format": FORMAT,
        "sha256": None,
        "made_by": f"qrmax {__version__}",
        "agent": session.agent.name,
        "trained_on": task.name,
        "propositions": sorted(machine.propositions),
        "machine": {**_machine(machine), "reads_start": reads_start},
        "names": sorted(names) if encoder["labelled"] else [],
        "labels": labels if encoder["labelled"] else [],
        "encoder": encoder,
        "horizon": None if len(stages) == 1 and _is_stationary(recommendation) else len(stages),
        "first_action": int(task.env.action_space.start) if isinstance(task, EnvPlayer) else 0,
        "policy": [table.tolist() for table in stages],
    }
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    described["sha256"] = hashlib.sha256((FORMAT + text).encode()).hexdigest()
    return json.dumps(described, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _is_stationary(recommendation: Any) -> bool:
    return isinstance(recommendation, BucketPolicy) or recommendation.ndim == 2


def _machine(machine: RewardMachine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "states": list(machine.states),
        "initial": machine.index(machine.initial),
        "terminal": sorted(machine.index(state) for state in machine.terminal),
        "success": sorted(machine.index(state) for state in machine.success),
        "cases": [
            [
                [
                    _nested(event.guard),
                    list(dict.fromkeys(machine.index(o.state) for o in event.outcomes)),
                ]
                for event in machine.cases(state)
            ]
            for state in machine.states
        ],
    }


def _nested(guard: Guard) -> Nested:
    """A guard as lists within lists; chains of one sign become one list."""
    stack: list[tuple[Nested, int]] = []  # and how deep it is
    for item in guard.postfix:
        if item == "!":
            inner, depth = stack.pop()
            stack.append((["!", inner], depth + 1))
        elif item in ("&", "|"):
            right, left = stack.pop(), stack.pop()
            parts, deepest = [item], 0
            for part, depth in (left, right):
                joins = isinstance(part, list) and part[0] == item
                parts += part[1:] if joins else [part]
                deepest = max(deepest, depth + (not joins))
            stack.append((parts, deepest))
        else:
            stack.append((named(item), 0) if is_name(item) else ([CONSTANTS[item]], 1))
    nested, depth = stack.pop()
    if depth > DEEPEST:
        raise ParameterError(
            f"the guard {str(guard)[:80]!r} is nested {depth} deep; a policy file allows {DEEPEST}"
        )
    return nested


def _numbers(task: Any) -> dict[str, Any]:
    """How a numbered observation becomes the number of a state."""
    if isinstance(task, Problem):
        split = task.origin is not None
        count = task.n_states if task.origin is None else int(task.origin.max()) + 1
        return {"labelled": int(split), "digits": [[[], 0, count]]}
    from qrmax.worlds.spaces import describe  # loads gymnasium, which is there already

    assert isinstance(task, EnvPlayer)  # the session sees to it
    space = describe(task.layer.observation_space["state"])
    return {"labelled": int(task.with_label), "digits": _digits(space, [])}


def _by_observation(problem: Problem, origin: IntArray, table: IntArray) -> IntArray:
    """A policy of states that were split up by labels, as one of labels and observations."""
    count = int(origin.max()) + 1
    spread = np.zeros((len(problem.labels) * count, table.shape[1]), dtype=table.dtype)
    spread[problem.label * count + origin] = table
    return spread


def _digits(space: Any, path: list[Any]) -> list[list[Any]]:
    """The parts of an observation, most significant first, as `Numbering` has them."""
    match space["kind"]:
        case "Discrete":
            return [[path, space["start"], space["n"]]]
        case "MultiBinary":
            return [[[*path, *place], 0, 2] for place in product(*map(range, space["shape"]))]
        case "MultiDiscrete":
            sizes, starts = np.array(space["n"]), np.array(space["start"])
            return [
                [[*path, *map(int, place)], int(starts[place]), int(sizes[place])]
                for place in np.ndindex(sizes.shape)
            ]
        case _:
            return [d for key, part in space["parts"] for d in _digits(part, [*path, key])]


def _buckets(buckets: Buckets, count: int) -> dict[str, Any]:
    """How an observation becomes the number of a bucket."""
    scaling, projection = buckets.observations.scaling, buckets.projection
    columns = (projection.rows, projection.top, projection.word, projection.shift)
    return {
        "labelled": int(buckets.event_aware),
        "bounds": [
            None if squashed else [low, high]
            for low, high, squashed in zip(*(part.tolist() for part in scaling), strict=True)
        ],
        "words": projection.words - 1,
        "rows": [list(row) for row in zip(*(part.tolist() for part in columns), strict=True)],
        "keys": buckets.snapshot()["keys"][:count].tolist(),
    }
