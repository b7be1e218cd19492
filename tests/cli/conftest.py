"""The command within the process of the tests, which is quicker than one of its own."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Done
from qrmax.cli.main import main


@pytest.fixture
def quickly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Run the command in this process."""

    def run_here(*arguments: str, cwd: Path = Path()) -> Done:
        with monkeypatch.context() as changed:
            changed.chdir(cwd)
            changed.setattr(sys, "argv", ["qrmax", *arguments])
            changed.setattr(warnings, "showwarning", None)  # main sets its own
            with pytest.raises(SystemExit) as ended:
                main()
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return run_here
