"""Results stay what they were, whatever is moved or renamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import golden

KEPT: dict[str, Any] = json.loads(golden.FILE.read_text(encoding="utf-8"))
SAME_ON_ENVIRONMENTS = ("trained", "episodes", "policy")


@pytest.mark.parametrize("agent", KEPT["runs"])
def test_a_built_in_agent_learns_what_it_learned(agent: str) -> None:
    assert golden.runs_of(agent) == KEPT["runs"][agent]


@pytest.mark.parametrize("agent", KEPT["environments"])
@pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
def test_it_does_so_on_an_environment(agent: str) -> None:
    found, kept = golden.on_an_environment(agent), KEPT["environments"][agent]
    assert {key: found[key] for key in SAME_ON_ENVIRONMENTS} == {
        key: kept[key] for key in SAME_ON_ENVIRONMENTS
    }


@pytest.mark.parametrize("study", KEPT["ids"])
def test_run_ids_of_the_built_in_studies_stay(study: str) -> None:
    name, protocol = study.split()
    found = golden.run_ids(name, None if protocol == "None" else protocol)
    assert found == KEPT["ids"][study]


def test_the_smoke_study_comes_to_the_same_steps() -> None:
    assert dict(golden.smoke()) == KEPT["smoke"]
