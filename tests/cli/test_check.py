"""`qrmax check`: what it says, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import run

ODD = (
    'initial = "s"\nsuccess = ["t"]\nedges = [\n'
    '  { from = "s", when = "tea", to = "t" },\n  { from = "lost", when = "mail", to = "t" },\n]\n'
)


FIRST_WINS = """
initial = "s"
success = ["t"]
edges = [
  { from = "s", when = "A", to = "t" },
  { from = "s", when = "B", to = "u" },
  { from = "s", when = "C", to = "s" },
  { from = "s", when = "D", to = "t" },
  { from = "s", when = "E", to = "u" },
  { from = "u", when = "coffee", to = "t" },
]
"""
PAID = (
    'name = "pay"\ninitial = "s"\nsuccess = ["t"]\n'
    'edges = [{ from = "s", when = "office", to = "t", reward = 1 }]\n'
)


def test_a_task_without_mistakes_is_told_so() -> None:
    done = run("check", "exp3")
    assert done.returncode == 0
    assert done.stdout == (
        "overlap: in 'start' both 'coffee' and 'mail' hold for {coffee, mail}; "
        "the first one is taken\nexp3: no mistake found\n"
    )


def test_mistakes_are_told_and_make_the_check_fail(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(ODD)
    done = run("check", "odd.toml", cwd=tmp_path)
    assert done.returncode == 1
    assert "unreachable: no labels lead to 'lost'\n" in done.stdout
    assert "missing: 'tea' is never true; there are: A, B" in done.stdout
    (tmp_path / "my.txt").write_text("start: 0,0\ntiles: t=tea, m=mail\n\nt m\n")
    there = run("check", "odd.toml", "--map", "my.txt", "--json", cwd=tmp_path)
    assert json.loads(there.stdout)["findings"] == [
        {"kind": "unreachable", "message": "no labels there lead to 'lost'", "mistake": True}
    ]


def test_a_proposition_of_ones_own_is_told_how_to_be_known() -> None:
    assert "--propositions NAME,..." in run("check", "F tea").stderr
    known = run("check", "F tea", "--propositions", "tea")
    assert known.returncode == 0
    assert known.stderr == ""


def test_mistakes_are_counted_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(ODD)
    assert run("check", "odd.toml", cwd=tmp_path).stdout.endswith("\nodd: 2 mistakes found\n")
    one = run("check", "F cofee").stdout
    assert one.startswith("missing: 'cofee' is never true; there are: A, B")
    assert one.endswith("; did you mean 'coffee'?\nF cofee: 1 mistake found\n")


def test_the_labels_that_count_are_those_of_the_maps() -> None:
    assert run("check", "F(A & B)").returncode == 0
    there = run("check", "F(A & B)", "--map", "map1")
    assert there.returncode == 1
    assert there.stdout == (
        "unreachable: no labels there lead to 'satisfied'\n"
        "dead end: from 'q0' no success can be reached there\n"
        "elsewhere: 'q0' -> 'satisfied' when 'A & B' cannot be taken there\n"
        "F(A & B): 2 mistakes found\n"
    )
    assert run("check", "exp5", "--map", "map1").stdout == "exp5: no mistake found\n"
    together = run("check", "F(coffee & F hole)", "--map", "map1", "--map", "frozen-lake")
    assert together.returncode == 0  # the labels of both
    named = run("check", "F(A & B & red)", "--map", "map1", "--propositions", "red")
    assert named.stdout == "F(A & B & red): no mistake found\n"  # nobody knows what goes together


def test_of_many_overlaps_people_see_a_few_and_programs_all(tmp_path: Path) -> None:
    (tmp_path / "tower.toml").write_text(FIRST_WINS)
    told = run("check", "tower.toml", cwd=tmp_path).stdout.splitlines()
    assert [line.partition(":")[0] for line in told] == [*["overlap"] * 4, "tower"]
    assert told[3:] == ["overlap: and 5 more; --json shows all", "tower: no mistake found"]
    found = json.loads(run("check", "tower.toml", "--json", cwd=tmp_path).stdout)["findings"]
    assert len({finding["message"] for finding in found}) == len(found) == 8  # of 10 pairs
    assert not any(finding["mistake"] for finding in found)


def test_what_an_environment_of_ones_own_makes_true_can_be_named() -> None:
    ours = run("check", "F(red & F goal)", "--propositions", "red, goal")
    assert (ours.returncode, ours.stdout) == (0, "F(red & F goal): no mistake found\n")
    assert "missing: 'goal'" in run("check", "F(red & F goal)", "--propositions", "red").stdout
    on_the_lake = run("check", "F(A & F tea)", "--map", "frozen-lake")
    assert "missing: 'tea' is never true; there are: A, B, C, hole\n" in on_the_lake.stdout


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
    assert facts["consume_initial"] == [True, True]
    assert [
        (does["task"], does["state"], does["outcomes"][0]["state"]) for does in facts["difference"]
    ] == [("exp1", "has_coffee", "delivered"), ("exp3", "has_coffee", "has_coffee")]


def test_tasks_of_the_same_name_are_told_apart_by_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PAID)
    (tmp_path / "b.toml").write_text(PAID.replace("reward = 1", "reward = 2"))
    (tmp_path / "late.toml").write_text(f"consume_initial = false\n{PAID}")
    differ = run("check", "a.toml", "b.toml", cwd=tmp_path).stdout
    assert differ == (
        "a.toml: no mistake found\nthe two differ at the start, reading {office}:\n"
        "  a.toml  's' -> 't', reward 1\n  b.toml  's' -> 't', reward 2\n"
    )
    late = run("check", "a.toml", "late.toml", cwd=tmp_path).stdout
    assert late.endswith("only a.toml reads the label of the start state\n")
    facts = json.loads(run("check", "late.toml", "a.toml", "--json", cwd=tmp_path).stdout)
    assert (facts["task"], facts["other"]) == ("late.toml", "a.toml")
    assert facts["consume_initial"] == [False, True]
    assert (facts["equivalent"], facts["difference"]) == (True, None)


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
        "the two are equivalent\nonly exp2 reads the label of the start state\n"
    )
