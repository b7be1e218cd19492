"""Agents from outside the library in studies: beside the file, by class, and edited."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import qrmax
from outside_code import SARSA, write_module
from qrmax.agents import registry
from qrmax.errors import StudyError
from qrmax.studies.study import Study
from tiny_study import agents, parsed, write_tiny


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A module beside the tiny study, under a name of its own."""
    write_tiny(tmp_path)
    name = f"mine_{abs(hash(request.node.name))}"
    write_module(tmp_path, name, SARSA)
    return name


def test_an_agent_beside_the_study_is_run_beside_built_in_ones(tmp_path: Path, module: str) -> None:
    path = write_tiny(tmp_path, agents(f'"qrm", {{ agent = "{module}:Sarsa", alpha = 0.5 }}'))
    study = qrmax.load_study(path)
    assert study.agents == ("qrm", "sarsa")
    summary = qrmax.sweep(study, folder=tmp_path / "out", workers=2, progress=False)
    assert (summary.done, summary.failed) == (4, 0)
    found = qrmax.results(tmp_path / "out").filter(label="sarsa")
    assert found["agent"].to_list() == [f"{module}:Sarsa"] * 2
    assert found["start_value"].min() > 0.0  # it has learned something
    ids = [run.id for run in study.only(agent=["sarsa"]).runs()]
    for run_id in ids:
        config = json.loads((tmp_path / "out" / "runs" / run_id / "run.json").read_text())["config"]
        assert config["source"]["module"] == module
        assert config["source"]["class"] == "Sarsa"
        assert len(config["source"]["sha256"]) == 64
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study


def test_results_do_not_depend_on_who_runs_it_or_how_often_it_changes_hands(
    tmp_path: Path, module: str
) -> None:
    study = parsed(tmp_path, agents(f'"{module}:Sarsa"'))
    outcomes = []
    for workers, seconds in ((1, 10.0), (2, 1e-9)):
        folder = tmp_path / f"out{workers}"
        options: dict[str, Any] = {"folder": folder, "workers": workers, "progress": False}
        qrmax.sweep(study, checkpoint_every=seconds, **options)
        table = qrmax.results(folder)
        outcomes.append(table.select("seed", "status", "steps", "start_value", "episodes").rows())
    assert outcomes[0] == outcomes[1]
    assert {row[1] for row in outcomes[0]} == {"done"}


IDS = """
import sys, qrmax
print(*[run.id for run in qrmax.load_study(sys.argv[1]).runs()])
"""


def test_an_edited_agent_is_run_again_unless_its_version_stays(tmp_path: Path) -> None:
    path = write_tiny(tmp_path, agents('"mine:Sarsa"'))

    def ids(text: str) -> str:
        write_module(tmp_path, "mine", text)
        command = [sys.executable, "-c", IDS, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    edited = SARSA.replace("self.rng.random() < ", "self.rng.random() <= ")
    assert ids(SARSA) == ids(SARSA) != ids(edited)
    versioned = [
        text.replace('"sarsa"\n', '"sarsa"\n    version = "1"\n') for text in (SARSA, edited)
    ]
    assert ids(versioned[0]) == ids(versioned[1])
    assert ids(versioned[0]) != ids(versioned[1].replace('"1"', '"2"'))


def test_a_worker_refuses_code_that_was_edited_after_the_study_was_read(
    tmp_path: Path, module: str
) -> None:
    study = parsed(tmp_path, agents(f'"{module}:Sarsa"'))
    write_module(tmp_path, module, SARSA + "\n# edited\n")
    summary = qrmax.sweep(study, folder=tmp_path / "out", workers=1, progress=False)
    assert summary.failed == 2
    [error] = set(qrmax.results(tmp_path / "out")["error"].to_list())
    assert f"module '{module}' has changed since the study was read" in error


def test_the_record_of_a_run_whose_agent_raises_ends_with_whose_line_it_was(
    tmp_path: Path, module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(tmp_path, module, SARSA.replace("step.r_env", "step.reward"))
    study = parsed(tmp_path, agents(f'"{module}:Sarsa"'))
    summary = qrmax.sweep(study, folder=tmp_path / "out", workers=1, progress=True)
    assert summary.failed == 2
    told = f"agent '{module}:Sarsa', method update: AttributeError: 'Step' object has no attribute"
    for error in qrmax.results(tmp_path / "out")["error"]:
        assert error.startswith("Traceback (most recent call last)")
        assert told in error.splitlines()[-2]
        assert error.splitlines()[-2].endswith(f"{module}.py, line 38)")
        assert error.splitlines()[-1].startswith("  38 | target = step.reward")
    assert capsys.readouterr().err.count(told) == 2


# --- settings by name, reference and pattern


def alpha(study: Study) -> float:
    [cell] = [cell for cell in study.cells if cell.agent.endswith(":Sarsa")]
    value: float = cell.settings["alpha"]
    return value


@pytest.mark.parametrize("key", ["{}:Sarsa", "{}:*", "sarsa", "sars*"])
@pytest.mark.parametrize("table", ["settings", 'on."office/row/fetch"'])
def test_settings_are_given_by_reference_by_name_and_by_pattern(
    tmp_path: Path, module: str, table: str, key: str
) -> None:
    header = f'[{table}."{key.format(module)}"]\nalpha = 0.7\n'
    assert alpha(parsed(tmp_path, agents(f'"qrm", "{module}:Sarsa"') + header)) == 0.7


def test_a_registered_agent_is_also_known_by_its_reference(
    tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    parsed(tmp_path, agents(f'"{module}:Sarsa"'))
    kind = type("Sarsa", (sys.modules[module].Sarsa,), {"name": "known", "__module__": module})
    monkeypatch.setattr(sys.modules[module], "Sarsa", kind)
    qrmax.register_agent(kind)
    for key in ("known", f"{module}:Sarsa", f"{module}:*", "know?"):
        for agent in ("known", f"{module}:Sarsa"):
            text = agents(f'"{agent}"') + f'[settings."{key}"]\nalpha = 0.7\n'
            assert alpha(parsed(tmp_path, text)) == 0.7, (key, agent)


def test_a_reference_overrides_a_name_and_a_name_a_pattern(tmp_path: Path, module: str) -> None:
    keys = {f"{module}:Sarsa": 0.3, "sarsa": 0.5, f"{module}:*": 0.7}  # written in this order
    text = agents(f'"{module}:Sarsa"')
    while keys:
        tables = [f'[settings."{key}"]\nalpha = {value}\n' for key, value in keys.items()]
        assert alpha(parsed(tmp_path, text + "".join(tables))) == next(iter(keys.values()))
        del keys[next(iter(keys))]


def test_a_protocol_names_agents_of_the_study_and_replaces_them(
    tmp_path: Path, module: str
) -> None:
    text = agents(f'"{module}:Sarsa"') + "[protocols.fast.settings.sarsa]\nalpha = 0.7\n"
    assert alpha(parsed(tmp_path, text, "fast")) == 0.7
    text = agents(f'"{module}:Sarsa"') + '[protocols.other.agents]\nsarsa = "qrm"\n'
    assert [cell.agent for cell in parsed(tmp_path, text, "other").cells] == ["qrm"]


def test_an_inherited_name_does_not_take_the_settings_of_a_built_in_agent(
    tmp_path: Path, module: str
) -> None:
    write_module(tmp_path, module, "from qrmax.agents.qrm import QRM\nclass Sarsa(QRM): pass\n")
    text = agents(f'{{ agent = "{module}:Sarsa", label = "mine" }}')
    assert alpha(parsed(tmp_path, text + "[settings.qrm]\nalpha = 0.7\n")) == 0.1


def test_settings_of_agents_that_the_study_does_not_have_are_refused(
    tmp_path: Path, module: str
) -> None:
    refused = {
        "sarza": r"settings.sarza: unknown agent 'sarza'\n  did you mean 'sarsa'",
        '"m:*"': r"settings.m:\*: unknown agent",
        f'"{module}:*"': r"alhpa: unknown setting of sarsa 'alhpa'\n  did you mean 'alpha'",
    }
    for key, message in refused.items():
        text = agents(f'"{module}:Sarsa"') + f"[settings.{key}]\nalhpa = 0.7\n"
        with pytest.raises(StudyError, match=message):
            parsed(tmp_path, text)
    with pytest.raises(StudyError, match=r"agents\[0\]: unknown agent 'ucbvi-\*'"):
        parsed(tmp_path, agents('"ucbvi-*"'))


# --- in Python


def test_a_study_made_in_python_is_the_one_of_the_file(tmp_path: Path, module: str) -> None:
    text = agents(f'"qrmax", {{ agent = "{module}:Sarsa", alpha = 0.5, label = "mine" }}')
    text = text.replace('map = "row.txt"', 'name = "office/map1"').replace("fetch.toml", "exp1")
    file = parsed(tmp_path, text + 'gamma = 0.8\nstop = "nominal"\nsettings.qrmax.t_env = 5\n')
    sarsa = sys.modules[module].Sarsa
    study = qrmax.Study(
        problems=({"name": "office/map1", "task": "exp1"},),
        agents=["qrmax", {"agent": sarsa, "alpha": 0.5, "label": "mine"}],
        seeds=range(2),
        name="tiny",
        max_steps=600,
        evaluate_every=100,
        gamma=0.8,
        stop="nominal",
        settings={"qrmax": {"t_env": 5}},
    )
    assert study == file
    config = replace(sarsa.Config(), alpha=0.5)
    for agent in (sarsa, f"{module}:Sarsa", config):
        made = qrmax.Study(["office/map1/exp1"], [agent], 2)
        assert made.agents == ("sarsa",)
        assert made.cells[0].settings["alpha"] == (0.5 if agent is config else 0.1)


def test_a_study_made_in_python_tells_its_mistakes_like_a_file() -> None:
    with pytest.raises(StudyError) as caught:
        qrmax.Study(["office/map1/exp9"], ["qrmx", 3], seeds=0, maxsteps=3, name="x")
    places = [line.split(": ")[0] for line in str(caught.value).split("\n") if line[:5] == "Study"]
    expected = ["agents[0]", "agents[1]", "seeds", "problems[0]", "maxsteps"]
    assert places == [f"Study(...), {place}" for place in expected]


def test_a_class_that_workers_cannot_import_is_refused(tmp_path: Path, module: str) -> None:
    parsed(tmp_path, agents(f'"{module}:Sarsa"'))
    base = sys.modules[module].Sarsa

    class Local(base):  # type: ignore[misc, valid-type]
        name = "local"

    with pytest.raises(StudyError, match=r"agents\[0\]: .*<locals>"):
        qrmax.Study(["office/map1/exp1"], [Local])


# --- what is wrong


BROKEN = {
    "no such module": ("nowhere_at_all:Sarsa", "", "there is no module 'nowhere_at_all'"),
    "a module that raises": ("{module}:Sarsa", "1 / 0", "ZeroDivisionError"),
    "a module that ends the process": ("{module}:Sarsa", "raise SystemExit(3)", "SystemExit"),
    "no such class": ("{module}:Sarza", SARSA, "did you mean 'Sarsa'?"),
    "a class that is no agent": ("{module}:SarsaConfig", SARSA, "Agent"),
    "an agent without act": ("{module}:Sarsa", SARSA.replace("def act", "def acts"), "act"),
}


@pytest.mark.parametrize(("agent", "text", "words"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_agent_is_a_mistake_of_the_study(
    tmp_path: Path, agent: str, text: str, words: str, request: pytest.FixtureRequest
) -> None:
    name = f"broken_{abs(hash(request.node.name))}"
    write_tiny(tmp_path)
    write_module(tmp_path, name, text)
    with pytest.raises(StudyError) as caught:
        parsed(tmp_path, agents(f'"{agent.format(module=name)}"'))
    assert f"{tmp_path / 'tiny.toml'}, agents[0]: " in str(caught.value)
    assert words in str(caught.value)


def test_settings_of_an_agent_from_outside_are_checked(tmp_path: Path, module: str) -> None:
    with pytest.raises(StudyError) as caught:
        parsed(tmp_path, agents(f'{{ agent = "{module}:Sarsa", alpha = 3.0, epsilom = 0.1 }}'))
    message = str(caught.value)
    assert "agents[0].alpha: alpha is 3.0" in message
    assert "did you mean 'epsilon'?" in message
