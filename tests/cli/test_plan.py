"""`qrmax plan`: theory beside practice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from command_line import GOOD_MAP, Done, run
from qrmax.theory import (
    CONCENTRATIONS,
    Goal,
    Sizes,
    bucket_bound,
    bucket_diameter,
    qrmax_bound,
    rmax_bound,
)
from tiny_study import GOOD, write_tiny

MAP3 = ("plan", "office/map3/exp5")


def answer(*arguments: str, cwd: Path | None = None) -> str:
    done = run(*arguments, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(*arguments: str, cwd: Path | None = None) -> Any:
    return json.loads(answer(*arguments, "--json", cwd=cwd))


def numbers(text: str, row: str) -> list[str]:
    """The columns of the table's row that begins so."""
    [line] = [line for line in text.split("\n") if line.startswith(row)]
    return line.removeprefix(row).split()


def test_the_numbers_are_those_of_the_theory() -> None:
    result = as_json(*MAP3, "--epsilon", "0.2", "--delta", "0.01", "--gamma", "0.8")
    assert result["sizes"] == {"states": 225, "actions": 4, "task_states": 9, "successors": 3}
    sizes = Sizes(states=225, actions=4, task_states=9)
    goal = Goal(epsilon=0.2, delta=0.01, gamma=0.8, r_max=1.0)
    assert (result["horizon"], result["goal"]["r_max"]) == (goal.horizon, 1.0)
    assert result["escape_probability"] == pytest.approx(0.02)
    for name, bound in (("QR-Max", qrmax_bound), ("R-Max", rmax_bound)):
        for form in CONCENTRATIONS:
            expected = bound(sizes, goal, concentration=form)
            shown = result["bounds"][name][form]
            assert shown["t_env"] == expected.t_env
            assert shown["t_task"] == expected.t_task
            assert shown["unknown"] == expected.unknown
            assert shown["steps"] == expected.steps


def test_practice_stands_beside_theory() -> None:
    text = answer(*MAP3, "--agent", "rmax", "--epsilon", "0.1", "--delta", "0.05")
    assert "225 states, 4 actions, 9 task states, up to 3 successors" in text
    assert "0.1-optimal with probability 95.00 %  (gamma 0.9, rewards from 0 to 1)" in text
    assert re.search(
        r"agent +rmax, in practice with t_env 39\n"
        r"memory +0.7 MB of tables\nguarantee +that of R-Max, with",
        text,
    )
    assert numbers(text, "QR-Max: for a known (s, a)") == ["39", "1.34e+7", "5.33e+7"]
    assert numbers(text, "QR-Max: for a known (q, s')") == ["1", "1", "1"]
    assert numbers(text, "QR-Max: for a known model")[0] == str(225 * 4 * 39 + 225 * 9)
    assert numbers(text, "R-Max: for a known (s, q, a)")[0] == "39"
    assert numbers(text, "R-Max: for a known model")[0] == str(225 * 9 * 4 * 39)
    assert numbers(text, "QR-Max  ") == ["204525", str(225 * 4 * 3 + 225 * 9)]
    assert numbers(text, "UCBVI") == ["2.02e+8", str(225 * 9 * 4 * 3 + 1000 * 225 * 9)]


@pytest.mark.parametrize("agent", ["ucbvi-sb", "psrl", "opsrl"])
def test_the_memory_of_an_agent_grows_with_its_horizon(agent: str) -> None:
    def table_bytes(horizon: int) -> int:
        options = ("--agent", agent, "--horizon", str(horizon), "--json")
        return int(json.loads(answer(*MAP3, *options))["table_bytes"])

    longer = table_bytes(350) - table_bytes(150)
    assert longer == 200 * (225 * 9 + 1) * 8  # a value for each pair, and one for what is unseen
    assert table_bytes(150) < 10e6  # far below the 1 GB that it may have


@pytest.mark.parametrize(
    ("agent", "guarantee", "settings"),
    [
        ("q-learning", None, {"alpha", "epsilon"}),
        ("qrm", None, {"alpha", "epsilon"}),
        ("rmax", "R-Max", {"t_env"}),
        ("rmax-rm", "R-Max", {"t_env"}),
        ("qrmax", "QR-Max", {"t_env", "t_task"}),
        ("qrmax-rm", "QR-Max", {"t_env", "t_task"}),
    ],
)
def test_each_agent_has_its_guarantee_or_none(
    agent: str, guarantee: str | None, settings: set[str]
) -> None:
    result = as_json(*MAP3, "--agent", agent)
    assert (result["agent"], result["guarantee"]) == (agent, guarantee)
    assert settings <= {*result["practice"]}


def test_the_largest_reward_is_that_of_the_problem_unless_given() -> None:
    assert as_json("plan", "office/map4/exp6")["goal"]["r_max"] == 1000.0
    assert as_json("plan", "office/map4/exp6", "--r-max", "2000")["goal"]["r_max"] == 2000.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--r-max", "0.5"],
            "rewards from 0 to 0.5; those of 'office/map3/exp5' range",
        ),
        (
            ["--decoration-penalty", "100"],
            "range from -100 to 1, so these bounds do not hold",
        ),
    ],
)
def test_rewards_that_the_theory_does_not_allow_are_a_warning(
    options: list[str], words: str
) -> None:
    done = run(*MAP3, *options)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: the theory assumes rewards from 0 to ")
    assert words in done.stderr
    assert "QR-Max: for a known model" in done.stdout


def test_episodes_are_as_long_as_the_problem_says_or_as_given() -> None:
    assert as_json(*MAP3)["episode_horizon"] == 1000
    assert as_json(*MAP3, "--horizon", "250")["episode_horizon"] == 250
    endless = as_json(*MAP3, "--max-episode-steps", "none")
    assert endless["episode_horizon"] == endless["horizon"] == 53


def test_maps_of_your_own_and_accuracies_beyond_reason_are_welcome(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(GOOD_MAP)
    mine = ("plan", "--map", "mine.txt", "--task", "exp1", "--epsilon", "1e-300")
    assert as_json(*mine, cwd=tmp_path)["sizes"]["states"] == 3
    text = answer(*mine, cwd=tmp_path)
    assert numbers(text, "QR-Max: for a known (s, a)")[1] == "7.90e+604"  # 8 (4e301)^2 ln 480


def test_the_worlds_of_others_are_planned_for_too() -> None:
    assert as_json("plan", "river-swim/patrol")["sizes"]["states"] > 6


def test_the_guide_shows_what_the_command_prints() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    [command] = re.findall(r"^    \$ qrmax (plan office.*)$", guide, flags=re.MULTILINE)
    printed = answer(*command.split()).splitlines()
    assert "\n".join(f"    {line}".rstrip() for line in printed) in guide


def test_the_shell_completes_agents() -> None:
    words = "qrmax plan office/map1/exp1 --agent r"
    done = run(_QRMAX_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4")
    assert done.stdout.split() == [
        f"plain,{name}" for name in ("rmax", "rmax-rm", "rmax-published", "rmax-rm-published")
    ]


LINE = ("plan", "continuous/line/ab", "--partitions", "20", "--samples", "1000")


def test_with_real_positions_the_states_are_buckets() -> None:
    found = as_json(*LINE, "--epsilon", "0.2")
    sizes = Sizes(**found["sizes"])
    assert sizes.states == found["delta_lsh"]["buckets"][1]
    goal = Goal(epsilon=0.2, delta=0.05, gamma=0.9)
    assert found["bound"] == asdict(bucket_bound(sizes, goal))
    assert found["allowed_diameter"] == bucket_diameter(goal, found["lipschitz"])
    assert found["delta_lsh"]["diameter"] == found["allowed_diameter"]
    assert found["delta_lsh"]["probability"] == 1.0
    assert found["practice"]["functions"] == 4


def test_wide_buckets_are_a_question_of_the_diameter_and_of_the_encoder() -> None:
    text = answer(*LINE, "--diameter", "0.3", "--set", "functions=16")
    assert "functions 16" in text
    assert re.search(
        r"^delta_LSH  0\.\d\d \[0\.\d\d to 0\.\d\d\]: \d+ of 20", text, flags=re.MULTILINE
    )
    assert "none for this diameter: the theory allows" in text
    assert numbers(text, "for a known (b, a)")[0] == "39"
    text = answer(*LINE, "--lipschitz", "0.01", "--set", "grid=20")
    assert "guarantee  with probability 95.00 %" in text
    assert "a grid is not random" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*LINE, "--agent", "dqn"], "dqn has no buckets; use --agent bucket-qrmax."),
        ([*LINE, "--set", "gamma=0.5"], "--set gamma=... is --gamma here."),
        ([*LINE, "--set", "function=5"], "did you mean 'functions'?"),
        ([*LINE, "--partitions", "0"], "--partitions is 0"),
        ([*MAP3, "--diameter", "1"], "--diameter is for continuous positions"),
        (["plan", "smoke", "--samples", "10"], "--samples is for problems, not for studies."),
    ],
)
def test_options_of_buckets_are_for_buckets(words: list[str], message: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_guide_shows_what_is_printed_of_buckets() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    [command] = re.findall(r"^    \$ qrmax (plan continuous.*)$", guide, flags=re.MULTILINE)
    printed = answer(*command.split()).splitlines()
    shown = ("buckets ", "diameter ", "delta_LSH ", "guarantee ")
    lines = [f"    {line}" for line in printed if line.startswith(shown)]
    assert "\n".join(lines) in guide


def test_a_plan_leaves_out_thresholds_that_are_not_given(
    quickly: Callable[..., Done], tmp_path: Path
) -> None:
    text = GOOD + 'stop = { rule = "reaches", success = 0.9 }\n'
    done = quickly("plan", str(write_tiny(tmp_path, text)), cwd=tmp_path)
    assert "reaches (in_a_row 3, success 0.9, episodes 100)" in " ".join(done.stdout.split())
