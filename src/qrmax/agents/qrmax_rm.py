"""QR-MaxRM: QR-Max that is given the machine.

Each arrival in s' gives the machine's transition from every one of its states, so that the machine
needs no exploration. The paper's "apply the same factorized updates" to counterfactual experience
can be read in two ways, which differ in the samples of the world:

    count = "real"              a real sample of (s, a) counts once, as it does in the world
    count = "counterfactual"    it counts |Q| times, once for each machine state, so that (s, a) is
                                known after t_E / |Q| real samples

Assumes: knows the machine, its rewards and which of its states end the episode.
"""

from __future__ import annotations

from dataclasses import dataclass

from qrmax.agents.base import Sizes
from qrmax.agents.experience import COUNTERFACTUAL, COUNTS, REAL, Experience
from qrmax.agents.qrmax import FactoredConfig, QRMax
from qrmax.errors import check_choice
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class QRMaxRMConfig(FactoredConfig):
    """Settings of QR-MaxRM."""

    newer = ("count",)

    count: str = REAL  # the samples of the world that count towards t_env: real or counterfactual

    def __post_init__(self) -> None:
        FactoredConfig.__post_init__(self)
        check_choice("count", self.count, COUNTS)


class QRMaxRM(QRMax):
    """QR-Max that knows the machine and learns for all its states at once."""

    name = "qrmax-rm"
    Config = QRMaxRMConfig
    knows_machine = True
    config: QRMaxRMConfig

    def __init__(
        self, sizes: Sizes, config: QRMaxRMConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.times = sizes.task_states if config.count == COUNTERFACTUAL else 1
