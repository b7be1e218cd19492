"""A corridor in the unit square: visit A, B and C in this order."""

from __future__ import annotations

from qrmax.worlds.continuous import Scale, continuous_world

WORLD = continuous_world(
    "continuous/corridor",
    tasks={"abc": "continuous/abc"},
    scale=Scale(cell=(0.025, 0.1), step=0.025, noise=0.005),
    default_map="corridor",
    description="A corridor in the unit square.",
)
