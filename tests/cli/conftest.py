"""The command within the process of the tests, which is quicker than one of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from command_line import Done, run


@pytest.fixture
def quickly() -> Callable[..., Done]:
    """Run the command in this process."""
    return run
