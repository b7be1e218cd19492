"""Frozen Lake with real-valued positions: visit A, B and C in this order, past the holes."""

from __future__ import annotations

from qrmax.worlds.continuous import Scale, continuous_world

WORLD = continuous_world(
    "continuous/frozen-lake",
    tasks={"abc": "continuous/abc"},
    scale=Scale(),
    default_map="frozen-lake",
    description="Frozen Lake, 10 x 10, with real-valued positions; holes end the episode.",
)
