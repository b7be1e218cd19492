"""Machines that several tests share."""

from __future__ import annotations

from typing import Any

from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine


def pick_up(chance: float = 0.8, **changes: Any) -> RewardMachine:
    """Pick up coffee, which succeeds only so often; it may be tried again."""
    edges = [Edge("start", "coffee", "has_coffee", 1.0, probability=chance)]
    given = {"initial": "start", "success": ["has_coffee"], **changes}
    return RewardMachine(edges, **given)


def coffee_task(**changes: Any) -> RewardMachine:
    """Bring clean coffee to the office, with some of it changed."""
    edges = [
        Edge("start", "coffee & !mud", "has_coffee"),
        Edge("start", "mud", "dirty", -2),
        Edge("has_coffee", "office", "done", 1.5),
    ]
    given = {"initial": "start", "success": ["done"], "failure": ["dirty"], **changes}
    return RewardMachine(edges, **given)
