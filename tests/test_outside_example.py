"""The agent of the guide, in a folder of its own and in processes of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from installed import command, python
from outside_agents import SARSA, write_module

ROOT = Path(__file__).parents[1]

STUDY = """
problems = ["river-swim/patrol"]
agents = ["qrm", "mine:Sarsa"]
seeds = 2
max_steps = 2000
stop = "budget"
settings."mine:Sarsa".alpha = 0.2
"""

SCRIPT = """
import qrmax, mine
from qrmax.testing import check_agent
check_agent("mine:Sarsa")
told = {"seed": 3, "evaluate_every": 500, "progress": False}
whole = qrmax.train(mine.Sarsa, "river-swim/patrol", max_steps=20_000, **told)
assert whole.reason == "exact", whole
half = qrmax.train(mine.Sarsa.Config(), "river-swim/patrol", max_steps=1_000, **told)
half.save("half.run")
resumed = qrmax.load("half.run").resume(20_000)
assert resumed.curve == whole.curve
assert resumed.agent.qt.tobytes() == whole.agent.qt.tobytes()
print(whole.steps)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_module(tmp_path)
    return tmp_path


def test_the_guide_shows_the_example_as_it_is() -> None:
    text = SARSA.read_text()
    assert len(text.splitlines()) <= 40
    assert f"```python\n{text}```" in (ROOT / "docs/guide.md").read_text()


def test_it_is_trained_saved_and_resumed(folder: Path) -> None:
    done = python(SCRIPT, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_it_is_run_saved_and_resumed_on_the_command_line(folder: Path) -> None:
    problem = ["river-swim/patrol", "--agent", "mine:Sarsa", "--seed", "3", "--set", "alpha=0.2"]
    run = ["run", *problem, "--max-steps", "2000", "--stop", "budget", "--json"]
    done = command(*run, "--save", "mine.run", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["agent"], found["trained"]) == ("sarsa", 2000)
    assert found["settings"] == {"gamma": 0.9, "alpha": 0.2, "epsilon": 0.1}
    more = ["--max-steps", "3000", "--json"]
    refused = command("run", "--resume", "mine.run", *more, cwd=folder)
    assert refused.returncode == 2
    assert "module 'mine', which is not imported" in refused.stderr
    resumed = command("run", "--resume", "mine.run", "--agent", "mine:Sarsa", *more, cwd=folder)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["trained"] == 3000


def test_it_is_swept_beside_built_in_agents_and_again_once_it_is_edited(folder: Path) -> None:
    (folder / "ours.toml").write_text(STUDY)
    sweep = ["sweep", "ours.toml", "--workers", "2", "-o", "results"]
    done = command(*sweep, cwd=folder)
    assert done.returncode == 0, done.stderr
    runs = {file: json.loads(file.read_text()) for file in (folder / "results").rglob("run.json")}
    assert len(runs) == 4
    sources = [found["config"].get("source") for found in runs.values()]
    [source] = {json.dumps(source) for source in sources if source is not None}
    assert json.loads(source).keys() == {"module", "class", "sha256"}
    assert sources.count(None) == 2
    with (folder / "mine.py").open("a") as file:
        file.write("\n\n# edited\n")
    again = command(*sweep, cwd=folder)
    assert again.returncode == 0, again.stderr
    more = {*(folder / "results").rglob("run.json")} - {*runs}
    assert len(more) == 2
    assert all("Sarsa" in file.read_text() for file in more)
