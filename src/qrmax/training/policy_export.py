"""Policies as small files, which `policy_reader.py` acts by without qrmax or NumPy.

The file is JSON: the task as a reward machine (guards as nested lists), the map from an observation
to the number of a state, and the action in each state.

    format, sha256     "qrmax policy 1", and a checksum of all the rest
    agent, trained_on  for information
    propositions       of the task
    machine            states, initial, terminal, success; reads_start: whether the label of the
                       start is read; cases[q]: [guard, [state, ...]], to be tried in order; with
                       several states the transition is stochastic
    names, labels      the names that a label is made of, and labels in the order of their numbers
    encoder            digits: [path, first, size] of each part of a numbered observation; or
                       bounds, rows: [weights, top, word, shift], words and keys of buckets;
                       labelled: 1 if the label is part of the state
    horizon            None, or the number of stages of the policy
    policy             [stage][state][q], the number of an action; first_action is to be added
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from qrmax._version import __version__
from qrmax.agents.base import Agent, Tabular
from qrmax.errors import ParameterError
from qrmax.logic.guards import Guard, is_name, named
from qrmax.machines.reward_machine import RewardMachine
from qrmax.training.policies.policy import Policy
from qrmax.training.trainer import Session

FORMAT = "qrmax policy 1"
DEEPEST = 200  # nested guards
CONSTANTS = {"true": "&", "false": "|"}  # the empty conjunction and the empty disjunction

Nested = Any
"""A guard: the name of a proposition, or a list of a sign and guards."""


def check_exportable(agent: Agent) -> None:
    """Raise a `ParameterError` if the policy of an agent is no table."""
    if agent.perceives and not isinstance(agent, Tabular):
        raise ParameterError(
            f"the policy of {agent.name!r} is not a table, so it cannot be exported; "
            "run.save(...) saves it, and qrmax.load(...).act(observation, info) acts by it; an "
            "agent whose policy can be exported is 'bucket-qrmax'"
        )


def policy_file(session: Session, policy: Policy) -> bytes:
    """The policy that a session recommends, as the bytes of a file."""
    check_exportable(session.agent)
    domain = session.domain
    machine = domain.machine
    labels = [sorted(label) for label in domain.labels]
    encoder, tables = policy.encoded(domain)
    if encoder["labelled"] and len({*map(tuple, labels)}) < len(labels):
        raise ParameterError(
            f"{domain.name!r} has a label twice, so that its number, part of a state here, does "
            "not follow from its names: give each label once"
        )
    described = {
        "format": FORMAT,
        "sha256": None,
        "made_by": f"qrmax {__version__}",
        "agent": session.agent.name,
        "trained_on": domain.name,
        "propositions": sorted(machine.propositions),
        "machine": {**_machine(machine), "reads_start": domain.reads_start},
        "names": sorted(domain.proposition_names) if encoder["labelled"] else [],
        "labels": labels if encoder["labelled"] else [],
        "encoder": encoder,
        "horizon": policy.stages,
        "first_action": domain.first_action,
        "policy": [table.tolist() for table in tables],
    }
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    described["sha256"] = hashlib.sha256((FORMAT + text).encode()).hexdigest()
    return json.dumps(described, separators=(",", ":"), allow_nan=False).encode() + b"\n"


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
