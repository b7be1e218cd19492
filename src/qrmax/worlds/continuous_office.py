"""The Office maps and tasks with real-valued positions."""

from __future__ import annotations

from qrmax.worlds.continuous import Scale, continuous_world
from qrmax.worlds.grid import MAPS
from qrmax.worlds.office import office_tasks

WORLD = continuous_world(
    "continuous/office",
    tasks=office_tasks(),
    scale=Scale(),
    maps=MAPS,
    description="The Office maps and tasks with real-valued positions.",
)
