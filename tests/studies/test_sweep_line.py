"""The line of a sweep."""

from __future__ import annotations

from qrmax.studies.sweep_line import _reason


def test_the_reason_of_a_failed_run_is_its_exception_not_the_last_line_of_the_message() -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1\n'
    error = f"{trace}AgentError: f cannot be saved\n  arrays and numbers can be saved\n"
    assert _reason(error) == "AgentError: f cannot be saved"
    assert _reason(f"{trace}MemoryError\n") == "MemoryError"
    assert _reason("  indented alone") == "indented alone"
