"""Settings and options from outside are checked against their annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import qrmax
from qrmax.agents.registry import make_config
from qrmax.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class DynaConfig(qrmax.AgentConfig):
    """Settings of all kinds."""

    alpha: float = 0.1
    planning: int = 5
    greedy: bool = False
    limit: int | None = None
    rule: tuple[int, ...] = ()  # any value passes


class Dyna(qrmax.Agent):
    """An agent that does nothing."""

    Config = DynaConfig

    def act(self, *_: Any) -> int:
        return 0

    def update(self, *_: Any) -> None: ...

    def recommendation(self) -> Any: ...


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": "abc"}, "alpha is 'abc'; allowed: numbers"),
        ({"alpha": True}, "alpha is True; allowed: numbers"),
        ({"planning": 1.5}, "planning is 1.5; allowed: whole numbers"),
        ({"greedy": 1}, "greedy is 1; allowed: true and false"),
        ({"limit": "x"}, "limit is 'x'; allowed: whole numbers or None"),
    ],
)
def test_a_value_of_another_type_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_config(Dyna, settings)


@pytest.mark.parametrize(
    "settings", [{"alpha": 1}, {"planning": 3, "greedy": True}, {"limit": None}, {"rule": "x"}]
)
def test_others_pass(settings: dict[str, Any]) -> None:
    make_config(Dyna, settings)


@dataclass(frozen=True, kw_only=True)
class TowerOptions(qrmax.Options):
    """Options of a world of one's own."""

    floors: int = 3


def test_options_of_a_world_from_outside_are_checked_as_well() -> None:
    with pytest.raises(ParameterError, match=r"floors is 2\.5; allowed: whole numbers"):
        TowerOptions.of({"floors": 2.5})
    assert TowerOptions.of({"floors": 4}).floors == 4
