"""Types of settings and options from outside the library, as their dataclasses are annotated."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from qrmax.errors import ParameterError, shown

_ALLOWED = {
    int: "whole numbers",
    float: "numbers",
    bool: "true and false",
    str: "texts",
    types.NoneType: "None",
}


def check_types(config: type, settings: Mapping[str, Any]) -> None:
    """Raise a `ParameterError` for a setting that is not of its annotated type.

    Numbers, Booleans, texts and None are checked, and unions of these; all else passes.
    """
    try:
        hints = typing.get_type_hints(config)
    except (NameError, TypeError):  # names that only a type checker sees
        return
    for name, value in settings.items():
        hint = hints.get(name)
        union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        kinds = typing.get_args(hint) if union else (hint,)
        if all(kind in _ALLOWED for kind in kinds) and not any(_is(value, k) for k in kinds):
            allowed = " or ".join(_ALLOWED[kind] for kind in kinds)
            raise ParameterError(f"{name} is {shown(value)}; allowed: {allowed}")


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
