"""The types that `qrmax.make` has in strictly typed code of users: read by mypy in `make check`."""

from __future__ import annotations

from typing import assert_type

import qrmax


def made(name: str, world: qrmax.World[qrmax.Problem]) -> None:
    assert_type(qrmax.make("office/map1/exp1"), qrmax.Problem)
    assert_type(qrmax.make(map="my.txt", task="F coffee", slip=0.1), qrmax.Problem)
    assert_type(qrmax.make(name), qrmax.Problem)
    assert_type(qrmax.make(world, task="F coffee"), qrmax.Problem)
    assert_type(qrmax.make("continuous/line/ab"), qrmax.ContinuousProblem)
    assert_type(qrmax.make("continuous/office/map1", task="F coffee"), qrmax.ContinuousProblem)
    assert_type(qrmax.make_continuous(name, noise=0.1), qrmax.ContinuousProblem)
    assert_type(qrmax.register_world(world), qrmax.World[qrmax.Problem])
