"""EFFECTS-QRMAX: QR-Max on real-valued observations, by laws of displacement.

QR-Max learns the world apart from the machine. This learner takes the world apart once more: from
what an action does, a law that all places share, it separates what is local, obstacles and labels.
A few dozen transitions give the law, and one or two visits settle what is local.

    s' = s + f_a(s) + noise       displacement_laws.py
    obstacles                     obstacle_fit.py
    labels of places              local_model.py
    Q(s, q, a)                    lookahead.py, on the lattice of places that can be reached

All of this is shared by the machine states; only values differ. Unknown places are valued as the
best label would be (`lookahead.py`), movement is free until a move is stopped, and the agent acts
greedily by one step of lookahead from its exact observation. Each action is first tried at 4
places, or its law would be that of a wall. The agent plans when an episode begins, and after
surprises: a move does not end as foreseen, or at an unknown place, or the machine does something
new. If nothing unknown is within reach and nothing is worth anything, places count as unknown at a
finer scale. The recommended policy is the greedy one without optimism.

Kin: fitted R-MAX (Jong and Stone, 2007), GP-RMAX (Jung and Stone, 2010), TEXPLORE (Hester and
Stone, 2013). Nothing is proved. Assumes: Markovian observations in few dimensions, discrete
actions, displacements that vary smoothly but for obstacles, labels that depend on where a move
ends. Noise on observations is taken for noise of moves. Sees the label of each step;
`effects-qrmax-rm` knows the machine, the other one estimates its transitions by (q, label).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.agents.base import Agent, AgentConfig, RewardBounds, Sizes
from qrmax.agents.continuous.displacement_laws import PLACE, typical_move
from qrmax.agents.continuous.effect_model import EffectModel
from qrmax.agents.continuous.kind_readings import given_readings, observed_readings
from qrmax.agents.continuous.lookahead import Outlook, Readings, look_ahead, solve_lattice
from qrmax.agents.continuous.transition_log import TransitionLog
from qrmax.agents.experience import Counterfactual, Experience
from qrmax.errors import ModelError, check_count, check_range
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream

PLACES = 4  # at which each action is tried first
TRIALS = 50  # of each action, on average, in search of them
NEGLIGIBLE = 1e-8  # values below this, relative to r_max, are 0
MOST_SWEEPS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectsConfig(AgentConfig):
    """Settings of EFFECTS-QRMAX."""

    from_rewards = ("r_max",)

    r_max: float = 1.0  # the largest reward of a step
    replan_after: int = 5  # steps between two plans in an episode, at least

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_range("r_max", self.r_max, at_least=0.0, below=1e300)
        check_count("replan_after", self.replan_after)

    @property
    def reward_bounds(self) -> RewardBounds:
        """No reward is above `r_max`."""
        return RewardBounds(highest=self.r_max)

    @property
    def reads_labels(self) -> bool:
        """It does: labels of places are what all machine states share."""
        return True


class EffectsQRMax(Agent):
    """EFFECTS-QRMAX: sees the machine's state and labels, does not know the machine."""

    name = "effects-qrmax"
    perceives = True
    told_the_machine = "effects-qrmax-rm"
    Config = EffectsConfig
    config: EffectsConfig
    kernels = (look_ahead, solve_lattice)

    def __init__(
        self,
        sizes: Sizes,
        config: EffectsConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations,
    ) -> None:
        super().__init__(sizes, config, rng, experience, observations)
        self.log = TransitionLog(observations.dimension, sizes)
        self.model: EffectModel | None = None
        self.settled = False  # whether every action was tried at enough places
        self.surprised = False
        self.since = 0  # steps since the last plan
        self._plans: list[tuple[int, int, int, FloatArray]] = []  # of this epoch: n, q, labels, s
        self._greedy: FloatArray | None = None

    def perceive(self, observation: Any, label: int) -> FloatArray:  # noqa: ARG002
        """The observation, checked."""
        return self.observations.check(observation)

    def begin_episode(self, s: FloatArray, q: int) -> None:
        """Plan, if there is anything new."""
        if self.model is not None and self.model.extended < self.log.n:
            self._plan(s, q)

    def act(self, s: FloatArray, q: int) -> int:
        """The greedy action of the optimistic values; first, one that has few places."""
        if not self.settled:
            missing = self._untried(s)
            if missing is not None:
                return missing
        if self.model is None or (self.surprised and self.since >= self.config.replan_after):
            self._plan(s, q)
        assert self.model is not None  # it has just planned
        values = self._look(s[None], np.array([q]), self._outlook(True), self.model.value)[0]
        if values.max() - values.min() <= NEGLIGIBLE * self.config.r_max:
            return int(self.rng.random() * self.sizes.actions)
        return int(values.argmax())

    def update(self, s: FloatArray, q: int, a: int, step: Step) -> None:
        """Append the transition, and note whether it is a surprise."""
        kind = self.log.append(s, q, a, step)
        self.since += 1
        if self.model is not None and not self.surprised:
            unit = self.model.unit
            self.surprised = self._reads_anew(q, kind, step) or self.model.surprises(
                s / unit, a, step.s / unit, kind
            )

    def recommendation(self) -> EffectsPolicy:
        """The greedy policy without optimism, by lookahead."""
        return EffectsPolicy(self)

    def greedy_actions(self, s: FloatArray, q: NDArray[np.int64]) -> IntArray:
        """The greedy actions in observations `s[n, d]` and machine states `q[n]`."""
        if self.model is None:
            return np.zeros(len(s), dtype=np.int32)
        outlook = self._outlook(False)
        if self._greedy is None:
            self._greedy = np.zeros_like(self.model.value)
            self._solve(outlook, self._greedy)
        best = self._look(s, q, outlook, self._greedy).argmax(axis=1)
        return np.asarray(best, dtype=np.int32)

    # --- planning

    def _plan(self, s: FloatArray, q: int) -> None:
        """Take in what is new, and plan with it."""
        labels = 0
        if isinstance(self.experience, Counterfactual):
            labels = self.experience.task.table.next_state.shape[1]
        if self.model is None or not self.model.fits(self.log.n):
            self._plans.clear()
        self._plans.append((self.log.n, q, labels, s))
        self._plan_at(*self._plans[-1])
        self.since, self.surprised = 0, False

    def _plan_at(self, n: int, q: int, labels: int, s: FloatArray) -> None:
        """Plan with the first n transitions, in (s, q), for as many labels of the machine."""
        if self.model is None or not self.model.fits(n):
            self.model = EffectModel(self.log, self.observations, n)
        else:
            self.model.extend(n)
        model = self.model
        self._readings = self._read(n, labels)
        while True:
            outlook = self._outlook(True)
            self._solve(outlook, model.value)
            best = self._look(s[None], np.array([q]), outlook, model.value).max()
            if abs(best) > NEGLIGIBLE * self.config.r_max or not model.narrow():
                break
        self._greedy = None

    def _read(self, n: int, labels: int) -> Readings:
        if isinstance(self.experience, Counterfactual):
            return given_readings(self.log, self.experience.task.table, n, labels)
        return observed_readings(self.log, n)

    def _outlook(self, optimistic: bool) -> Outlook:
        assert self.model is not None  # so there are transitions
        rewards = self.log.r_env[: self.model.extended]
        worst = min(float(rewards.min()), 0.0) / (1.0 - self.config.gamma)
        place = self.config.r_max / (1.0 - self.config.gamma)
        return Outlook(optimistic, float(rewards.max()), place, self.config.r_max, worst)

    def _solve(self, outlook: Outlook, value: FloatArray) -> None:
        assert self.model is not None
        floor = 1e-9 * self.config.r_max
        solve_lattice(
            self.model.lattice,
            self._readings,
            outlook,
            self.config.gamma,
            floor,
            MOST_SWEEPS,
            value,
        )

    def _look(
        self, s: FloatArray, q: NDArray[np.int64], outlook: Outlook, value: FloatArray
    ) -> FloatArray:
        """Q(s, q, .) by lookahead, `[n, a]`."""
        assert self.model is not None
        out = np.zeros((len(s), self.sizes.actions))
        look_ahead(
            self.model.local,
            self.model.lattice,
            self._readings,
            outlook,
            self.config.gamma,
            value,
            s / self.model.unit,
            q,
            self.model.room,
            out,
        )
        return out

    def _reads_anew(self, q: int, kind: int, step: Step) -> bool:
        """Whether the machine has done something that it was not known to do."""
        if self.experience.knows_machine or kind >= self._readings.reward.shape[1]:
            return False
        row = (self._readings.next_state[q, kind], self._readings.prob[q, kind])
        return not ((row[0] == step.q) & (row[1] > 0.0)).any()

    def _untried(self, s: FloatArray) -> int | None:
        """The action tried at the fewest places, and not at this one; None if all were."""
        log, n = self.log, self.log.n
        if n == 0:
            return 0
        unit = PLACE * typical_move(log.x[:n], log.y[:n])
        places: list[set[tuple[float, ...]]] = [set() for _ in range(self.sizes.actions)]
        for a, place in zip(log.a[:n].tolist(), np.floor(log.x[:n] / unit).tolist(), strict=True):
            places[a].add(tuple(place))
        here = tuple(np.floor(s / unit).tolist())
        few = [a for a, tried in enumerate(places) if len(tried) < PLACES]
        self.settled = not few or n >= TRIALS * self.sizes.actions
        new = [a for a in few if here not in places[a]]
        return min(new, key=lambda a: len(places[a])) if new else None

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The transitions, and the times and states at which it has planned in this epoch."""
        columns = {f"log.{name}": column for name, column in self.log.snapshot().items()}
        d = self.observations.dimension
        plans = np.array([row[:3] for row in self._plans], dtype=np.int64)
        states = np.array([row[3] for row in self._plans])
        return {
            **columns,
            "plans.transitions": plans.reshape(-1, 3).T.copy(),
            "planned_from.transitions": states.reshape(-1, d).T.copy(),
            "clock": np.array([self.settled, self.surprised, self.since], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the transitions, and plan once more as it has planned since the epoch began."""
        prefix = "log."
        self.log.restore({k[len(prefix) :]: x for k, x in arrays.items() if k.startswith(prefix)})
        plans, places = arrays["plans.transitions"].T, arrays["planned_from.transitions"].T
        clock = arrays["clock"]
        self._check_plans(plans, places, clock)
        settled, surprised, self.since = clock.tolist()
        self.settled, self.surprised = bool(settled), bool(surprised)
        self.model = None
        self._plans = []
        for (n, q, labels), s in zip(plans.tolist(), places, strict=True):
            self._plans.append((n, q, labels, s.copy()))
            self._plan_at(*self._plans[-1])

    def _check_plans(self, plans: NDArray[Any], s: NDArray[Any], clock: NDArray[Any]) -> None:
        """Refuse times at which no agent with these transitions can have planned."""
        most = 0
        if isinstance(self.experience, Counterfactual):
            most = self.experience.task.table.next_state.shape[1]
        if clock.shape != (3,) or not np.isin(clock[:2], (0, 1)).all() or clock[2] < 0:
            raise ModelError(f"clock is {clock.tolist()}; needed: two flags, and steps")
        if plans.shape[1:] != (3,) or s.shape != (len(plans), self.observations.dimension):
            raise ModelError(f"plans: shapes {plans.shape} and {s.shape} do not fit")
        n, q, labels = plans.T
        fits = np.isfinite(s).all() and ((q >= 0) & (q < self.sizes.task_states)).all()
        fits = fits and ((n > 0) & (n <= self.log.n)).all() and (np.diff(n) >= 0).all()
        fits = fits and ((labels >= 0) & (labels <= most)).all()
        if not fits:
            raise ModelError("plans: not at times and in states that there were")
        if self.experience.knows_machine and (self.log.label[: self.log.n] >= most).any():
            raise ModelError("log.label: labels that the machine has not read")


class EffectsQRMaxRM(EffectsQRMax):
    """EFFECTS-QRMAX that knows the machine."""

    name = "effects-qrmax-rm"
    knows_machine = True


class EffectsPolicy:
    """The greedy policy of an agent, for many observations at once."""

    at_once = 25  # episodes per batch of an evaluation: lookahead takes its time

    def __init__(self, agent: EffectsQRMax) -> None:
        self._agent = agent

    def action(self, observation: Any, label: int, q: int) -> int:  # noqa: ARG002
        """The greedy action."""
        return int(self.actions([observation], [q])[0])

    def actions(self, observations: ArrayLike, q: ArrayLike) -> IntArray:
        """The greedy action for each of the observations `[n, d]` with machine states `q[n]`."""
        s = self._agent.observations.check_all(observations)
        return self._agent.greedy_actions(s, np.asarray(q, dtype=np.int64))
