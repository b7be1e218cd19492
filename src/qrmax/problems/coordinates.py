"""Coordinates of states, `[s, d]`: for agents that generalise over displacements.

They are no part of the dynamics: an MDP is the same with other coordinates, or with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError, ParameterError, shown
from qrmax.outside_errors import refused_call

CoordinatesOfObservations = Callable[[Any], ArrayLike]
"""A function of an observation that returns its coordinates, one number or several."""


def check_coordinates(given: ArrayLike, n_states: int) -> NDArray[np.float64]:
    """Return coordinates as an array `[s, d]`; a `ModelError` unless all are finite numbers.

    >>> check_coordinates([[0, 0], [1, 0]], 2).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        raise ModelError(
            "coordinates are ragged; every state needs as many numbers as the others"
        ) from None
    if array.ndim != 2 or array.shape[0] != n_states or array.shape[1] == 0:
        raise ModelError(
            f"coordinates have shape {array.shape}; needed: ({n_states}, d), d numbers for each "
            "state"
        )
    if array.dtype.kind not in "iuf":
        raise ModelError(f"coordinates hold {array.dtype}; needed: numbers")
    infinite = ~np.isfinite(array).all(axis=1)
    if infinite.any():
        state = int(infinite.argmax())
        raise ModelError(
            f"coordinates are {array[state].tolist()} at state {state}; allowed: finite numbers"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def check_function(coordinates: object) -> None:
    """Raise a `ParameterError` unless this is a function of an observation, or None."""
    if coordinates is None:
        return
    if not callable(coordinates):
        raise ParameterError(
            f"coordinates are {shown(coordinates)}; needed: a function, such as "
            "coordinates=lambda observation: divmod(observation, 4)"
        )
    if refused := refused_call(coordinates, "observation"):
        raise ParameterError(f"coordinates: {refused}")


def observed_coordinates(
    coordinates: CoordinatesOfObservations, observations: Iterable[Any]
) -> NDArray[np.float64]:
    """The coordinates of these observations, in their order.

    >>> observed_coordinates(lambda seen: divmod(seen, 2), range(4)).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    rows = [np.atleast_1d(np.asarray(coordinates(observation))) for observation in observations]
    return check_coordinates([row.tolist() for row in rows], len(rows))
