"""Settings and stopping rules as plain data, from which run ids are made."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from qrmax.training.stopping import StoppingRule


def as_data(settings: Any) -> dict[str, Any]:
    """Settings as plain data.

    1 becomes 1.0 for a float, so that both give the same id; a setting that is `newer` than some
    runs is left out at its default, so that theirs stay the same.
    """
    newer = getattr(settings, "newer", ())
    values = {
        field: value
        for field in fields(settings)
        if (value := getattr(settings, field.name)) != field.default or field.name not in newer
    }
    return {
        field.name: float(value) if type(value) is int and "float" in str(field.type) else value
        for field, value in values.items()
    }


def rule_data(rule: StoppingRule) -> dict[str, Any]:
    """A stopping rule as plain data, under the keys of a study's `training`."""
    return {"stop": rule.name, **as_data(rule)}
