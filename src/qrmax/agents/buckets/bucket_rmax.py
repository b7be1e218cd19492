"""R-Max on buckets of observations: the baseline for Bucket-QR-Max.

The same buckets, but one large model, of pairs (b, q): what is learned in one machine state is
learned again in every other.

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qrmax.agents.base import Sizes
from qrmax.agents.buckets.in_buckets import BucketSettings, InBuckets
from qrmax.agents.experience import Experience
from qrmax.agents.model_based import ModelBasedConfig
from qrmax.agents.rmax import RMax
from qrmax.problems.observations import Observations
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True)
class BucketRMaxConfig(BucketSettings, ModelBasedConfig):
    """Settings of Bucket-R-Max."""

    def __post_init__(self) -> None:
        ModelBasedConfig.__post_init__(self)
        self.check()


class BucketRMax(InBuckets, RMax):
    """R-Max behind an encoder."""

    name = "bucket-rmax"
    told_the_machine: ClassVar[str | None] = None
    Config = BucketRMaxConfig
    config: BucketRMaxConfig

    def __init__(
        self,
        sizes: Sizes,
        config: BucketRMaxConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations,
    ) -> None:
        super().__init__(sizes, config, rng, experience, observations)
        self.pair.count_rewards(config.t_env_reward or config.t_env)
