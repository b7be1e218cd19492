"""Targets of the Makefile: announced downloads, and commands that exist."""

import shutil
import subprocess
from pathlib import Path

import pytest

from qrmax.studies.library import protocol_names
from shown_commands import mistakes_in

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_pytorch_is_announced_with_its_size_and_can_be_the_cpu_build() -> None:
    def commands(*given: str) -> str:
        made = subprocess.run(
            ["make", "--dry-run", "--always-make", "dqn", *given],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return made.stdout

    plain = commands()
    assert plain.index("5.5 GB") < plain.index(".[dev,ray,dqn]")
    chosen = commands("TORCH=--find-links wheels")
    assert "--find-links wheels torch\n" in chosen
    assert chosen.index("--find-links wheels torch\n") < chosen.index(".[dev,ray,dqn]")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_paper_is_made_by_commands_that_exist_in_each_protocol_once() -> None:
    def sweeps(*given: str) -> list[str]:
        made = subprocess.run(
            ["make", "--dry-run", "BIN=.", "paper", *given],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        lines = made.stdout.replace("\\\n", " ").splitlines()
        commands = [line.removeprefix("./") for line in lines if line.startswith("./qrmax ")]
        wrong = {one: mistakes_in(one.partition(" > ")[0]) for one in commands}
        assert {one: found for one, found in wrong.items() if found} == {}
        return [one for one in commands if one.startswith("qrmax sweep paper/table4 ")]

    name = protocol_names()[0]
    alike = [f"{key}={name}" for key in ("PUBLISHED", "DESCRIBED", "EXACT")]
    assert sweeps(*alike) == [f"qrmax sweep paper/table4 --protocol {name}"]
    assert len(sweeps()) == len(set(sweeps())) >= 2
