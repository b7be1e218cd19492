"""`qrmax run --resume` of runs on environments: made again from the description in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import qrmax
from command_line import run
from damage import setting, write_changed
from outside_code import CLIFF, write_module

pytestmark = pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
OWN = ["--wrapper", "resumed_cliff:Falls", "--labelling", "resumed_cliff:labels"]
FLAGS = ["--evaluate-every", "200", "--stop", "budget", "--quiet"]
CLIFF_ENV = ["--env", "CliffWalking-v1", "--env-option", "max_episode_steps=1500", *OWN]
CLIFF_RUN = [*CLIFF_ENV, "--task", "F(left & F goal)", "--agent", "qrm", *FLAGS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("resumed")
    write_module(folder, "resumed_cliff", CLIFF)
    return folder


@pytest.fixture
def saved(folder: Path) -> Path:
    """A run that was saved after 1,300 steps, in the middle of an episode."""
    path, first = folder / "cliff.run", folder / "first.run"
    if not first.exists():
        done = run("run", *CLIFF_RUN, "--max-steps", "1300", "--save", "first.run", cwd=folder)
        assert done.returncode == 0, done.stderr
    path.write_bytes(first.read_bytes())
    return path


def test_a_run_on_an_environment_is_resumed_with_its_modules_named(saved: Path) -> None:
    words = ["run", "--resume", saved.name, *OWN, "--max-steps", "2600", "--export", "p.json"]
    done = run(*words, "--json", "--quiet", cwd=saved.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["trained"], found["last_check"]["step"]) == (2600, 2600)
    assert found["labelling"] == "resumed_cliff:labels"
    assert found["wrappers"] == ["resumed_cliff:Falls"]
    assert found["options"] == {"max_episode_steps": 1500}
    assert "cannot be restored in the middle of an episode: a new one begins" in done.stderr
    assert (saved.parent / "p.json").exists()
    assert qrmax.load(saved).trained == 2600
    again = run("run", "--resume", saved.name, *OWN, "--max-steps", "2800", cwd=saved.parent)
    assert again.returncode == 0, again.stderr  # the description is saved again


def test_nothing_is_warned_of_where_nothing_is_trained(folder: Path) -> None:
    words = ["--task", "F goal", "--agent", "qrm", "--save", "met.run", "--quiet"]
    assert run("run", *CLIFF_ENV, *words, cwd=folder).returncode == 0
    again = run("run", "--resume", "met.run", *OWN, "--max-steps", "200000", cwd=folder)
    assert "has met its stopping rule; there is nothing to resume" in again.stderr
    assert "warning" not in again.stderr


REFUSED: dict[str, tuple[list[str], str]] = {
    "no module is named": ([], "add --labelling resumed_cliff:labels --wrapper resumed_cliff:F"),
    "one is not named": (OWN[:2], "add --labelling resumed_cliff:labels, as in qrmax run --resume"),
    "another one": ([*OWN[:2], "--labelling", "json:loads"], "not with json:loads"),
    "another environment": ([*OWN, "--env", "Taxi-v3"], "not with Taxi-v3"),
    "an option of it": ([*OWN, "--env-option", "x=1"], "leave --env-option out"),
    "a task": ([*OWN, "--task", "F goal"], "leave --task out"),
    "a map": ([*OWN, "--show"], "--show is for worlds with a map"),
    "steps that were taken": ([*OWN, "--max-steps", "300"], "--max-steps is 300"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=list(REFUSED))
def test_a_run_is_not_resumed_as_another(saved: Path, words: list[str], message: str) -> None:
    before = saved.read_bytes()
    if "--max-steps" not in words:
        words = [*words, "--max-steps", "1400"]
    done = run("run", "--resume", saved.name, *words, cwd=saved.parent)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert saved.read_bytes() == before


def test_a_file_cannot_have_a_module_imported_that_was_not_named(saved: Path) -> None:
    write_module(saved.parent, "never_named", "raise SystemExit('was executed')")
    tampered: list[tuple[str, Any]] = [
        ("env", "never_named:Cliff-v0"),
        ("transition_labels", "never_named:labels"),
        ("sources", {"never_named:labels": {}}),
        ("options", {"entry_point": "never_named:make"}),
        ("wrappers", [{"wrapper": "never_named:Wrapper"}]),
        ("labels", 3),
    ]
    first = saved.read_bytes()
    for key, value in tampered:
        saved.write_bytes(first)
        write_changed(saved, setting("task", "made_from", key)(value))
        assert qrmax.load(saved).trained == 1300  # imports nothing
        done = run("run", "--resume", saved.name, *OWN, "--max-steps", "1400", cwd=saved.parent)
        assert "was executed" not in done.stderr + done.stdout
        assert done.returncode == (0 if key == "sources" else 2), (key, done.stderr)
        assert "Traceback" not in done.stderr


def test_code_that_has_changed_is_told(saved: Path) -> None:
    module = saved.parent / "resumed_cliff.py"
    module.write_text(CLIFF + "\n# edited\n")
    done = run("run", "--resume", saved.name, *OWN, "--max-steps", "1400", cwd=saved.parent)
    module.write_text(CLIFF)
    assert done.returncode == 0, done.stderr
    assert "resumed_cliff:labels has changed since the run was saved" in done.stderr


def test_a_run_that_was_trained_in_python_is_resumed_with_its_environment_described(
    folder: Path,
) -> None:
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env = qrmax.TaskWrapper(lake, "F goal", labels={15: {"goal"}})
    qrmax.train("qrm", env, max_steps=400, stop="budget").save(folder / "python.run")
    words = ["run", "--resume", "python.run", "--max-steps", "600"]
    done = run(*words, cwd=folder)
    assert done.returncode == 2
    assert "give --env, --task and --labelling" in " ".join(done.stderr.split())
    described = ["--env", "FrozenLake-v1", "--env-option", "is_slippery=false"]
    described += ["--labelling", "resumed_cliff:corner", "--task"]
    other = run(*words, *described, "F !goal", cwd=folder)
    assert (other.returncode, "it has another task" in other.stderr) == (2, True)
    done = run(*words, *described, "F goal", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_a_run_that_is_loaded_without_its_environment_keeps_the_description(saved: Path) -> None:
    qrmax.load(saved).save(saved)
    assert qrmax.load(saved).environment is not None
    done = run("run", "--resume", saved.name, *OWN, "--max-steps", "1400", cwd=saved.parent)
    assert done.returncode == 0, done.stderr


def test_options_of_environments_are_refused_for_runs_on_problems(folder: Path) -> None:
    qrmax.train("qrm", "office/map1/exp1", max_steps=200, stop="budget").save(folder / "p.run")
    done = run("run", "--resume", "p.run", "--env", "Taxi-v3", cwd=folder)
    assert (done.returncode, "leave --env out" in done.stderr) == (2, True)
