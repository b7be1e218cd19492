"""A machine that the tests of machines share."""

from __future__ import annotations

from typing import Any

from qrmax.automata.reward_machine import Edge, RewardMachine


def coffee_task(**changes: Any) -> RewardMachine:
    """Bring clean coffee to the office, with some of it changed."""
    edges = [
        Edge("start", "coffee & !mud", "has_coffee"),
        Edge("start", "mud", "dirty", -2),
        Edge("has_coffee", "office", "done", 1.5),
    ]
    given = {"initial": "start", "success": ["done"], "failure": ["dirty"], **changes}
    return RewardMachine(edges, **given)
