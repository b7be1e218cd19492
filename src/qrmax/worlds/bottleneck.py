"""The corridor, narrow between A and B: visit A, B and C in this order."""

from __future__ import annotations

from qrmax.worlds.continuous import Scale, continuous_world

WORLD = continuous_world(
    "continuous/bottleneck",
    tasks={"abc": "continuous/abc"},
    scale=Scale(cell=(0.025, 0.1), step=0.025, noise=0.005),
    default_map="bottleneck",
    description="A corridor in the unit square, narrow between A and B.",
)
