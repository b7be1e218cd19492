"""Sarsa with counterfactual updates: the next action of a target is drawn from the policy."""

from dataclasses import dataclass

import numpy as np

import qrmax


@dataclass(frozen=True, kw_only=True)
class SarsaConfig(qrmax.AgentConfig):
    alpha: float = 0.1  # learning rate
    epsilon: float = 0.1  # probability of a random action


class Sarsa(qrmax.Agent):
    """Sarsa that knows the machine and learns from each transition for all its states."""

    Config = SarsaConfig
    knows_machine = True  # so that its experience is counterfactual
    on_policy = True

    def __init__(self, *given):
        super().__init__(*given)
        self.qt = np.full(self.sizes, 2.0)  # [s, q, a]

    def act(self, s, q):
        if self.rng.random() < self.config.epsilon:
            return int(self.rng.random() * self.sizes.actions)
        return int(self.qt[s, q].argmax())

    def update(self, s, q, a, step):
        for p, p_next, r_task, terminated in self.experience(q, step):
            target = step.r_env + r_task
            if not terminated:
                target += self.config.gamma * self.qt[step.s, p_next, self.act(step.s, p_next)]
            self.qt[s, p, a] += self.config.alpha * (target - self.qt[s, p, a])

    def policy(self):
        return self.qt.argmax(axis=2)
