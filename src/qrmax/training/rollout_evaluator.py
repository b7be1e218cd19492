"""Policy evaluation on an environment: rollouts of the greedy policy in a second instance.

Training is not disturbed: the second instance has an episode and a random stream of its own, and
is seeded anew at each evaluation, from the stream "evaluation".

Evaluations cost at most about as much as training. An evaluation plays the requested episodes; once
it has taken as many steps as training takes between two evaluations, it continues only if the
policy seems to reach its goal, and after 20 episodes it ends as soon as the goal is out of reach:
episodes of bad policies are the longest, and few of them are enough. In an environment without a
time limit an episode is truncated after as many steps (1,000 at least), since some policies never
terminate; a truncated episode is no success.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from qrmax.errors import ParameterError, warn
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.seeding import Stream, stream
from qrmax.training.evaluator import Evaluator
from qrmax.training.goal import Goal
from qrmax.training.point import Point
from qrmax.training.policies.policy_kinds import as_policy
from qrmax.training.rollouts import Outcome, outcomes, summary
from qrmax.training.training_episodes import TrainingEpisodes
from qrmax.training.watch import RolloutStep, episode

if TYPE_CHECKING:
    from qrmax.training.domains.domain import Actor
    from qrmax.training.domains.environment_domain import EnvironmentDomain

EPISODES = 20
"""The number of episodes of a row of the curve, if the stopping rule needs none."""

JUDGED_BY = 100
"""The number of episodes of the final evaluation of a run."""

SHORTEST_LIMIT = 1000
"""The least number of steps after which an episode without a time limit is truncated."""


class RolloutEvaluator(Evaluator):
    """Rollouts in a second instance; if none can be made, the episodes of training."""

    def __init__(
        self, domain: EnvironmentDomain, gamma: float, horizon: int | None, every: int
    ) -> None:
        self.domain = domain
        self.gamma = gamma
        self.horizon = horizon
        self.every = every  # steps of training between two evaluations
        self.training = TrainingEpisodes(domain.played, gamma, horizon)
        self._env: Any = None  # the second instance, once it is needed
        self._policy: Any = None  # the last one rolled out, and its episodes
        self._found: list[Outcome] = []
        self._judged: tuple[Any, int, list[Outcome]] | None = None  # a policy, a seed

    @property
    def falls_back(self) -> bool:
        """Whether no second instance can be made; tries to make it, with a warning if it fails."""
        if self._env is None:
            try:
                given = self.domain.evaluation_env
                self._env = self.domain.second_instance() if given is None else given
            except ParameterError as error:
                self._env = _NONE
                warn(
                    "the greedy policy is not evaluated in training, as there is no second "
                    f"instance of the environment: {error}; the learning curve shows the "
                    "training episodes instead, in which the agent explores"
                )
        return self._env is _NONE

    @property
    def success_word(self) -> str:  # type: ignore[override]
        """The words for the success rate of the policy, or of recent training episodes."""
        return "recent success" if self._env is _NONE else "success"

    @property
    def caveat(self) -> str:  # type: ignore[override]
        """A remark if the success rate is that of training episodes and not of the policy."""
        return self.training.caveat if self._env is _NONE else ""

    def reaches(self, policy: Any, goal: Goal, episodes: int, chance: Stream) -> bool:
        """Whether the policy reaches a goal in `episodes` rollouts, or training episodes do."""
        if self.falls_back:
            return self.training.reaches(policy, goal, episodes, chance)
        self._policy, self._found = policy, self._roll_out(policy, episodes, chance, goal)
        return len(self._found) == episodes and goal.is_met(_means(self._found))

    def point(self, step: int, policy: Any, chance: Stream) -> Point | None:
        """The row of a learning curve, from the stopping rule's rollouts if there are any."""
        if self.falls_back:
            return self.training.point(step, policy, chance)
        self.training.note_successes()
        found, self._found = self._found, []
        if policy is not self._policy or not found:
            found = self._roll_out(policy, EPISODES, chance)
        return _row(step, found)

    def judge(self, policy: Any, seed: int) -> Evaluation | None:
        """The evaluation by 100 rollouts; None if there is no second instance."""
        found = self._final_rollouts(policy, seed)
        return _evaluation(found) if found else None

    def final_point(self, step: int, policy: Any, seed: int) -> Point | None:
        """The same rollouts as a row of the curve, with confidence intervals."""
        found = self._final_rollouts(policy, seed)
        return _row(step, found) if found else None

    def _final_rollouts(self, policy: Any, seed: int) -> list[Outcome]:
        """All 100 of them, however bad the policy; none without a second instance."""
        known = self._judged
        if known is not None and known[0] is policy and known[1] == seed:
            return known[2]
        if self.domain.played.is_absent or self.falls_back:
            return []
        try:
            found = [*islice(self._outcomes(policy, stream(seed, "judgement")), JUDGED_BY)]
        finally:
            self.close()
        self._judged = policy, seed, found
        return found

    def close(self) -> None:
        """Close the second instance, unless it is the user's."""
        if self._env is None or self._env is _NONE or self._env is self.domain.evaluation_env:
            return
        made, self._env = self._env, None
        made.close()

    def failure(self, policy: Any, seed: int, curve: Sequence[Point]) -> str:
        """A message if neither a training episode nor a rollout succeeded."""
        return self.training.failure(policy, seed, curve)

    def _roll_out(
        self, policy: Any, episodes: int, chance: Stream, goal: Goal | None = None
    ) -> list[Outcome]:
        found: list[Outcome] = []
        steps = 0
        for outcome in islice(self._outcomes(policy, chance), episodes):
            found.append(outcome)
            steps += outcome.length
            hopeful = goal is not None and goal.is_met(_means(found))
            if steps >= self.every and not hopeful:
                break
            if (
                goal is not None
                and len(found) >= EPISODES
                and goal.is_out_of_reach([outcome.success for outcome in found], episodes)
            ):
                break
        return found

    def _outcomes(self, policy: Any, chance: Stream) -> Iterator[Outcome]:
        """An infinite sequence of rollouts, seeded by the next number of a stream."""
        acting = as_policy(policy)
        act, stages = self.domain.actor(self._env, acting), acting.stages
        if stages is not None and self.horizon is None:  # the environment's own episodes
            act, stages = _begun_again(act, stages), None
        seed, limit = int(chance.random() * 2**31), max(self.every, SHORTEST_LIMIT)

        def play(env: Any, seed: int | None) -> Iterator[RolloutStep]:
            return episode(env, act, seed, stages)

        return outcomes(play, self._env, self.gamma, seed, limit)


def _begun_again(act: Actor, stages: int) -> Actor:
    """A policy with stages that restarts after the last one."""
    return lambda observation, info, stage: act(observation, info, stage % stages)


_NONE: Any = object()  # in place of a second instance that cannot be made


def _means(found: Sequence[Outcome]) -> Goal:
    count = len(found)
    return Goal(
        sum(outcome.success for outcome in found) / count,
        sum(outcome.discounted_return for outcome in found) / count,
        sum(outcome.episode_return for outcome in found) / count,
    )


def _row(step: int, found: Sequence[Outcome]) -> Point:
    rolled = summary(found)
    named = {
        "success": rolled.success,
        "start_value": rolled.discounted_return,
        "episode_return": rolled.episode_return,
        "length": rolled.length,
    }
    ends: dict[str, Any] = {f"{name}_low": estimate.low for name, estimate in named.items()}
    ends |= {f"{name}_high": estimate.high for name, estimate in named.items()}
    ends = {name: end if math.isfinite(end) else None for name, end in ends.items()}
    means: dict[str, Any] = {name: estimate.mean for name, estimate in named.items()}
    return Point(step, gap=None, nominal_length=None, **means, **ends)


def _evaluation(found: Sequence[Outcome]) -> Evaluation:
    lengths = [outcome.length for outcome in found if outcome.success]
    means = _means(found)
    return Evaluation(
        start_value=float(means.discounted_return or 0.0),
        success=float(means.success or 0.0),
        mean_length=sum(lengths) / len(lengths) if lengths else None,
        nominal_length=None,
    )
