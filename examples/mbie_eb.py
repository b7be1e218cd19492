"""MBIE-EB (Strehl and Littman, 2008) for tasks with a reward machine, from outside the package.

    Q(s, q, a) = R(s, a) + beta / sqrt(n(s, a)) + sum_s' P(s' | s, a) G(q, s')

Counts go on, and each sample revises P and R. The machine's part G is known after one visit.
"""

import math
from dataclasses import dataclass

import qrmax
from qrmax.empirical.counts import Counter, Counts


@dataclass(frozen=True, kw_only=True, slots=True)
class MBIEConfig(qrmax.AgentConfig):
    beta: float = 0.1  # scale of the exploration bonus
    r_max: float = 1.0  # largest reward of a step


class MBIE(qrmax.Agent):
    """Greedy on the empirical model plus a bonus that shrinks with the visit count."""

    name, Config = "my-mbie-eb", MBIEConfig

    def __init__(self, sizes, config, *given):
        super().__init__(sizes, config, *given)
        self.seen = Counter(sizes.states, sizes.actions)
        v_max = config.r_max / (1.0 - config.gamma)
        self.planner = qrmax.IncrementalPlanner(
            *sizes, gamma=config.gamma, optimistic=v_max, tolerance=1e-5
        )

    def act(self, s, q):
        return int(self.planner.q_at(s, q).argmax())

    def update(self, s, q, a, step):
        self.seen.record(s, a, step.s, step.r_env)
        self.planner.learn_env(s, a, *self.seen.estimate(s, a))
        self.planner.set_bonus(s, a, self.config.beta / math.sqrt(self.seen.counts.n[s, a]))
        self.planner.learn_task(q, step.s, [step.q], [1.0], step.r_task)
        if step.terminated:
            self.planner.finish(step.s, step.q)
        self.planner.replan()

    def policy(self):
        return self.planner.greedy()

    def snapshot(self):
        learned = {**self.planner.snapshot(), **self.seen.counts._asdict()}
        return {name: array.copy() for name, array in learned.items()}

    def restore(self, arrays):
        self.planner.restore(arrays)
        self.seen.restore(Counts(*(arrays[name].copy() for name in Counts._fields)))


if __name__ == "__main__":
    run = qrmax.train(MBIE, "river-swim/patrol", max_steps=20_000, progress=False)
    print(f"my-mbie-eb: {run.reason} after {run.steps:,} steps, gap {run.gap:.4f}")
