"""Bucket-QR-Max (the paper's Algorithm in the appendix): QR-Max on buckets of observations.

    b = h(x)                  the bucket of observation x, numbered by first visit
    n_ET, n_ER by (b, a)      samples of the world's transitions and rewards
    n_QT, n_QR by (q, b')     samples of the machine's transitions and rewards, on arriving in b'
    t_ET, t_ER, t_QT, t_QR    `t_env`, `t_env_reward`, `t_task`, `t_task_reward`

It is QR-Max with b for s, and with thresholds of their own for rewards. A triple (b, q, a) is known
once all four counts of its parts have reached theirs. A bucket may hold observations with and
without an event, so that the machine looks stochastic there: then `t_task` should be above 1, or
the buckets `event_aware`.

Assumes: sees the machine's state and its rewards; does not know the machine.
`bucket-qrmax-rm` does: each sample then gives counterfactual ones in every machine state.
"""

from __future__ import annotations

from dataclasses import dataclass

from qrmax.agents.base import Sizes
from qrmax.agents.buckets.in_buckets import BucketSettings, InBuckets
from qrmax.agents.experience import Experience
from qrmax.agents.qrmax import FactoredConfig, QRMax
from qrmax.errors import check_count
from qrmax.problems.observations import Observations
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True)
class BucketQRMaxConfig(BucketSettings, FactoredConfig):
    """Settings of Bucket-QR-Max."""

    t_task_reward: int | None = None  # samples of the machine's reward; None: t_task

    def __post_init__(self) -> None:
        FactoredConfig.__post_init__(self)
        self.check()
        if self.t_task_reward is not None:
            check_count("t_task_reward", self.t_task_reward)


class BucketQRMax(InBuckets, QRMax):
    """QR-Max behind an encoder."""

    name = "bucket-qrmax"
    told_the_machine = "bucket-qrmax-rm"
    Config = BucketQRMaxConfig
    config: BucketQRMaxConfig

    def __init__(
        self,
        sizes: Sizes,
        config: BucketQRMaxConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations,
    ) -> None:
        super().__init__(sizes, config, rng, experience, observations)
        self.env.count_rewards(config.t_env_reward or config.t_env)
        self.task.count_rewards(config.t_task_reward or config.t_task)


class BucketQRMaxRM(BucketQRMax):
    """Bucket-QR-Max that knows the machine."""

    name = "bucket-qrmax-rm"
    knows_machine = True
