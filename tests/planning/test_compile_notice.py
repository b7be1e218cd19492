"""The notice that kernels are being compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import pytest

import qrmax
from qrmax.planning.compile_notice import NOTICE, compile_notice, notice
from terminal import stderr_on_a_terminal

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@pytest.fixture(autouse=True)
def _rested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was compiled before was long ago."""
    monkeypatch.setattr(notice, "ended", float("-inf"))
    monkeypatch.setenv("TERM", "xterm-256color")
    qrmax.solve  # noqa: B018 (which makes numba tell)


def kernel(module: str = "qrmax.planning.kernels") -> Callable[[int], int]:
    """A function that was never compiled; its first call compiles it and the one it calls."""

    def plus_one(x: int) -> int:
        return x + 1

    def plus_two(x: int) -> int:
        return inner(inner(x))

    plus_one.__module__ = plus_two.__module__ = module
    inner: Any = numba.njit(plus_one)
    outer: Any = numba.njit(plus_two)
    return outer  # type: ignore[no-any-return]


def test_compilation_is_told_of_once_on_a_terminal() -> None:
    with stderr_on_a_terminal() as look:
        for each in (kernel(), kernel()):
            assert each(1) == 3
            each(1)  # is compiled by now
        assert look().written == NOTICE + "\r\n"


def test_it_is_told_of_again_after_a_while() -> None:
    with stderr_on_a_terminal() as look:
        kernel()(1)
        notice.ended -= 3600.0
        kernel()(1)
        assert look().written == 2 * (NOTICE + "\r\n")


def test_nothing_is_said_where_nobody_looks_unless_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kernel()(1)
    assert capsys.readouterr() == ("", "")
    notice.ended = float("-inf")
    with compile_notice(True), compile_notice(False):  # the outer one decides
        kernel()(1)
    assert capsys.readouterr() == ("", NOTICE + "\n")


def test_functions_of_others_are_not_told_of() -> None:
    with stderr_on_a_terminal() as look:
        kernel("somebody.else")(1)
        assert look().written == ""


@pytest.mark.parametrize(("progress", "lines"), [(None, [NOTICE]), (False, [])])
def test_train_says_that_it_compiles_unless_told_not_to(
    progress: bool | None, lines: list[str]
) -> None:
    first_use = [kernel()]
    with stderr_on_a_terminal() as look:
        qrmax.train(
            "qrmax",
            qrmax.make("office/map1/exp1"),
            max_steps=2000,
            progress=progress,
            on_event=lambda _: first_use.pop()(1) if first_use else None,
        )
        shown = look()
    assert [line for line in shown.rewrites if "steps" not in line] == lines
