"""`qrmax check`: what it says, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import run

ODD = (
    'initial = "s"\nsuccess = ["t"]\nedges = [\n'
    '  { from = "s", when = "tea", to = "t" },\n  { from = "lost", when = "mail", to = "t" },\n]\n'
)


def test_a_task_without_mistakes_is_told_so() -> None:
    done = run("check", "exp3")
    assert done.returncode == 0
    assert done.stdout == (
        "overlap: in 'start' both 'coffee' and 'mail' hold where {coffee, mail} is true; "
        "the first wins\nexp3: no mistake found\n"
    )


def test_mistakes_are_told_and_make_the_check_fail(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(ODD)
    done = run("check", "odd.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert "unreachable: no labels lead to 'lost'\n" in done.stdout
    assert "missing: 'tea' is nowhere true; there are: A, B" in done.stdout
    (tmp_path / "my.txt").write_text("start: 0,0\ntiles: t=tea, m=mail\n\nt m\n")
    there = run("check", "odd.toml", "--map", "my.txt", "--json", cwd=tmp_path)
    assert [finding["kind"] for finding in json.loads(there.stdout)["findings"]] == ["unreachable"]


def test_what_an_environment_of_ones_own_makes_true_can_be_named() -> None:
    ours = run("check", "F(red & F goal)", "--propositions", "red, goal")
    assert (ours.returncode, ours.stdout) == (0, "F(red & F goal): no mistake found\n")
    assert "missing: 'goal'" in run("check", "F(red & F goal)", "--propositions", "red").stdout
    on_the_lake = run("check", "F(A & F tea)", "--map", "frozen-lake")
    assert "missing: 'tea' is nowhere true; there are: A, B, C, hole\n" in on_the_lake.stdout


def test_two_tasks_are_compared() -> None:
    differ = run("check", "exp1", "exp3")
    assert differ.returncode == 1
    assert differ.stdout.endswith(
        "the two differ after {coffee}, reading {office}:\n"
        "  exp1  'has_coffee' -> 'delivered', reward 1\n"
        "  exp3  'has_coffee' -> 'has_coffee', reward 0\n"
    )
    facts = json.loads(run("check", "exp1", "exp3", "--json").stdout)
    assert facts["equivalent"] is False
    assert facts["counterexample"] == [["coffee"], ["office"]]


def test_tasks_that_do_the_same_pass(tmp_path: Path) -> None:
    assert run("convert", "exp5", "exp5.hoa", cwd=tmp_path).returncode == 0
    same = run("check", "exp5.hoa", "exp5", "--json", cwd=tmp_path)
    assert same.returncode == 0
    facts = json.loads(same.stdout)
    assert (facts["equivalent"], facts["counterexample"]) == (True, None)
    (tmp_path / "late.toml").write_text(
        'initial = "s"\nconsume_initial = false\nsuccess = ["t"]\n'
        'edges = [{ from = "s", when = "mail", to = "u" }, '
        '{ from = "u", when = "office", to = "t", reward = 1 }]\n'
    )
    late = run("check", "late.toml", "exp2", cwd=tmp_path)
    assert late.returncode == 0
    assert late.stdout.endswith(
        "the two do the same, whatever labels they read\n"
        "only exp2 reads the label of the start state\n"
    )
