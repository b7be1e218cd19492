"""Training tells the kinds of domains and policies apart in their own files, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import qrmax

SOURCE = Path(qrmax.__file__).parent
ROOMS = ("training", "studies", "report", "cli")
OWN_FILES = (
    "training/domains/",
    "training/policies/",
)
KINDS = (
    r"Problem|ContinuousProblem|EnvPlayer|Simulator|PlaneSimulator|AnySimulator|Play|"
    r"BucketPolicy|NetworkPolicy|np\.ndarray|ExactEvaluator|PlaneEvaluator|RolloutEvaluator|"
    r"\w*Domain|\w+Policy"
)
SWITCH = re.compile(rf"isinstance\(\s*[^()]*?(\(\))?[^()]*?,\s*\(?[^)]*\b({KINDS})\b")


def switches(source: str) -> list[str]:
    return [match.group(0) for match in SWITCH.finditer(source)]


def files() -> list[Path]:
    found = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    return [path for path in found if not _named(path).startswith(OWN_FILES)]


def _named(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", files(), ids=_named)
def test_no_file_but_its_own_asks_for_a_kind(path: Path) -> None:
    assert switches(path.read_text(encoding="utf-8")) == []


def test_a_switch_would_be_found() -> None:
    assert switches("if isinstance(task, EnvPlayer): ...")
    assert switches("x = isinstance(session.task, Problem | ContinuousProblem)")
    assert switches("isinstance(self.policy(), (int, BucketPolicy))")
    assert not switches("isinstance(event, Evaluated)")
