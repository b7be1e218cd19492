"""Compile the kernels into numba's cache, before several test processes would each do so.

    python tests/compile_ahead.py

`make test` runs it beside the static checks, which keep one core busy.
"""

from __future__ import annotations

import warnings

import qrmax
from learners import KERNEL_USERS
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.training.stopping import Success, Welch
from qrmax.training.warm_up import warm_up


def main() -> None:
    warnings.simplefilter("ignore", qrmax.QRMaxWarning)  # the problems are tiny
    for name in KERNEL_USERS:
        warm_up(name)
    qrmax.train("qrmax", "river-swim/patrol", max_steps=1000, stop=Welch(episodes=2))
    qrmax.train("bucket-qrmax", "continuous/line/ab", max_steps=1000, stop=Success(episodes=2))
    planner = IncrementalPlanner(1, 1, 1, gamma=0.5, optimistic=1.0)
    planner.set_bonus(0, 0, 0.5)
    planner.replan()
    planner.q_at(0, 0)


if __name__ == "__main__":
    main()
