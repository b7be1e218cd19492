"""Sensors: positions in a plane as observations, in rotated coordinates and with noise.

    o = R p + noise * g        p: position in the units of the world; g normal, within +- 4

R turns the axes of the observation by `rotation` degrees, so that walls that are parallel to axes
in the plane are oblique in what is observed. With noise the position itself stays hidden.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FARTHEST = 4.0  # standard deviations: the noise is clipped there, so that observations are bounded
ROUNDING = 1e-9  # of observations, which compiled code computes in another order


class Sensor(NamedTuple):
    """The observation of a position, for compiled code."""

    axes: FloatArray  # [i, j]: the share of coordinate j in number i of an observation
    noise: float  # standard deviation, in the units of the world

    @classmethod
    def of(cls, dimension: int, rotation: float = 0.0, noise: float = 0.0) -> Sensor:
        """The sensor of a world of one or two dimensions; `rotation` is in degrees.

        >>> Sensor.of(2, rotation=90.0).axes.round(9).tolist()
        [[0.0, -1.0], [1.0, 0.0]]
        """
        axes = np.eye(dimension)
        if rotation:
            angle = math.radians(rotation)
            cos, sin = math.cos(angle), math.sin(angle)
            axes = np.array([[cos, -sin], [sin, cos]])
        return cls(axes, float(noise))

    @property
    def reach(self) -> float:
        """The largest difference between an observation and the exact one."""
        return FARTHEST * self.noise + ROUNDING

    def observe(self, place: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """Observations of places `[n, d]` in the units of the world; exact ones without `rng`."""
        seen = place @ self.axes.T
        if self.noise and rng is not None:
            g = rng.standard_normal(seen.shape)
            seen = seen + self.noise * np.clip(g, -FARTHEST, FARTHEST)
        return np.asarray(seen)

    def places(self, observations: FloatArray) -> FloatArray:
        """The places that exact observations `[n, d]` are of."""
        return np.asarray(observations @ self.axes)

    def bounds(self, size: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest observation in a world of this size, `[d]` each."""
        ends = self.axes * size
        margin = FARTHEST * self.noise
        low = np.minimum(ends, 0.0).sum(axis=1) - margin
        return low, np.maximum(ends, 0.0).sum(axis=1) + margin
