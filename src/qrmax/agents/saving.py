"""Attributes as named arrays, and back: the default way of saving agents.

NumPy arrays and numbers, and those of Python, text, None, lists, tuples, sets, deques and dicts of
these, nested to any depth, are saved. Arrays are kept as they are, under the path of the attribute;
all else is a JSON text that has their places:

    {"qt": [...], "steps": 7}  ->  {"qt": array, "attributes": the bytes of the text}

A dict or a deque is filled in place, so that it keeps its default factory or maximum length.
Whatever a file holds, nothing is made of it but these plain values.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import AgentError, ModelError

TEXT = "attributes"
"""The name of the array that holds the JSON text."""

_KINDS = "biufc"  # Booleans, integers, floats and complex numbers
_SEQUENCES: dict[str, Callable[..., Any]] = {"list": list, "tuple": tuple, "set": set}

Arrays = dict[str, NDArray[Any]]


def to_arrays(attributes: Mapping[str, Any], whose: str) -> Arrays:
    """Return the attributes as named arrays, all of them copies.

    Raises an `AgentError` that names the attributes that cannot be saved.
    """
    arrays: Arrays = {}
    refused: list[str] = []
    plain = {
        name: _encode(value, name, arrays, refused) for name, value in sorted(attributes.items())
    }
    if refused:
        raise AgentError(
            f"{whose} cannot be saved: {'; '.join(refused)}\n"
            "  arrays and numbers can be saved, and lists and dicts of these; define snapshot() "
            "and restore(), or list attributes that need not be saved in `not_saved`"
        )
    text = json.dumps(plain).encode()
    return {**arrays, TEXT: np.frombuffer(text, dtype=np.uint8).copy()}


def update_from_arrays(attributes: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the attributes that `to_arrays` saved; a `ModelError` if they do not fit."""
    try:
        plain = json.loads(arrays[TEXT].tobytes())
        found = {name: _decode(value, arrays) for name, value in plain.items()}
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"inconsistent saved attributes: {error!r}") from error
    for name, value in found.items():
        before = attributes.get(name)
        _check_fits(name, before, value)
        if isinstance(before, dict):
            before.clear()
            before.update(value)
        elif isinstance(before, deque):
            before.clear()
            before.extend(value)
        else:
            attributes[name] = value


def _encode(value: Any, path: str, arrays: Arrays, refused: list[str]) -> Any:
    """A value as JSON has it: plain ones as they are, all others as a pair of kind and content."""
    if isinstance(value, np.ndarray) and value.dtype.kind in _KINDS:
        arrays[path] = value.copy()
        return ["array", path]
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        arrays[path] = np.array([value])
        return ["number", path]
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        return ["dict", _encode_items(value, path, arrays, refused)]
    for kind, sequence in (*_SEQUENCES.items(), ("list", deque)):
        if type(value) is sequence:
            items = sorted(value) if kind == "set" and _sortable(value) else value
            return [
                kind,
                [_encode(x, f"{path}.{i}", arrays, refused) for i, x in enumerate(items)],
            ]
    refused.append(f"{path} is of type {type(value).__module__}.{type(value).__qualname__}")
    return None


def _encode_items(
    value: dict[Any, Any], path: str, arrays: Arrays, refused: list[str]
) -> list[list[Any]]:
    return [
        [
            _encode(key, f"{path}.{i}.key", arrays, refused),
            _encode(item, f"{path}.{i}", arrays, refused),
        ]
        for i, (key, item) in enumerate(value.items())
    ]


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "array":
        return np.array(arrays[content])
    if kind == "number":
        return arrays[content][0]
    if kind == "dict":
        return {_decode(key, arrays): _decode(item, arrays) for key, item in content}
    return _SEQUENCES[kind](_decode(item, arrays) for item in content)


def _check_fits(name: str, before: Any, value: Any) -> None:
    """Refuse a value of another kind than the one that an agent begins with."""
    if before is None or value is None:
        return
    if isinstance(before, np.ndarray) and isinstance(value, np.ndarray):
        fits = before.dtype == value.dtype and before.ndim == value.ndim
    elif isinstance(before, deque):
        fits = isinstance(value, list)
    elif isinstance(before, dict):
        fits = isinstance(value, dict)
    elif isinstance(before, int | float | np.number):
        fits = isinstance(value, int | float | np.number)
    else:
        fits = type(before) is type(value)
    if not fits:
        raise ModelError(
            f"attribute {name!r} was saved as {type(value).__name__}, and the agent has "
            f"{type(before).__name__}"
        )


def _sortable(values: set[Any]) -> bool:
    try:
        sorted(values)
    except TypeError:
        return False
    return True
