"""A world in a file of the user's own, away from the library and in processes of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import run_apart as run
from installed import python

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_world.py"


def install(folder: Path, entry_points: str) -> None:
    """Make a folder look like one that a distribution was installed into."""
    facts = folder / "rings-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: rings\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[qrmax.worlds]\n{entry_points}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(EXAMPLE, tmp_path)
    return tmp_path


def test_the_example_registers_solves_and_trains(folder: Path) -> None:
    done = python("import runpy; runpy.run_path('own_world.py', run_name='__main__')", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Problem('ring/round': 8 states x 3 task states, 2 actions)" in done.stdout
    assert "optimal value 0.3419\nexact after" in done.stdout


def test_a_world_is_found_where_it_is_on_the_command_line(folder: Path) -> None:
    done = run("solve", "own_world:RING/round", "--wind", "0.3", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert (found["problem"], found["states"]) == ("ring/round", 8)
    assert found["start_value"] == pytest.approx(0.3419, abs=1e-4)
    shown = run("solve", "--size", "6", "own_world:RING", "--task", "F depot", "--help", cwd=folder)
    assert "Ring: probability that the wind blocks a" in shown.stdout
    assert "ring: number of places" in shown.stdout.lower()


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("own_world:RING/rond", "did you mean 'own_world:RING/round'"),
        ("own_world:RONG/round", "did you mean 'RING'"),
        ("own_world:ring/round", "needed: a qrmax.World"),
        ("no_world:RING/round", "there is no module 'no_world'"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(folder: Path, problem: str, words: str) -> None:
    before = {*folder.iterdir()}
    done = run("solve", problem, cwd=folder, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert words in done.stderr
    assert {*folder.iterdir()} == before


def test_an_installed_world_is_known_by_name_and_a_broken_one_leaves_it_alone(folder: Path) -> None:
    install(folder, "ring = own_world:RING\nrung = own_world:RUNG\nlake = own_world:RING")
    path = {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    listed = run("list", "worlds", **path).stdout
    assert "\nring " in listed
    assert re.search(r"\nrung  +cannot be loaded\n +see `qrmax doctor`\n", listed)
    assert "ring/round" in json.loads(run("list", "worlds", "--json", **path).stdout)["worlds"]
    done = run("run", "ring/round", "--wind", "0", "--set", "t_env=2", "--json", "--quiet", **path)
    assert json.loads(done.stdout)["problem"] == "ring/round"
    broken = run("solve", "rung/round", **path)
    assert broken.returncode == 2
    assert "entry point 'rung' of group 'qrmax.worlds' (from rings) is broken" in broken.stderr
    code = "import gymnasium, qrmax; print(gymnasium.make('qrmax/Ring-round-v0').reset(seed=0)[0])"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "'state'" in made.stdout, made.stderr
    code = "import qrmax.cli.doctor_command as d; print(d._check(d._all_worlds_load))"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert told.stdout.startswith("failed: ")
    assert "'rung'" in told.stdout
    assert "is the world 'ring'; both need the same name" in told.stdout


def test_a_world_under_the_name_of_an_installed_one_is_refused(folder: Path) -> None:
    install(folder, "ring = own_world:RING\nrung = own_world:RUNG")
    code = """
import qrmax, qrmax.errors, own_world
other = {name: getattr(own_world.RING, name) for name in ("tasks", "make", "options")}
try:
    qrmax.register_world(qrmax.World(name="ring", **other))
except qrmax.errors.ParameterError as error:
    print(error)
qrmax.register_world(own_world.RING)
qrmax.register_world(qrmax.World(name="rung", **other))  # that entry point is broken
"""
    done = python(code, cwd=folder)
    assert done.stdout.startswith("world 'ring': this is the name of another world"), done.stderr
    assert not done.stderr


STUDY = """
title = "Rings"
problems = ["own_world:RING/round", { name = "own_world:RING/round", wind = 0.3, label = "windy" }]
agents = [{ agent = "qrmax-rm", t_env = 5 }]
seeds = 1
max_steps = 3000
"""


def test_a_study_runs_in_a_world_beside_it_and_again_once_that_is_edited(folder: Path) -> None:
    (folder / "rings.toml").write_text(STUDY)

    def complete() -> set[str]:
        done = run("sweep", "rings.toml", "-o", "out", "--workers", "2", "--quiet", cwd=folder)
        assert done.returncode == 0, done.stderr
        return {path.parent.name for path in (folder / "out").rglob("run.json")}

    first = complete()
    assert len(first) == 2
    (folder / "own_world.py").write_text(EXAMPLE.read_text().replace("size // 2", "size // 4"))
    assert len(complete() - first) == 2
