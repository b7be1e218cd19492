"""The page of the paper's claims: every row has a verdict, and commands that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from shown_commands import commands_in, mistakes_in

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PAGE = (RESULTS / "claims.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| claim |")
]
VERDICTS = {  # longer ones first: each begins its cell
    "holds in part": "hold in part",
    "holds": "hold",
    "does not hold": "do not hold",
    "cannot be tested": "cannot be tested",
    "PENDING": "are pending",
}


def test_every_claim_has_a_verdict_and_those_that_can_be_tested_a_command() -> None:
    for claim, _, verdict, command in ROWS:
        assert verdict.startswith(tuple(VERDICTS)), claim
        assert "`" in command or verdict.startswith("cannot be tested"), claim


def test_the_page_counts_its_verdicts() -> None:
    found = Counter(next(v for v in VERDICTS if row[2].startswith(v)) for row in ROWS)
    [total] = re.findall(r"^Of (\d+):", PAGE, re.MULTILINE)
    assert int(total) == len(ROWS)
    for verdict, words in VERDICTS.items():
        assert f" {found[verdict]} {words}" in PAGE or not found[verdict]


@pytest.mark.parametrize("page", ["claims.md", "README.md"])
def test_commands_of_the_page_exist(page: str) -> None:
    text = (RESULTS / page).read_text(encoding="utf-8")
    found = {command: mistakes_in(command) for command in commands_in(text)}
    assert found
    assert {command: wrong for command, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "command",
    [
        "qrmax tabel paper/table4",
        "qrmax table paper/table7",
        "qrmax table paper/table4 --protocol as-dreamt",
        "qrmax table paper/table4 --measure speed",
        "qrmax table paper/table4 --measures steps",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert mistakes_in(command)
