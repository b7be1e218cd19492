"""`qrmax run --env`: a Gymnasium environment with a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import run
from outside_code import CLIFF, write_module

pytestmark = pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
LAKE = ["--env", "FrozenLake-v1", "--task", "F goal", "--agent", "qrm", "--quiet"]


def test_an_environment_is_trained_on(tmp_path: Path) -> None:
    write_module(tmp_path, "run_cliff", CLIFF)
    words = ["run", *LAKE, "--labelling", "run_cliff:corner", "--env-option", "is_slippery=false"]
    words += ["--max-steps", "400", "--evaluate-every", "200", "--json"]
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["env"], found["trained"]) == ("FrozenLake-v1", 400)
    assert found["last_check"]["step"] == 400
    told = run(*words[:-1], "--stop", "budget", cwd=tmp_path)
    assert told.stdout.split()[2:4] == ["environment", "FrozenLake-v1"]
    assert "the budget" in told.stdout


BAD = {
    "no such module": (["--labelling", "nowhere:labels"], "there is no module 'nowhere'"),
    "labels that are no text": (["--labelling", "bad_cliff:no_text"], "string"),
    "no wrapper": (
        ["--labelling", "bad_cliff:corner", "--wrapper", "bad_cliff:no_wrapper"],
        "makes 3; needed",
    ),
    "no labelling function": ([], "--env needs --task and --labelling"),
    "an option without a value": (
        ["--labelling", "bad_cliff:corner", "--env-option", "slippery"],
        "NAME=VALUE",
    ),
    "a problem as well": (["office/map1/exp1"], "leave PROBLEM out"),
    "an option of a world": (["--slip", "0.1"], "leave --slip out"),
    "moves on a map": (["--show"], "--show is for worlds with a map"),
    "another environment": (["--env", "FrozenLak-v1", "--labelling", "a:b"], "FrozenLake-v1"),
    "continuous actions": (
        ["--env", "Pendulum-v1", "--labelling", "bad_cliff:corner"],
        "discrete actions",
    ),
    "a rule that needs the optimum": (
        ["--labelling", "bad_cliff:corner", "--stop", "exact"],
        "stop is 'exact'",
    ),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=list(BAD))
def test_bad_input_is_an_error_with_exit_code_2_and_nothing_written(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], message: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "bad"
    folder.mkdir(exist_ok=True)
    write_module(folder, "bad_cliff", CLIFF)
    done = run("run", *LAKE, *words, "--save", "x.run", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "x.run").exists()


def test_options_of_environments_need_one(tmp_path: Path) -> None:
    done = run("run", "office/map1/exp1", "--labelling", "mine:labels", cwd=tmp_path)
    assert (done.returncode, "--labelling is for --env" in done.stderr) == (2, True)


def test_the_result_of_an_environment_has_the_facts_of_one_on_a_problem(tmp_path: Path) -> None:
    write_module(tmp_path, "told_cliff", CLIFF)
    words = ["--env", "CliffWalking-v1", "--labelling", "told_cliff:labels", "--task", "F goal"]
    words += ["--agent", "qrm", "--env-option", "max_episode_steps=1000", "--max-steps", "2000"]
    done = run("run", *words, "--quiet", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = {line[:13].strip(): line[13:].strip() for line in done.stdout.splitlines()}
    assert (facts["agent"], facts["environment"]) == ("qrm", "CliffWalking-v1")
    assert (facts["task"], facts["seed"]) == ("F goal", "3")
    assert facts["steps"] == "2,000, the budget: the rule 'reaches' was not met"
    assert facts["length"] == "1,000.0"
    assert facts["success"].startswith("0.00 %  [0.00 % to")
    assert facts["stopped by"] == "budget"
    assert "of training" in facts["seconds"]
    assert "e+0" not in done.stdout
