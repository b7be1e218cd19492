"""Making agents by name: what has to be there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from qrmax.agents.base import Sizes
from qrmax.agents.registry import agent_class, agent_names, make_agent, make_config
from qrmax.errors import MissingExtraError, ParameterError
from qrmax.problems.observations import Observations
from qrmax.seeding import stream
from small_problems import errand

PERCEIVING = [name for name in agent_names() if agent_class(name).perceives]


@pytest.mark.parametrize("name", PERCEIVING)
def test_an_agent_that_perceives_needs_a_world_with_observations(name: str) -> None:
    config = make_config(name, {})
    with pytest.raises(ParameterError, match=rf"agent '{name}' is for .* such as continuous/"):
        make_agent(name, Sizes(4, 3, 2), config, stream(7, "agent"), errand())


@pytest.mark.parametrize("library", ["torch", "stable_baselines3"])
@pytest.mark.parametrize("name", ["dqn", "dqn-rm"])
def test_without_its_extra_an_agent_says_what_to_install(
    name: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    box = Observations([0.0], [1.0])
    with pytest.raises(MissingExtraError, match=rf"'{name}' needs .*: pip install 'qrmax\[dqn\]'"):
        make_agent(name, Sizes(0, 3, 2), make_config(name, {}), stream(7, "agent"), errand(), box)


def test_settings_are_shown_without_loading_what_is_heavy() -> None:
    """In a fresh interpreter, where nobody else has loaded it."""
    code = (
        "import sys; from qrmax.agents.registry import default_settings;"
        "print(default_settings('dqn')['hidden'], {'torch', 'stable_baselines3'} & {*sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "64 set()\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 10**8}, "hidden is 100000000; allowed: numbers at most 8192"),
        ({"epsilon_start": 0.1, "epsilon_end": 0.5}, "epsilon_start is 0.1, and epsilon_end 0.5"),
        ({"batch_size": 64, "buffer_size": 63}, "batch_size is 64, and buffer_size 63"),
        ({"buffer_size": 10**9}, "buffer_size is 1000000000; allowed: numbers at most 10000000"),
    ],
)
def test_settings_of_dqn_that_make_no_sense_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make_config("dqn", settings)
