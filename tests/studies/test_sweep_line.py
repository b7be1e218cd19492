"""The line of a sweep."""

from __future__ import annotations

import os
import sys

import pytest

from qrmax import live_line
from qrmax.studies.sweep_line import _reason

LONG = "failed: qrmax on office/map1/exp1, seed 0 (0123456789abcdef): " + "words " * 20


def test_messages_are_folded_on_a_terminal_and_one_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live_line.PlainLine().say(LONG)
    assert capsys.readouterr().err == f"{LONG}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((60, 24)))
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    for line in (live_line.PlainLine(), live_line.TerminalLine()):
        line.say(LONG)
        first, *others = capsys.readouterr().err.splitlines()
        assert max(map(len, [first, *others])) <= 60
        assert all(line.startswith("  words") for line in others[1:])
        assert " ".join([first, *others]).split() == LONG.split()


def test_the_reason_of_a_failed_run_is_its_exception_not_the_last_line_of_the_message() -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1\n'
    error = f"{trace}AgentError: f cannot be saved\n  arrays and numbers can be saved\n"
    assert _reason(error) == "AgentError: f cannot be saved"
    assert _reason(f"{trace}MemoryError\n") == "MemoryError"
    assert _reason("  indented alone") == "indented alone"
