"""What make says before it installs something large."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
