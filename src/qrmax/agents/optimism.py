"""Settings derived from the largest reward: the optimistic value, and the slack of ties."""

from __future__ import annotations

import math

from qrmax.agents.base import RewardBounds
from qrmax.errors import check_range


class Optimism:
    """Properties of a config with the settings `gamma`, `r_max`, `v_max` and `tolerance`."""

    __slots__ = ()

    gamma: float
    r_max: float
    v_max: float | None
    tolerance: float

    def check_optimism(self) -> None:
        """Refuse settings out of range."""
        check_range("r_max", self.r_max, at_least=0.0, below=1e300)
        if self.v_max is not None:
            check_range("v_max", self.v_max, at_least=0.0, below=1e300)
        check_range("tolerance", self.tolerance, at_least=1e-15, below=1.0)

    @property
    def reward_bounds(self) -> RewardBounds:
        """No reward is above `r_max`; no bound if `v_max` is given."""
        return RewardBounds(highest=self.r_max if self.v_max is None else math.inf)

    @property
    def slack(self) -> float:
        """The relative error of planning: values this close to the best count as ties."""
        return 2.0 * self.tolerance / (1.0 - self.gamma)

    @property
    def optimistic(self) -> float:
        """The optimistic value of unknown state-action pairs."""
        return self.r_max / (1.0 - self.gamma) if self.v_max is None else self.v_max
