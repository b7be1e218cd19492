"""The command line: what it prints, its exit codes, and its manners in a process of its own."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

import qrmax
from command_line import GOOD_MAP, GOOD_TASK, QRMAX, run
from qrmax.machines.task_files import task_names

VERBS = (
    ["list"],
    ["show"],
    ["show", "map"],
    ["show", "task"],
    ["check"],
    ["convert"],
    ["solve"],
    ["run"],
    ["plan"],
    ["doctor"],
)


def answer(*arguments: str, cwd: Path | None = None) -> str:
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_is_quick() -> None:
    def seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    costs = []
    for _ in range(5):
        before = seconds()
        assert "Usage: qrmax" in answer("--help")
        costs.append(seconds() - before)
    assert min(costs) < 0.3


@pytest.mark.parametrize("verb", [[], *VERBS, ["completion"]], ids=" ".join)
def test_every_help_ends_with_an_example(verb: list[str]) -> None:
    for flag in ("--help", "-h"):
        last = answer(*verb, flag).rstrip().split("\n\n")[-1]
        assert re.match(r"\s*Examples?:\s.*qrmax " + " ".join(verb), last)


@pytest.mark.parametrize("verb", ["solve", "run", "plan", "show task", "check", "convert"])
def test_the_help_says_which_formulas_a_task_can_be(verb: str) -> None:
    words = " ".join(answer(*verb.split(), "--help").split())
    for word in ("ldlf: <true*;coffee>tt", ".ltlf", ".ldlf", ".ppltl"):
        assert word in words


def test_the_version_is_that_of_the_library() -> None:
    assert answer("--version") == f"qrmax, version {qrmax.__version__}\n"


def test_list_shows_worlds_maps_tasks_agents_and_studies() -> None:
    lines = answer("list").split("\n")
    assert lines[0].startswith("office ")
    assert "office/MAP/TASK; maps map0, map1," in lines[1]
    assert "map1   12 x 9    2,7" in lines
    assert any(re.match(r"exp5 +9 states  Visit A", line) for line in lines)
    assert "map1" not in answer("list", "tasks")
    names = json.loads(answer("list", "--json"))
    assert [*names] == ["worlds", "maps", "other_maps", "tasks", "agents", "studies"]
    assert "office/map1/exp5" in names["worlds"]
    assert names["maps"] == ["map0", "map1", "map2", "map3", "map4"]
    assert [*json.loads(answer("list", "tasks", "--json"))] == ["tasks"]


def test_tasks_are_listed_by_the_names_that_are_to_be_given() -> None:
    listed = [line.split()[0] for line in answer("list", "tasks").splitlines()]
    assert listed == task_names()
    assert "continuous/ab" in listed


def test_the_maps_of_other_worlds_are_listed_apart_from_those_of_the_office() -> None:
    offices, others = answer("list", "maps").split("\n\n")
    assert offices.startswith("map ")
    assert others.startswith("map of the world ")
    assert "frozen-lake" not in offices
    assert "frozen-lake       10 x 10    5,0\n" in others
    names = json.loads(answer("list", "maps", "--json"))
    assert names["other_maps"] == ["bottleneck", "corridor", "frozen-lake", "line"]
    assert [*names] == ["maps", "other_maps"]


def test_the_worlds_of_others_have_names_and_a_size() -> None:
    assert "  warehouse/deliver\n" in answer("list", "worlds")
    assert "  size=5, slip=0.1, max_episode_steps=1000\n" in answer("list", "worlds")
    small = json.loads(answer("solve", "warehouse/deliver", "--size", "3", "--json"))
    assert (small["states"], small["task_states"]) == (9, 3)
    usual = json.loads(answer("solve", "warehouse/deliver", "--json"))
    assert usual["states"] == 25
    assert usual["start_value"] == pytest.approx(
        qrmax.solve(qrmax.make("warehouse/deliver")).start_value
    )
    refused = run("solve", "office/map1/exp1", "--size", "3")
    assert refused.returncode == 2
    assert "--size is for river-swim and warehouse worlds." in refused.stderr


def test_show_map_draws_the_start_and_explains_the_tiles() -> None:
    text = answer("show", "map", "map1")
    assert text.split("\n")[14] == ". A @ . * . . * . . D ."
    assert "12 columns x 9 rows" in text
    assert "2,7" in text
    facts = json.loads(answer("show", "map", "map4", "--json"))
    assert (facts["columns"], facts["rows"], facts["start"]) == (15, 15, [2, 7])
    assert {"name", "slips", "propositions", "picture"} < {*facts}
    assert "good_coffee" in facts["propositions"]


def test_a_generated_problem_is_listed_shown_and_solved() -> None:
    listed = answer("list", "worlds")
    assert "random-office/SEED; any whole number is a seed, such as random-office/1099" in listed
    assert "width=drawn from the seed, height=drawn from the seed" in listed
    assert "random-mdp/1000" in json.loads(answer("list", "worlds", "--json"))["worlds"]
    problem = qrmax.make("random-office/3")
    shown = answer("show", "map", "random-office/3")
    assert f"{problem.world.width} columns x {problem.world.height} rows" in shown
    assert problem.machine.description in answer("show", "task", "random-office/3")
    solved = json.loads(answer("solve", "random-office/3", "--width", "5", "--json"))
    assert solved["states"] == 5 * problem.world.height
    refused = run("show", "map", "random-mdp/3")
    assert (refused.returncode, "has no map to show" in refused.stderr) == (2, True)


def test_show_map_draws_a_png_file(tmp_path: Path) -> None:
    done = run("show", "map", "map1", "-o", "map.png", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in tmp_path.iterdir()] == ["map.png"]


def test_show_task_is_a_table_or_json() -> None:
    assert re.search(r"has_coffee +office +delivered +1\n", answer("show", "task", "exp1"))
    facts = json.loads(answer("show", "task", "map4/exp6", "--json"))
    assert facts["success"] == ["delivered"]
    assert {"from", "when", "to", "reward", "probability"} == {*facts["edges"][0]}
    assert max(edge["reward"] for edge in facts["edges"]) == 1000.0


def test_solving_says_by_how_much_it_can_be_off_up_to_a_discount_of_099999() -> None:
    shown = json.loads(answer("solve", "river-swim/patrol", "--gamma", "0.99999", "--json"))
    assert 0.0 < shown["start_value_error_bound"] < 1e-3 < 7000 < shown["start_value"]
    shown = json.loads(answer("solve", "office/map1/exp1", "--json"))
    assert 0.0 < shown["success_error_bound"] < 1e-10
    assert 0.0 < shown["mean_length_error_bound"] < 1e-6
    text = answer("solve", "office/map1/exp1")
    assert re.search(r"error bound +\d\.\de-1\d  on the start value", text)


def test_solve_prints_the_optimum_for_people_and_programs() -> None:
    result = json.loads(answer("solve", "office/map1/exp1", "--json"))
    assert result["start_value"] == pytest.approx(0.0879463, abs=1e-7)
    assert result["success"] == pytest.approx(0.6687, abs=1e-4)
    assert result["mean_length"] == pytest.approx(21.10, abs=0.01)
    assert result["nominal_length"] == 15
    assert (result["states"], result["task_states"]) == (108, 3)
    assert 0 < result["seconds"] < 60
    text = answer("solve", "office/map1/exp1")
    assert re.search(r"start value +0\.0879463", text)
    assert re.search(r"success +66\.87 % +within 1000 steps", text)
    assert re.search(r"nominal length +15", text)


def test_solve_takes_the_options_of_make(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(GOOD_MAP)
    own = json.loads(
        answer("solve", "--map", "mine.txt", "--task", "exp1", "--slip", "0", "--gamma", "0.5",
               "--max-episode-steps", "none", "--json", cwd=tmp_path)
    )  # fmt: skip
    assert own["problem"] == "office/mine/exp1"
    assert own["start_value"] == pytest.approx(0.5)  # two steps right; the second one pays
    assert (own["success"], own["mean_length"], own["nominal_length"]) == (1.0, 2.0, 2)
    assert own["max_episode_steps"] is None
    cut = ["solve", "--map", "mine.txt", "--task", "exp1", "--max-episode-steps", "1", "--json"]
    cut_short = json.loads(answer(*cut, cwd=tmp_path))
    assert (cut_short["success"], cut_short["mean_length"]) == (0.0, None)


def test_doctor_finds_this_installation_healthy() -> None:
    report = json.loads(answer("doctor", "--json"))
    assert report["healthy"] is True
    assert report["checks"].keys() == {
        "data",
        "worlds",
        "planner",
        "gymnasium worlds",
        "learner",
        "sweep",
        "installed agents",
    }
    assert all(outcome.startswith("ok") for outcome in report["checks"].values())
    assert {"qrmax", "python", "numpy", "numba", "gymnasium", "click"} < {*report}
    assert answer("doctor").endswith("everything works\n")


SOLVE = ("solve", "office/map1/exp1")


def test_max_episode_steps_none_is_no_limit() -> None:
    result = json.loads(answer(*SOLVE, "--max-episode-steps", "none", "--json"))
    assert result["max_episode_steps"] is None
    assert result["success"] == pytest.approx(0.6687, abs=1e-3)


def test_a_proposition_that_the_map_lacks_is_a_warning_and_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "tea.toml").write_text(GOOD_TASK.replace("coffee", "tea"))
    done = run("solve", "--map", "map1", "--task", "tea.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0
    warnings = [line for line in done.stderr.split("\n") if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "names 'tea', which 'office/map1/tea' does not have" in warnings[0]
    found = json.loads(done.stdout)
    assert found["start_value"] == 0.0
    assert found["success"] is None  # the task has no state of success


def test_a_reader_that_leaves_early_sees_no_traceback() -> None:
    for command in ("list", "list --json", "show map map4"):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; '{QRMAX}' {command} | head -1"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.count("\n") == 1
        assert done.stderr == ""


def test_a_reader_that_has_left_already_sees_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [QRMAX, "list"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writer)
    assert done.stderr == ""


def test_a_full_disk_is_one_message_and_no_traceback() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [QRMAX, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode != 0
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_completion_script_is_valid_and_completes_problems() -> None:
    script = answer("completion", "bash")
    checked = subprocess.run(
        ["bash", "-n"], input=script, capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "_QRMAX_COMPLETE" in script
    for shell in ("zsh", "fish"):
        assert "qrmax" in answer("completion", shell)
    completed = run(
        _QRMAX_COMPLETE="bash_complete", COMP_WORDS="qrmax solve office/map3/", COMP_CWORD="2"
    )
    names = [line.removeprefix("plain,") for line in completed.stdout.split()]
    assert names == [f"office/map3/exp{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("qrmax solve office/map3/e", "plain,office/map3/exp5"),
        ("qrmax solve --map m", "plain,map1"),
        ("qrmax show map m", "plain,map4"),
        ("qrmax show task e", "plain,exp5"),
        ("qrmax show map my.t", "file,my.t"),
        ("qrmax so", "plain,solve"),
        ("qrmax solve random-o", "plain,random-office/0"),
        ("qrmax solve random-office/109", "plain,random-office/1099"),
    ],
)
def test_the_shell_completes_names_and_files(words: str, completed: str) -> None:
    place = str(len(words.split()) - 1)
    done = run(_QRMAX_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert completed in done.stdout.split("\n")


def test_a_task_without_an_end_is_not_called_a_failure(tmp_path: Path) -> None:
    (tmp_path / "patrol.toml").write_text(
        'initial = "to_A"\nedges = [\n'
        '  { from = "to_A", when = "A", to = "to_B" },\n'
        '  { from = "to_B", when = "B", to = "to_A", reward = 1.0 },\n]\n'
    )
    shown = answer("solve", "office/map1", "--task", "patrol.toml", cwd=tmp_path)
    assert "success      the task has no success state\n" in shown
    assert "length" not in shown.replace("any length", "")


def test_the_best_moves_are_shown_on_the_map_for_each_stage(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\n\n. c . O\n")
    shown = answer(
        "solve", "--map", "my.txt", "--task", "exp1", "--slip", "0", "--show", cwd=tmp_path
    )
    assert re.search(r"^task state start +task state has_coffee$", shown, re.MULTILINE)
    assert re.search(r"^next: coffee -> has_coffee +next: office -> del", shown, re.MULTILINE)
    # at the coffee, bumping into the border reads it
    assert re.search(r"^\|@> c\^  < O<\| +\|@> c>  > O\^\|$", shown, re.MULTILINE)
    assert "task state delivered" not in shown


def test_a_task_done_at_the_start_takes_no_steps(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\n\nc . O\n")
    (tmp_path / "coffee.toml").write_text(GOOD_TASK + 'success = ["t"]\n')
    shown = answer("solve", "--map", "my.txt", "--task", "coffee.toml", cwd=tmp_path)
    assert "success         100.00 %" in shown
    assert "nominal length  0 steps, without slips" in shown


def test_a_task_with_chance_in_it_is_shown_and_solved(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\n\n. c\n")
    edge = '{ from = "start", when = "coffee", to = "got", reward = 1, probability = 0.8 }'
    (tmp_path / "try.toml").write_text(f'initial = "start"\nsuccess = ["got"]\nedges = [{edge}]\n')
    shown = answer("show", "task", "try.toml", cwd=tmp_path)
    assert re.search(r"reward  probability\n.*\nstart +coffee +got +1 +0\.8\n", shown)
    facts = json.loads(answer("show", "task", "try.toml", "--json", cwd=tmp_path))
    assert facts["edges"][0]["probability"] == 0.8
    solve = ["solve", "--map", "my.txt", "--task", "try.toml", "--slip", "0", "--json"]
    result = json.loads(answer(*solve, cwd=tmp_path))
    assert result["start_value"] == pytest.approx(0.8 / (1 - 0.9 * 0.2))
    assert result["mean_length"] == pytest.approx(1.25)
