"""EFFECTS-QRMAX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qrmax.agents.base import Agent, AgentConfig
from qrmax.agents.continuous.effect_model import LEAST_RADIUS, EffectModel, measure
from qrmax.agents.continuous.lattice import Hope, Machine, foresee, kinds_at, look_ahead, solve_lattice
from qrmax.empirical.growth import padded
from qrmax.agents.experience import Counterfactual

RADIUS = 0.75
WIDTH = 1.0 / 3.0
APART = 0.1
PLACES = 4
LEAST_RADIUS = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectsConfig(AgentConfig):
    from_rewards = ("r_max",)
    r_max: float = 1.0
    replan_every: int = 5


class EffectsQRMax(Agent):
    name = "effects-qrmax"
    perceives = True
    told_the_machine = "effects-qrmax-rm"
    Config = EffectsConfig

    def __init__(self, sizes, config, rng, experience, observations):
        super().__init__(sizes, config, rng, experience, observations)
        d = observations.dimension
        self.n = 0
        self.x = np.zeros((256, d)); self.y = np.zeros((256, d))
        self.a = np.zeros(256, dtype=np.int32); self.kind = np.zeros(256, dtype=np.int32)
        self.pay = np.zeros(256)
        self.kinds = []  # (label, ended)
        self.unit = np.ones(d); self.frozen = False
        self.model = None
        self.counts = {}  # (q, kind) -> {q': [n, r]}
        self.terminal = np.zeros(sizes.task_states, bool)
        self.since = 0
        self.surprised = False
        self.places = [set() for _ in range(sizes.actions)]
        self.stats = dict(plans=0, fit=0.0, rows=0.0, solve=0.0, sweeps=0)
        self.version = 0
        self._greedy = None

    def perceive(self, observation, label):
        return self.observations.check(observation)

    def begin_episode(self, s, q):
        if self.version and (self.model is None or self.planned_at < self.n):
            self.plan(s, q)

    def act(self, s, q):
        forced = self._forced(s)
        if forced is not None:
            return forced
        if self.model is None or (self.surprised and self.since >= self.config.replan_every):
            self.plan(s, q)
        out = self._look(np.asarray(s)[None] / self.unit, np.array([q]), self.hope, self.value)[0]
        return int(out.argmax())

    def _place(self, s):
        return tuple(np.floor(2.0 * np.asarray(s) / self.unit).astype(int).tolist())

    def _forced(self, s):
        short = [a for a in range(self.sizes.actions) if len(self.places[a]) < PLACES]
        if not short:
            return None
        here = self._place(s)
        short = [a for a in short if here not in self.places[a]]
        if not short:
            if any(not p for p in self.places):
                return None
            return None
        return min(short, key=lambda a: len(self.places[a]))

    def update(self, s, q, a, step):
        n = self.n
        if n == len(self.a):
            for name in ("x", "y", "a", "kind", "pay"):
                setattr(self, name, padded(getattr(self, name), 2 * n))
        case = (int(step.label), bool(step.world_ended))
        if case not in self.kinds:
            self.kinds.append(case)
            self.surprised = True
        kind = self.kinds.index(case)
        self.x[n], self.y[n], self.a[n], self.kind[n], self.pay[n] = s, step.s, a, kind, step.r_env
        self.n += 1
        self.version += 1
        self.places[a].add(self._place(s))
        if not self.frozen and (len(self.places[a]) <= 2 or self.n % 16 == 0):
            self._measure()
        self.since += 1
        self._learn_machine(q, step, kind)
        if self.model is not None and not self.surprised:
            self.surprised = self._surprising(s, a, step.s, kind)

    def _learn_machine(self, q, step, kind):
        if self.experience.knows_machine:
            return
        seen = self.counts.setdefault((q, kind), {})
        if not seen or step.q not in seen:
            self.surprised = True
        entry = seen.setdefault(step.q, [0, 0.0])
        entry[0] += 1
        entry[1] += step.r_task
        if step.terminated and not step.world_ended:
            self.terminal[step.q] = True

    def _surprising(self, s, a, y, kind):
        if kind >= self.model.room.share.size:
            return True
        t = np.empty(len(self.unit))
        foresee(self.model.local, np.asarray(s) / self.unit, a, t, self.model.room)
        y = np.asarray(y) / self.unit
        if (np.abs(t - y) > 5.0 * self.model.sigma[a] + 0.02).any():
            return True
        return not kinds_at(self.model.local, y, self.model.room) or self.model.room.share[kind] < 0.3

    # ---- planning

    def _measure(self):
        self.unit = measure(self)
        self.places = [set() for _ in range(self.sizes.actions)]
        for x, a in zip(self.x[:self.n], self.a[:self.n], strict=True):
            self.places[a].add(self._place(x))
        self.frozen = all(len(p) >= PLACES for p in self.places)

    def _machine(self):
        Q, C = self.sizes.task_states, len(self.kinds)
        ends = np.array([e for _, e in self.kinds])
        labels = [c for c, _ in self.kinds]
        v = self.config.r_max / (1 - self.config.gamma)
        if self.experience.knows_machine:
            table = self.experience.task.table
            nxt = table.next_state[:, labels, :1].astype(np.int32)
            prob = np.ones(nxt.shape)
            rew = table.reward[:, labels, 0]
            return Machine(np.ascontiguousarray(nxt), prob, np.ascontiguousarray(rew), ends, table.terminal.copy(),
                           np.ascontiguousarray(table.next_state[:, :, 0].astype(np.int32)),
                           np.ascontiguousarray(table.reward[:, :, 0]), np.array([v, self.config.r_max]))
        J = max((len(x) for x in self.counts.values()), default=1)
        nxt = np.zeros((Q, C, J), np.int32); prob = np.zeros((Q, C, J)); rew = np.zeros((Q, C))
        for (q, c), seen in self.counts.items():
            total = sum(m for m, _ in seen.values())
            rew[q, c] = sum(r for _, r in seen.values()) / total
            for j, (p, (m, _)) in enumerate(seen.items()):
                nxt[q, c, j], prob[q, c, j] = p, m / total
        return Machine(nxt, prob, rew, ends, self.terminal.copy(), np.zeros((Q, 0), np.int32), np.zeros((Q, 0)),
                       np.array([v, self.config.r_max]))

    def plan(self, s, q):
        import time
        t0 = time.perf_counter()
        if self.model is None or self.model.full:
            old = self.model
            self.model = EffectModel(self, self.observations, self.sizes.actions)
            self.stats["fit"] += time.perf_counter() - t0
        else:
            self.model.extend()
            self.stats["rows"] += time.perf_counter() - t0
        self.unit = self.model.unit
        self.machine = self._machine()
        n = self.n
        bonus = float(self.pay[:n].max())
        low = min(0.0, float(self.pay[:n].min()))
        self.hope = Hope(True, bonus, low / (1 - self.config.gamma))
        while True:
            t2 = time.perf_counter()
            self.stats["sweeps"] += solve_lattice(self.model.lattice, self.machine, self.hope, self.config.gamma, 1e-3, 1e-9, 400, self.model.value)
            self.stats["solve"] += time.perf_counter() - t2
            v = self._look(np.asarray(s)[None] / self.unit, np.array([q]), self.hope, self.model.value)[0].max()
            if v > 1e-8 or self.model.radius[0] * 0.7 < LEAST_RADIUS:
                break
            t2 = time.perf_counter()
            self.model.shrink()
            self.stats["rows"] += time.perf_counter() - t2
        self.stats["plans"] += 1
        self.planned_at = self.n
        self.since = 0
        self.surprised = False
        self._greedy = None

    @property
    def task_states(self):
        return self.sizes.task_states

    @property
    def value(self):
        return self.model.value

    def _look(self, s, q, hope, value):
        out = np.zeros((len(s), self.sizes.actions))
        look_ahead(self.model.local, self.model.lattice, self.machine, hope, self.config.gamma, value, np.ascontiguousarray(s), np.asarray(q, dtype=np.int64), self.model.room, out)
        return out

    def recommendation(self):
        return Policy(self)

    def greedy(self):
        if self._greedy is None:
            self._greedy = np.zeros_like(self.value)
            hope = self.hope._replace(optimistic=False)
            solve_lattice(self.model.lattice, self.machine, hope, self.config.gamma, 1e-3, 1e-9, 400, self._greedy)
        return self._greedy


class Policy:
    def __init__(self, agent):
        self.agent = agent

    def action(self, observation, label, q):
        return int(self.actions([observation], [q])[0])

    def actions(self, observations, q):
        ag = self.agent
        if ag.model is None:
            return np.zeros(len(q), dtype=np.int32)
        g = ag.greedy()
        return ag._look(np.asarray(observations) / ag.unit, q, ag.hope._replace(optimistic=False), g).argmax(1)


class EffectsQRMaxRM(EffectsQRMax):
    name = "effects-qrmax-rm"
    knows_machine = True
