"""R-MaxRM: R-Max that is given the machine.

Each real step counts for every machine state that is not terminal, as if the machine had been
there. How often the real transition itself counts, the paper leaves open:

    count = "real"              once: it is one of those
    count = "counterfactual"    twice: as it happened, and once more among those

Assumes: knows the machine, its rewards and which of its states end the episode.
"""

from __future__ import annotations

from dataclasses import dataclass

from qrmax.agents.base import Sizes
from qrmax.agents.experience import COUNTERFACTUAL, COUNTS, REAL, Experience, Twice
from qrmax.agents.model_based import ModelBasedConfig
from qrmax.agents.rmax import RMax
from qrmax.agents.step_loops import Counting
from qrmax.errors import check_choice
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class RMaxRMConfig(ModelBasedConfig):
    """Settings of R-MaxRM."""

    newer = ("count",)

    count: str = REAL  # whether the real transition counts again among the counterfactual ones

    def __post_init__(self) -> None:
        ModelBasedConfig.__post_init__(self)
        check_choice("count", self.count, COUNTS)


class RMaxRM(RMax):
    """R-Max that knows the machine and learns for all its states at once."""

    name = "rmax-rm"
    Config = RMaxRMConfig
    knows_machine = True
    in_loop = frozenset({"experience"})
    config: RMaxRMConfig

    def __init__(
        self, sizes: Sizes, config: RMaxRMConfig, rng: Stream, experience: Experience
    ) -> None:
        twice = config.count == COUNTERFACTUAL
        super().__init__(sizes, config, rng, Twice(experience) if twice else experience)

    def counting(self) -> Counting:
        """The counters for the compiled loop."""
        return super().counting()._replace(times=2 if self.config.count == COUNTERFACTUAL else 1)
