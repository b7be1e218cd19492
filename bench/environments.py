"""Learners on environments of Gymnasium: steps per second beside the bare environment.

    python bench/environments.py

`bare` is the environment as `gymnasium.make` makes it, stepped with random actions that were drawn
before and reset when an episode is over; `sampled` is the same with `env.action_space.sample()` at
each step, the loop of Gymnasium's own documentation. `TaskWrapper` is the bare loop with a task on
top. A learner's rate is that of a whole run from its first step: its own actions, the task, all
updates and all planning, without evaluations.

All are played in turn, in several rounds, each for the same number of steps; the best round counts.
Seconds are CPU seconds of this process, so that others on the machine matter little. The aim: a
learner is at least half as fast as the bare environment.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import gymnasium

import qrmax
from qrmax.training.run import make_session

STEPS = 100_000  # those of a run on an environment if nothing is said
ROUNDS = 3
AIM = 0.5
JUDGED = ("qrmax-rm", "qrm")
LEARNERS = (*JUDGED, "qrmax", "q-learning")
TASKS = {
    "CliffWalking-v1": "F(left & F(right & F goal))",
    "Taxi-v4": "F(aboard & F(yellow & F delivered)) & G(aboard -> (aboard W delivered))",
}


def cliff_labels() -> dict[int, set[str]]:
    return {0: {"left"}, 11: {"right"}, 47: {"goal"}}


def taxi_labels() -> dict[int, set[str]]:
    found = {}
    for state in range(500):
        place, passenger, destination = state // 20, state // 4 % 5, state % 4
        facts = {"aboard": passenger == 4, "yellow": place == 20}
        facts["delivered"] = passenger == destination
        found[state] = {name for name, holds in facts.items() if holds}
    return found


LABELS = {"CliffWalking-v1": cliff_labels(), "Taxi-v4": taxi_labels()}


def with_task(name: str) -> qrmax.TaskWrapper:
    return qrmax.TaskWrapper(gymnasium.make(name), TASKS[name], LABELS[name], env_reward=False)


def play(env: Any, actions: list[int]) -> float:
    """Seconds for these actions."""
    env.reset(seed=7)
    begin = process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return process_time() - begin


def sample(env: Any, steps: int) -> float:
    """Seconds for so many steps with actions that are drawn on the way."""
    env.reset(seed=7)
    begin = process_time()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    return process_time() - begin


def learn(agent: str, env: Any, steps: int) -> float:
    """Seconds of a run."""
    session = make_session(agent, env, seed=7, stop="budget", max_steps=steps, evaluate_every=10**9)
    begin = process_time()
    for _ in session.events():
        pass
    return process_time() - begin


def contestants(name: str) -> dict[str, Callable[[], float]]:
    """The timed loops, by name; each call is a round."""
    bare, tasked = gymnasium.make(name), with_task(name)
    rng = random.Random(7)
    actions = [rng.randrange(int(bare.action_space.n)) for _ in range(STEPS)]

    def learner(agent: str) -> Callable[[], float]:
        return lambda: learn(agent, with_task(name), STEPS)

    return {
        "bare": lambda: play(bare, actions),
        "sampled": lambda: sample(bare, STEPS),
        "TaskWrapper": lambda: play(tasked, actions),
        **{agent: learner(agent) for agent in LEARNERS},
    }


def main() -> None:
    begin = perf_counter()
    for name in TASKS:
        timed = contestants(name)
        for agent in LEARNERS:
            learn(agent, with_task(name), 1000)  # compiles
        best = dict.fromkeys(timed, float("inf"))
        for _ in range(ROUNDS):
            for who, work in timed.items():
                best[who] = min(best[who], work())
        print(f"\n{name}, {STEPS:,} steps, best of {ROUNDS} rounds\n")
        print(f"{'':<13}{'k steps/s':>11}{'us/step':>10}{'of bare':>10}")
        for who, seconds in best.items():
            share = best["bare"] / seconds
            below = who in JUDGED and share < AIM
            print(
                f"{who:<13}{STEPS / seconds / 1e3:>11,.1f}{seconds / STEPS * 1e6:>10.2f}"
                f"{share:>10.2f}{'   <- below its target' if below else ''}",
                flush=True,
            )
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
