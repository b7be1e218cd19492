"""The unit line, with moves to the right and to the left: visit A, then B."""

from __future__ import annotations

from qrmax.worlds.continuous import Scale, continuous_world

WORLD = continuous_world(
    "continuous/line",
    tasks={"ab": "continuous/ab"},
    scale=Scale(cell=(0.05, 1.0), step=0.025, noise=0.005),
    default_map="line",
    description="The unit line, with moves to the right and to the left.",
)
