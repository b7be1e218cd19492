"""Studies on the command line: bad ones and sweeps in processes, as people run them.

What only reads is asked of the command within this process, which is quicker.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import qrmax
from command_line import Done, run, run_at_a_terminal
from qrmax.studies.library import study_names
from tiny_study import GOOD, agents, problems, seeds, write_tiny

TEXT = agents('"qrmax", { agent = "q-learning", label = "fast", alpha = 0.5 }')


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and its results in the folder where they go by themselves."""
    place = tmp_path_factory.mktemp("place")
    write_tiny(place, TEXT)
    (place / "reference.csv").write_text("problem,qrmax\noffice/row/fetch,300\n")
    done = run("sweep", "tiny.toml", "--workers", "1", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "results/tiny: 4 runs done\n"
    return place


@pytest.fixture
def copy(place: Path, tmp_path: Path) -> Path:
    """Another one, to be changed."""
    return Path(shutil.copytree(place, tmp_path / "copy"))


# --- bad studies

BAD = {
    "unknown agent": (agents('"qrmx"'), ["agents[0]: unknown agent 'qrmx'"]),
    "misspelt setting": (
        agents('{ agent = "qrmax", t_E = 3 }'),
        ["agents[0].t_E: unknown setting"],
    ),
    "negative count of seeds": (seeds("-3"), ["seeds: the number of seeds is -3"]),
    "no problems": (problems(""), ["problems: is empty"]),
    "an option of the wrong type": (
        problems('{ name = "office/map1/exp1", slip = "much" }'),
        ["problems[0].slip: slip is 'much'"],
    ),
    "a setting of another rule": (
        GOOD + 'stop = { rule = "nominal", within = 0.1 }',
        ["stop.within: unknown setting of nominal"],
    ),
    "checks that can never happen": (
        GOOD + 'stop = { rule = "exact", in_a_row = 7 }',
        ["stop: contradicts max_steps and evaluate_every"],
    ),
    "no such map": (
        problems('{ map = "nowhere.txt", task = "fetch.toml" }'),
        ["problems[0]: nowhere.txt: cannot be read"],
    ),
    "no such reference": (GOOD + 'reference = "x.csv"', ["reference: x.csv: cannot be read"]),
    "several": (
        agents('"qrmx", { agent = "rmax", t_E = 3 }').replace("seeds = 2", "seeds = 0")
        + "max_step = 1\n",
        ["agents[0]: ", "agents[1].t_E: ", "seeds: ", "max_step: "],
    ),
}


@pytest.mark.parametrize(("text", "beginnings"), BAD.values(), ids=list(BAD))
def test_a_bad_study_is_a_message_for_each_mistake_and_nothing_is_created(
    tmp_path: Path, text: str, beginnings: list[str]
) -> None:
    write_tiny(tmp_path, text)
    before = sorted(tmp_path.rglob("*"))
    done = run("sweep", "tiny.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    told = re.findall(r"^(?:error: )?tiny\.toml, (.*)$", done.stderr, re.MULTILINE)
    assert len(told) == len(beginnings)
    for line, beginning in zip(told, beginnings, strict=True):
        assert line.startswith(beginning)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep"], "Missing argument 'STUDY'"),
        (["sweep", "smoek"], "did you mean 'smoke'?"),
        (["sweep", "none.toml"], "none.toml: cannot be read: No such file"),
        (["sweep", "broken.toml"], "broken.toml: not valid TOML"),
        (["sweep", "empty.toml"], "empty.toml: is empty"),
        (["sweep", "tiny.toml", "--protocol", "as-publishd"], "did you mean 'as-published'?"),
        (["sweep", "tiny.toml", "--workers", "0"], "workers is 0"),
        (["sweep", "tiny.toml", "--workers", "many"], "'many' is not a valid integer"),
        (["sweep", "tiny.toml", "--backend", "slurm"], "'slurm' is not one of"),
        (["sweep", "tiny.toml", "--address", "auto"], "address is for the backend 'ray'"),
        (["sweep", "tiny.toml", "--only", "qrmax"], "not of the form KEY=PATTERN"),
        (["sweep", "tiny.toml", "--only", "agnet=qrmax"], "did you mean 'agent'?"),
        (["sweep", "tiny.toml", "--only", "agent=rmax"], "no run of 'tiny' matches"),
        (["sweep", "tiny.toml", "--checkpoint-every", "0"], "--checkpoint-every is 0.0"),
        (["sweep", "tiny.toml", "-o", "tiny.toml"], "is a file"),
        (["sweep", "tiny.toml", "-o", "tiny.toml/x"], "cannot be written: Not a directory"),
        (["plan", "none.toml"], "none.toml: cannot be read: No such file"),
        (["plan", "tiny.toml", "--workers", "-3"], "workers is -3"),
        (["plan", "tiny.toml", "--only", "agent=rmax"], "no run of 'tiny' matches"),
        (["plan", "tiny.toml", "--protocol", "x"], "unknown protocol 'x'"),
        (["plan", "office/map1/exp1", "--protocol", "as-described"], "--protocol is for studies"),
        (["plan", "office/map1/exp1", "-o", "x"], "--output is for studies"),
        (["status"], "Missing argument 'DIR'"),
        (["status", "nowhere"], "nowhere: there is no such folder; `qrmax sweep` makes them"),
        (["status", "."], "has no results of qrmax"),
        (["status", "tiny.toml"], "is a file"),
        (["results", "nowhere"], "nowhere: there is no such folder"),
        (["results", "."], "has no results of qrmax"),
        (["results", ".", "--format", "xls"], "'xls' is not one of"),
        (["results", ".", "-o", "table.xls"], "--format is needed for table.xls"),
        (["results", ".", "-o", "table"], "--format is needed for table"),
        (["table", "nowhere"], "unknown study 'nowhere'"),
        (["table", "."], "has no results of qrmax"),
        (["table", "tiny.toml"], "there are no results of tiny.toml yet"),
        (["table", "smoke", "--protocol", "as-published"], "qrmax sweep smoke --protocol as-pub"),
        (["table", "tiny.toml", "--format", "html"], "'html' is not one of"),
        (["table", "tiny.toml", "-o", "table.html"], "--format is needed for table.html"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_message_exit_code_2_and_nothing_created(
    tmp_path: Path, arguments: list[str], words: str, quickly: Callable[..., Done]
) -> None:
    write_tiny(tmp_path, TEXT)
    (tmp_path / "broken.toml").write_text("problems = ")
    (tmp_path / "empty.toml").write_text("")
    before = sorted(tmp_path.rglob("*"))
    done = quickly(*arguments, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.lower().count("error: ") == 1
    assert words in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


# --- what is asked of a folder


def test_a_second_sweep_has_nothing_to_do(place: Path) -> None:
    done = run("sweep", "tiny.toml", "--json", cwd=place)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "folder": "results/tiny",
        "done": 4,
        "failed": 0,
        "left": 0,
        "given_up": 0,
    }
    assert "4 of 4 runs are complete already" in done.stderr


def test_only_some_runs_are_swept_and_the_rest_is_left(copy: Path) -> None:
    shutil.rmtree(copy / "results")
    done = run(
        *["sweep", "tiny.toml", "--only", "agent=fast", "--only", "seed=1", "--workers", "1"],
        *["--verbose", "-o", "some"],
        cwd=copy,
    )
    assert done.returncode == 0
    assert done.stdout == "some: 1 run done\n"
    assert re.search(r"^fast on office/row/fetch, seed 1: .* steps, ", done.stderr, re.MULTILINE)
    status = json.loads(run("status", "some", "--json", cwd=copy).stdout)
    assert (status["runs"], status["done"], status["left"]) == (4, 1, 3)


def test_status_for_people_is_a_table(place: Path, quickly: Callable[..., Done]) -> None:
    done = quickly("status", "results/tiny", cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^done / failed / left +qrmax +fast$", done.stdout, re.MULTILINE)
    assert re.search(r"^office/row/fetch +2 +2$", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("tiny: 4 of 4 runs done, 0 failed, 0 left\n")


def test_status_for_programs_has_all_there_is(place: Path, quickly: Callable[..., Done]) -> None:
    found = json.loads(quickly("status", "results/tiny", "--json", cwd=place).stdout)
    cells = [
        {
            "problem": "office/row/fetch",
            "label": label,
            "done": 2,
            "failed": 0,
            "left": 0,
            "begun": 0,
            "given_up": 0,
        }
        for label in ("qrmax", "fast")
    ]
    assert found == {
        "study": "tiny",
        "protocol": None,
        "runs": 4,
        "done": 4,
        "failed": 0,
        "left": 0,
        "given_up": 0,
        "damaged": [],
        "others": 0,
        "running": None,
        "cells": cells,
    }


def test_damage_is_told_by_status_and_results_with_exit_code_1(copy: Path) -> None:
    runs = copy / "results" / "tiny" / "runs"
    hurt, gone = sorted(runs.iterdir())[:2]
    (hurt / "run.json").write_text("{")
    shutil.rmtree(gone)
    done = run("status", "results/tiny", cwd=copy)
    assert done.returncode == 1
    assert f"damaged: results/tiny/runs/{hurt.name}: run.json is not the JSON" in done.stderr
    assert "2 of 4 runs done, 0 failed, 2 left" in done.stdout
    done = run("results", "results/tiny", cwd=copy)
    assert done.returncode == 1
    assert f"damaged: results/tiny/runs/{hurt.name}: run.json is not the JSON" in done.stderr
    assert len(done.stdout.splitlines()) == 3
    done = run("sweep", "tiny.toml", "--workers", "1", cwd=copy)
    assert (done.returncode, done.stdout) == (0, "results/tiny: 4 runs done\n")
    assert f"warning: results/tiny/runs/{hurt.name}: run.json is not the JSON" in done.stderr


def test_results_in_every_format_are_the_same_table(
    place: Path, quickly: Callable[..., Done]
) -> None:
    folder = "results/tiny"
    frame = qrmax.results(place / folder)
    csv = quickly("results", folder, cwd=place).stdout
    assert csv == quickly("results", folder, "--format", "csv", cwd=place).stdout
    assert csv.splitlines()[0] == ",".join(frame.columns)
    assert pl.read_csv(io.StringIO(csv))["steps"].equals(frame["steps"])
    rows = json.loads(quickly("results", folder, "--format", "json", cwd=place).stdout)
    assert rows == json.loads(frame.write_json())
    lines = quickly("results", folder, "--format", "md", cwd=place).stdout.splitlines()
    assert lines[0].startswith("| problem | label | seed | status | reached | steps | gap |")
    assert lines[2].startswith("| office/row/fetch | qrmax | 0 | done | ")
    assert len(lines) == 2 + 4


def test_results_at_a_terminal_are_a_summary_of_each_agent_on_each_problem(place: Path) -> None:
    shown = run_at_a_terminal("results", "results/tiny", cwd=place)
    plain = run_at_a_terminal("results", "results/tiny", cwd=place, NO_COLOR="1")
    assert "\x1b[3" in shown  # in colour
    assert "\x1b[3" not in plain
    text = re.sub(r"\x1b\[[\d;]*m", "", plain)
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == [
        "agent",
        "runs",
        "reached",
        "median",
        "mean",
        "success",
        "gap",
    ]
    frame = qrmax.results(place / "results" / "tiny")
    assert len(re.findall(r"^  \S+ +\d+ +\d+ ", text, re.MULTILINE)) == len(
        frame.unique(["problem", "label"])
    )
    assert "checked every 100:" in text
    assert "qrmax results results/tiny --format csv" in text
    csv = run_at_a_terminal("results", "results/tiny", "--format", "csv", cwd=place)
    assert csv.startswith("problem,agent,label,seed,")


def test_a_summary_can_be_asked_for_in_a_pipe_and_not_in_a_file(
    place: Path, quickly: Callable[..., Done]
) -> None:
    done = quickly("results", "results/tiny", "--format", "summary", cwd=place)
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["agent", "runs"])
    refused = quickly("results", "results/tiny", "--format", "summary", "-o", "x.csv", cwd=place)
    assert refused.returncode == 2
    assert "The summary is for terminals" in refused.stderr


def test_results_go_into_a_file_whose_name_says_the_format(
    place: Path, tmp_path: Path, quickly: Callable[..., Done]
) -> None:
    folder = str(place / "results" / "tiny")
    frame = qrmax.results(folder)
    for name in ("x.parquet", "x.csv", "x.json", "x.md"):
        done = quickly("results", folder, "-o", name, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert pl.read_parquet(tmp_path / "x.parquet").equals(frame)
    assert pl.read_csv(tmp_path / "x.csv")["id"].equals(frame["id"])
    assert [row["id"] for row in json.loads((tmp_path / "x.json").read_text())] == [*frame["id"]]
    assert (tmp_path / "x.md").read_text().startswith("| problem |")
    assert (
        quickly("results", folder, "--format", "parquet", "-o", "y", cwd=tmp_path).returncode == 0
    )
    assert pl.read_parquet(tmp_path / "y").equals(frame)
    done = quickly("results", folder, "-o", "none/x.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "none/x.csv: cannot be written" in done.stderr


@pytest.mark.parametrize("asked", ["tiny.toml", "results/tiny"])
def test_a_table_is_of_a_study_or_of_a_folder(
    place: Path, asked: str, quickly: Callable[..., Done]
) -> None:
    done = quickly("table", asked, cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# tiny")
    assert "| row fetch |" in done.stdout
    assert "`qrmax sweep tiny.toml`" in done.stdout


def test_a_table_comes_in_three_formats(
    place: Path, tmp_path: Path, quickly: Callable[..., Done]
) -> None:
    folder = str(place / "results" / "tiny")
    made = {
        kind: quickly("table", folder, "--format", kind).stdout for kind in ("md", "tex", "csv")
    }
    assert r"\begin{tabular}" in made["tex"]
    frame = pl.read_csv(io.StringIO(made["csv"]), comment_prefix="#")
    assert {*frame["problem"]} >= {"office/row/fetch"}
    for kind, text in made.items():
        done = quickly("table", folder, "-o", f"table.{kind}", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        assert (tmp_path / f"table.{kind}").read_text() == text


def test_the_reference_is_beside_our_numbers(copy: Path, quickly: Callable[..., Done]) -> None:
    with (copy / "tiny.toml").open("a") as file:
        file.write('reference = "reference.csv"\n')
    assert "300" not in quickly("table", "results/tiny", cwd=copy).stdout  # swept without it
    assert "300" in quickly("table", "tiny.toml", cwd=copy).stdout


# --- plans and lists


def test_a_plan_says_what_is_done_and_what_is_left(copy: Path) -> None:
    done = run("plan", "tiny.toml", "--workers", "2", cwd=copy)
    assert done.returncode == 0
    assert re.search(r"^runs +4: 4 done, 0 failed, 0 left$", done.stdout, re.MULTILINE)
    assert re.search(r"^time +nothing left to run$", done.stdout, re.MULTILINE)
    assert re.search(r"^results +results/tiny$", done.stdout, re.MULTILINE)
    assert re.search(r"^seeds +0, 1$", done.stdout, re.MULTILINE)
    assert "up to 600 steps, evaluated every 100" in done.stdout
    assert "exact (in_a_row 3, within 0.05)" in done.stdout
    last = qrmax.results(copy / "results" / "tiny")["id"][-1]
    shutil.rmtree(copy / "results" / "tiny" / "runs" / last)
    done = run("plan", "tiny.toml", "--workers", "2", cwd=copy)
    assert re.search(r"^runs +4: 3 done, 0 failed, 1 left$", done.stdout, re.MULTILINE)
    assert re.search(r"^time +about \d:\d\d with 2 workers", done.stdout, re.MULTILINE)


def test_a_plan_for_programs_has_the_figures(place: Path) -> None:
    arguments = ["--only", "agent=qrmax", "--only", "seed=1", "--workers", "3", "--json"]
    done = run("plan", "tiny.toml", *arguments, cwd=place)
    found = json.loads(done.stdout)
    assert found.pop("worker_bytes") > 10e6
    assert found.pop("table_bytes") > 0
    assert found == {
        "study": "tiny",
        "protocol": None,
        "folder": "results/tiny",
        "problems": ["office/row/fetch"],
        "agents": ["qrmax"],
        "seeds": [1],
        "stop": {"office/row/fetch": {"stop": "exact", "in_a_row": 3, "within": 0.05}},
        "training": {
            "max_steps": 600,
            "evaluate_every": 100,
            "stop": "exact",
            "in_a_row": 3,
            "within": 0.05,
        },
        "runs": 1,
        "done": 1,
        "failed": 0,
        "left": 0,
        "given_up": 0,
        "give_up_after": None,
        "agree_within": None,
        "workers": 3,
        "seconds": 0.0,
        "at_most": False,
    }


def test_a_plan_of_what_has_not_begun_is_at_most_and_creates_nothing(tmp_path: Path) -> None:
    write_tiny(tmp_path, TEXT)
    before = sorted(tmp_path.rglob("*"))
    found = json.loads(run("plan", "tiny.toml", "--json", cwd=tmp_path).stdout)
    assert (found["done"], found["left"], found["at_most"]) == (0, 4, True)
    assert found["seconds"] > 0.0
    assert sorted(tmp_path.rglob("*")) == before


def test_studies_are_listed_with_their_titles(quickly: Callable[..., Done]) -> None:
    done = quickly("list", "studies")
    for name in study_names():
        assert re.search(rf"^{name} +\S", done.stdout, re.MULTILINE)
    assert "Table 4: steps to an optimal policy" in done.stdout
    assert "as-described, as-published, exact or stays" in done.stdout
    assert json.loads(quickly("list", "studies", "--json").stdout) == {"studies": study_names()}
