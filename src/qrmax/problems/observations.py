"""Real-valued observations: a box of real numbers, normalised to [-1, 1].

Agents get normalised observations: a dimension with bounds is scaled to them, and clipped; one
without (a velocity, say) is squashed, x / (1 + |x|). An invalid observation (another shape, NaN,
infinite) is an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ObservationError, ParameterError, shown

FAR = 1e30  # bounds beyond this are no bounds: environments use the largest float for infinity


class Scaling(NamedTuple):
    """Scaling of each dimension to a number from -1 to 1, for compiled code.

    x, clipped, becomes 2 (x - low) / (high - low) - 1, or, if `squashed`, x / (1 + |x|).
    """

    low: NDArray[np.float64]  # [d]
    high: NDArray[np.float64]  # [d]
    squashed: NDArray[np.bool_]  # [d]


class Observations:
    """The observations of a world: vectors between `low` and `high`.

    >>> box = Observations(low=[0.0, -np.inf], high=[10.0, np.inf])
    >>> box.normalise([2.5, 3.0]).tolist()
    [-0.5, 0.75]
    >>> box.normalise([2.5, np.nan])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    qrmax.errors.ObservationError: the observation [2.5, nan] has nan in dimension 1; needed: ...
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.shape = np.shape(low)
        self.low = np.asarray(low, dtype=np.float64).reshape(-1)
        self.high = np.asarray(high, dtype=np.float64).reshape(-1)
        if self.low.shape != self.high.shape or not self.low.size:
            raise ParameterError(
                f"bounds of {self.low.size} and {self.high.size} dimensions; needed: the same "
                "number of both, at least one"
            )
        wrong = ~(self.low < self.high)
        if wrong.any():
            i = int(wrong.argmax())
            raise ParameterError(
                f"dimension {i} is bounded by {self.low[i]:g} and {self.high[i]:g}; needed: a low "
                "bound below the high one"
            )
        squashed = (self.low < -FAR) | (self.high > FAR)
        self.scaling = Scaling(
            np.where(squashed, -1.0, self.low), np.where(squashed, 1.0, self.high), squashed
        )

    @property
    def dimension(self) -> int:
        """The dimension of an observation."""
        return len(self.low)

    def normalise(self, observation: Any) -> NDArray[np.float64]:
        """An observation as numbers from -1 to 1."""
        return self._scaled(self.check(observation))

    def normalise_all(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Many observations, `[n, d]`, at once.

        >>> Observations(low=[0.0], high=[10.0]).normalise_all([[2.5], [10.0]]).tolist()
        [[-0.5], [1.0]]
        """
        return self._scaled(self.check_all(observations))

    def check_all(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Return observations as vectors, `[n, d]`; an `ObservationError` if one is invalid."""
        try:
            x = np.asarray(observations, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ObservationError(
                f"observations {shown(observations)} are not vectors of {self.dimension} numbers"
            ) from error
        if x.ndim == 0:
            raise ObservationError(
                f"the observations are {shown(observations)}; needed: many of them, [n, d]"
            )
        if x.shape[1:] != self.low.shape or not np.isfinite(x).all():
            x = np.stack([self.check(row) for row in x])  # raises the error
        return x

    def _scaled(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The formula of `Scaling`, for one vector or for rows of them."""
        low, high, squashed = self.scaling
        scaled = 2.0 * (np.minimum(np.maximum(x, low), high) - low) / (high - low) - 1.0
        return np.where(squashed, x / (1.0 + np.abs(x)), scaled)

    def check(self, observation: Any) -> NDArray[np.float64]:
        """Return an observation as a vector; an `ObservationError` if it is invalid."""
        try:
            given = np.asarray(observation, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ObservationError(
                f"the observation {shown(observation)} is not a vector of {self.dimension} numbers"
            ) from error
        x = given.reshape(-1)
        if len(x) != self.dimension:
            raise ObservationError(
                f"the observation {shown(observation)} has {len(x)} numbers; "
                f"needed: {self.dimension}"
            )
        if given.ndim > 1 and given.shape != self.shape:  # a transposed picture, say
            raise ObservationError(
                f"the observation {shown(observation)} has the shape {given.shape}; "
                f"needed: {self.shape}"
            )
        if not np.isfinite(x).all():
            i = int((~np.isfinite(x)).argmax())
            raise ObservationError(
                f"the observation {shown(x.tolist())} has {x[i]} in dimension {i}; "
                "needed: finite numbers"
            )
        return x
