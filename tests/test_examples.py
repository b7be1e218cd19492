"""The examples on environments of others, and of agents of one's own, run as a reader would."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from installed import python

EXAMPLES = Path(__file__).parents[1] / "examples"

needs_minigrid = pytest.mark.skipif(
    importlib.util.find_spec("minigrid") is None, reason="minigrid is not installed"
)


@cache
def output_of(example: str, hash_seed: int = 1) -> str:
    """What an example prints; its warnings are errors, as in all tests."""
    result = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", EXAMPLES / f"{example}.py"],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_cliff_is_walked_by_both_corners_without_a_fall() -> None:
    shown = output_of("cliff_walking")
    pictures = re.findall(r"(?:[oxCT ]+\n){4}", shown)
    cells = ["".join(picture.split()).index("x") for picture in pictures]
    assert cells == [36, 0, 11, 47]
    assert shown.endswith("done\nsuccess: 100 of 100 episodes\n")


def test_the_taxi_drives_by_the_place_before_it_delivers() -> None:
    shown = output_of("taxi")
    pictures = re.findall(r"(\+-+\+\n.*?\+-+\+\n)(.*?)\n\n", shown, flags=re.DOTALL)
    told = [set(re.findall(r"aboard|yellow|delivered", below)) for _, below in pictures]
    boarded = next(i for i, label in enumerate(told) if "aboard" in label)
    assert all("aboard" in label for label in told[boarded:-1])
    assert any("yellow" in label for label in told[boarded:-1])
    assert told[-1] == {"delivered"}
    assert shown.endswith("done\nsuccess: 100 of 100 episodes\n")


@needs_minigrid
def test_the_door_is_opened_with_the_key_and_shut_behind() -> None:
    shown = output_of("minigrid_door")
    moments = re.findall(r"^((?:##.*##\n)+)(.*)$", shown, flags=re.MULTILINE)
    pictures = [picture for picture, _ in moments]
    assert "LY" in pictures[0]  # locked
    assert any("__" in picture for picture in pictures)  # open
    assert "DY" in pictures[-1]  # shut
    assert "GG" in pictures[0]
    assert "GG" not in pictures[-1]  # the walker stands on the goal
    carries = ["carrying_key" in label for _, label in moments]
    assert carries == sorted(carries)  # once and for all
    assert "at_goal" in moments[-1][1]
    assert all(one != other for one, other in pairwise(pictures))  # no step is wasted
    assert shown.endswith("done\n")


def test_an_example_is_the_same_whenever_it_is_run() -> None:
    assert output_of("cliff_walking") == output_of("cliff_walking", hash_seed=2)


@pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None,
    reason="Stable-Baselines3 is not installed (the extra 'dqn')",
)
def test_learners_of_stable_baselines3_walk_to_the_corner_and_back() -> None:
    shown = output_of("sb3_learners").splitlines()
    assert [line.split(":")[0] for line in shown[1:]] == ["PPO", "DQN", "DQN, counterfactual"]
    assert all(line.endswith(" 0 1 2 1 0  success") for line in shown[1:])


def outside(example: str, script: str, folder: Path) -> str:
    """What a script prints beside a copy of an example, where nothing else of the tree is near."""
    shutil.copy(EXAMPLES / f"{example}.py", folder)
    result = python(script, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_mbie_eb_has_at_most_60_lines() -> None:
    assert len((EXAMPLES / "mbie_eb.py").read_text().splitlines()) <= 60


def test_mbie_eb_finds_the_optimum_of_a_river_swim(tmp_path: Path) -> None:
    shown = outside(
        "mbie_eb", "import runpy; runpy.run_path('mbie_eb.py', run_name='__main__')", tmp_path
    )
    assert re.fullmatch(r"my-mbie-eb: exact after \d,000 steps, gap 0.0000\n", shown)


MBIE_RESUMED = """
import qrmax
from mbie_eb import MBIE

def learned(run):
    return {name: array.tolist() for name, array in run.agent.snapshot().items()}

def train(steps):
    return qrmax.train(MBIE, "river-swim/patrol", max_steps=steps, stop="budget", progress=False)

train(400).save("half.run")
assert learned(qrmax.load("half.run").resume(900)) == learned(train(900))
qrmax.testing.check_agent(MBIE)
print("the same")
"""


def test_mbie_eb_keeps_the_contract_and_resumes_where_it_was(tmp_path: Path) -> None:
    assert outside("mbie_eb", MBIE_RESUMED, tmp_path) == "the same\n"
