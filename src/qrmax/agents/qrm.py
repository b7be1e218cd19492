"""QRM: Q-learning with counterfactual experience (Toro Icarte et al., 2018).

Each real step is learned from once for every machine state that is not terminal, as if the machine
had been there.

Assumes: knows the machine, its rewards and which of its states end the episode. Model-free.
"""

from __future__ import annotations

from qrmax.agents.q_learning import QLearning


class QRM(QLearning):
    """Q-learning that knows the machine and learns for all its states at once."""

    name = "qrm"
    knows_machine = True
