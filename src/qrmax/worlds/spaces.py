"""Gymnasium spaces as plain data, for files of runs.

>>> from gymnasium.spaces import Discrete, Tuple
>>> described = describe(Tuple([Discrete(3), Discrete(4, start=1)]))
>>> described["parts"][1]
[1, {'kind': 'Discrete', 'n': 4, 'start': 1}]
>>> as_space(described)
Tuple(Discrete(3), Discrete(4, start=1))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from qrmax.errors import ParameterError, shown

MOST_NUMBERS = 2**24  # in one observation


def describe(space: Any) -> dict[str, Any] | None:
    """A space as JSON data; None for kinds that no agent supports."""
    kind = type(space).__name__
    match kind:
        case "Discrete":
            return {"kind": kind, "n": int(space.n), "start": int(space.start)}
        case "MultiDiscrete":
            return {"kind": kind, "n": space.nvec.tolist(), "start": space.start.tolist()}
        case "MultiBinary":
            return {"kind": kind, "shape": list(space.shape)}
        case "Box":
            bounds = {"low": _short(space.low), "high": _short(space.high)}
            return {"kind": kind, **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
        case "Tuple" | "Dict":
            named = space.spaces.items() if kind == "Dict" else enumerate(space.spaces)
            parts = [[key, describe(part)] for key, part in named]
            return (
                None if any(part is None for _, part in parts) else {"kind": kind, "parts": parts}
            )
        case _:
            return None


def as_space(data: Mapping[str, Any]) -> Any:
    """Restore a space from `describe`; raises a `ParameterError` if the data are invalid."""
    try:
        return _as_space(data)
    except (AssertionError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"no space of observations: {shown(data)}") from error


def _as_space(data: Mapping[str, Any]) -> Any:
    shape = data.get("shape", ())
    if not 0 < math.prod(shape) <= MOST_NUMBERS:
        raise ValueError(shape)
    match data["kind"]:
        case "Discrete":
            return spaces.Discrete(data["n"], start=data["start"])
        case "MultiDiscrete":
            return spaces.MultiDiscrete(np.array(data["n"]), start=np.array(data["start"]))
        case "MultiBinary":
            return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
        case "Box":
            low, high = (_long(data[bound], shape, data["dtype"]) for bound in ("low", "high"))
            return spaces.Box(low, high, dtype=np.dtype(data["dtype"]).type)
        case "Tuple":
            return spaces.Tuple([_as_space(part) for _, part in data["parts"]])
        case _:
            return spaces.Dict([(key, _as_space(part)) for key, part in data["parts"]])


def _short(bound: NDArray[Any]) -> Any:
    """The bounds of a box, in order; one number if they are all equal."""
    flat = bound.ravel().tolist()
    return flat[0] if len(set(flat)) == 1 else flat


def _long(bound: Any, shape: Any, dtype: str) -> NDArray[Any]:
    flat = bound if isinstance(bound, list) else [bound] * math.prod(shape)
    return np.array(flat, dtype=dtype).reshape(shape)
