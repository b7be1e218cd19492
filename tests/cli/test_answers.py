"""What the command line answers: to words that are no command, and in its own words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from command_line import Done, run_at_a_terminal
from qrmax.cli.main import cli
from qrmax.cli.output import print_table
from qrmax.cli.phrasing import in_options
from qrmax.cli.verbs import TRIED
from qrmax.worlds.catalog import worlds_with
from qrmax.worlds.world_registry import worlds


def answer_to(*arguments: str) -> str:
    """The error of a command that there is not."""
    with pytest.raises(click.UsageError) as caught:
        cli.main([*arguments], standalone_mode=False)
    assert caught.value.exit_code == 2
    return caught.value.format_message()


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("train", "qrmax run office/map1/exp5"),
        ("watch", "qrmax run office/map1/exp5 --show"),
        ("evaluate", "qrmax solve "),
        ("chart", "qrmax curves "),
        ("graph", "qrmax plot "),
        ("save", "qrmax run office/map1/exp5 --save"),
        ("agents", "qrmax list agents"),
        ("Train", "qrmax run"),
        ("trian", "qrmax run"),  # misspelt, too
    ],
)
def test_a_word_that_people_try_is_answered_with_what_to_type(word: str, command: str) -> None:
    assert answer_to(word).startswith(f"No such command {word!r}; ")
    assert command in answer_to(word)


def test_a_misspelt_command_suggests_the_nearest() -> None:
    assert "did you mean 'solve'?" in answer_to("sovle")
    assert "did you mean 'sweep'?" in answer_to("sweeep")
    assert answer_to("xyzzy") == "No such command 'xyzzy'; all commands: qrmax --help"


def test_a_misspelt_option_suggests_the_nearest() -> None:
    assert "--seed" in answer_to("run", "--sed", "3")


def test_every_answer_is_a_command_that_exists() -> None:
    for word, hint in TRIED.items():
        assert word not in cli.commands
        for verb in re.findall(r"qrmax (\w+)", hint):
            assert verb in cli.commands


def test_an_unknown_command_ends_with_exit_code_2(quickly: Callable[..., Done]) -> None:
    done = quickly("train", "office/map1/exp1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "to train an agent: qrmax run" in done.stderr


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("max_steps is 0; allowed: ...", "--max-steps is 0; allowed: ..."),
        ("'office/map1' names no task: or task=...", "'office/map1' names no task: or --task"),
        ("give horizon=150", "give --horizon 150"),
        ("t_task is 1: give t_task=20, say", "t_task is 1: give --set t_task=20, say"),
        ("the run took 5, and max_steps is 4", "the run took 5, and --max-steps is 4"),
        ("the task has a step", "the task has a step"),
        ("unknown key 'max_steps'", "unknown key 'max_steps'"),
        ("alpha is 2.0; allowed: ...", "alpha is 2.0; allowed: ..."),  # of which of the two?
        ("the learning rate is --set alpha=0.1", "the learning rate is --set alpha=0.1"),
    ],
)
def test_messages_name_options_in_place_of_python_arguments(message: str, shown: str) -> None:
    assert in_options(message, cli.commands["run"]) == shown
    assert in_options(message, None) == message


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (["office/map1"], "error: 'office/map1' names no task"),
        (["office"], "names no map: give the whole name, such as 'office/map0/exp0', or --map"),
        (["river-swim"], "'river-swim/patrol' or 'river-swim/noisy-patrol', or --task"),
        (["continuous/line"], "the whole name, 'continuous/line/ab', or --task"),
        (["warehouse", "--map", "map1"], "'warehouse' has a map already; leave out --map"),
        (["--map", "map1"], "--map is only half of it: give a PROBLEM"),
    ],
)
def test_half_a_problem_is_told_what_to_type(
    problem: list[str], words: str, quickly: Callable[..., Done]
) -> None:
    done = quickly("solve", *problem)
    assert done.returncode == 2
    assert words in done.stderr
    assert "=..." not in done.stderr


def test_every_option_of_every_world_can_be_given_and_names_its_worlds() -> None:
    options = {option.name: option for option in cli.commands["solve"].params}
    for world in worlds():
        for name, default in world.defaults.items():
            option = options[name]
            assert isinstance(option, click.Option)
            text = (option.help or "").lower()
            if len(worlds_with(name)) < len(worlds()):
                assert world.name in text or world.name.partition("/")[0] in text
            shown = ("yes" if default else "no") if isinstance(default, bool) else str(default)
            assert shown in text.partition("[default: ")[2]


def test_the_river_has_its_options_on_the_command_line(quickly: Callable[..., Done]) -> None:
    usual = quickly("solve", "river-swim/patrol").stdout
    other = quickly("solve", "river-swim/patrol", "--right", "0.7", "--back", "0.2").stdout
    assert usual.splitlines()[2] != other.splitlines()[2]
    reached = quickly("solve", "river-swim/patrol", "--labels", "reached").stdout
    assert "6 x 2 task states" in reached
    refused = quickly("run", "frozen-lake/ab", "--right", "1").stderr
    assert "--right is for river-swim worlds" in refused
    assert "error: --back is 2.0" in quickly("solve", "river-swim/patrol", "--back", "2").stderr


def test_help_never_ends_a_line_within_a_name() -> None:
    shown = run_at_a_terminal("run", "--help")
    assert not re.search(r"\w-$", shown, re.MULTILINE)
    assert "bucket-qrmax-rm" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_messages_fit_the_terminal(quickly: Callable[..., Done]) -> None:
    shown = run_at_a_terminal("run", "office/map1/exp1", "--agent", "dqn")
    assert max(map(len, shown.splitlines())) <= 80
    assert "\n  " in shown  # the rest is indented
    piped = quickly("run", "office/map1/exp1", "--agent", "dqn").stderr
    assert piped.count("\n") == 1


def test_list_at_a_terminal_fits_a_screen_and_says_what_to_type() -> None:
    shown = run_at_a_terminal("list", NO_COLOR="1")
    lines = shown.splitlines()
    assert len(lines) <= 23  # and the prompt
    assert max(map(len, lines)) <= 80
    for words in (
        "79 problems",
        "49 agents",
        "bucket-qrmax[-rm]",
        "8 *-published",
        "paper/{baselines",
        "table4",
        "qrmax run ",
    ):
        assert words in " ".join(shown.split())
    assert "\x1b" not in shown
    assert "\x1b[1m" in run_at_a_terminal("list")


def test_lists_break_no_words_at_a_terminal(quickly: Callable[..., Done]) -> None:
    shown = run_at_a_terminal("list", "agents", columns=60, NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= 60
    assert {*shown.split()} == {*quickly("list", "agents").stdout.split()}


def test_what_a_check_finds_fits_the_terminal(tmp_path: Path) -> None:
    edge = '{ from = "s", when = "coffeee", to = "t", reward = 1.0 }'
    (tmp_path / "odd.toml").write_text(f'initial = "s"\nsuccess = ["t"]\nedges = [{edge}]\n')
    shown = run_at_a_terminal("check", "odd.toml", cwd=tmp_path)
    assert max(map(len, shown.splitlines())) <= 80
    assert "coffee, decoration, " in " ".join(shown.split())


def test_columns_that_do_not_fit_the_terminal_follow_below(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("qrmax.cli.output.terminal_width", lambda: 20)
    print_table(("problem", "qrmax", "rmax"), [("map1", "1", "2")])
    assert capsys.readouterr().out == (
        "problem  qrmax  rmax\n-------  -----  ----\nmap1         1     2\n"
    )
    print_table(("problem", "qrmax", "rmax-rm"), [("map1", "1", "2")])
    assert capsys.readouterr().out.split("\n\n")[1].startswith("problem  rmax-rm\n")
