"""Task files: the built-in tasks do what the paper says, and every file reads back or explains."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odd_machines import machines
from qrmax.errors import QRMaxError, SourceError, TaskError, UnknownNameError
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import (
    format_task,
    load_task,
    parse_task,
    read_task,
    save_task,
    task_names,
    write_task,
)
from qrmax.source import Source

COFFEE_AND_MAIL = (("coffee", "mail"), ("mail", "coffee"))

# What the paper says: number of states, then each way to succeed and what it pays in the end.
SPECIFICATION = {
    "exp0": (4, {("mail", "coffee", "office"): 1.0}),
    "exp1": (3, {("coffee", "office"): 1.0}),
    "exp2": (3, {("mail", "office"): 1.0}),
    "exp3": (5, {(*both, "office"): 1.0 for both in COFFEE_AND_MAIL}),
    "exp4": (5, {tuple("ABCD"): 1.0}),
    "exp5": (9, {(*"ABCD", *both, "office"): 1.0 for both in COFFEE_AND_MAIL}),
    "exp6": (10, {(*"ABCDE", *both, "office"): 1.0 for both in COFFEE_AND_MAIL}),
    "map4/exp6": (4, {("good_coffee", "office"): 1000.0, ("coffee", "office"): 1.0}),
}
PROPOSITIONS = ("coffee", "good_coffee", "mail", "office", "decoration", *"ABCDE")

GOOD = 'initial = "s"\nsuccess = ["t"]\nedges = [{ from = "s", when = "a", to = "t" }]\n'


def trace(names: Iterable[str]) -> list[set[str]]:
    return [{name} for name in names]


def in_edge(text: str) -> str:
    return f'initial = "s"\nedges = [{{ from = "s", when = "a", to = "s" }}, {{ {text} }}]'


def test_the_built_in_tasks_are_those_of_the_paper_and_of_other_worlds() -> None:
    others = ["continuous/ab", "continuous/abc", "river-swim/noisy-patrol", "river-swim/patrol"]
    others += ["warehouse/deliver", *(f"toro-icarte/t{number}" for number in range(1, 5))]
    assert task_names() == sorted([*SPECIFICATION, *others])


def test_the_tasks_of_the_other_worlds_visit_in_order() -> None:
    for word in ("ab", "abc"):
        task = load_task(f"continuous/{word}")
        run = task.run([{letter} for letter in word.upper()])
        assert run.success
        assert run.rewards == (*[0.0] * (len(word) - 1), 1.0)
        assert not task.run([{letter} for letter in reversed(word.upper())]).success


@pytest.mark.parametrize("name", SPECIFICATION)
def test_a_built_in_task_pays_at_the_end_of_each_way_to_succeed(name: str) -> None:
    n_states, ways = SPECIFICATION[name]
    task = load_task(name)
    assert (task.name, len(task.states)) == (name, n_states)
    assert task.consume_initial
    for way, reward in ways.items():
        run = task.run(trace(way))
        assert run.rewards == (*[0.0] * (len(way) - 1), reward)
        assert run.success
        assert not any(state in task.terminal for state in run.states[:-1])


@pytest.mark.parametrize("name", SPECIFICATION)
def test_in_a_built_in_task_every_other_label_changes_nothing(name: str) -> None:
    _, ways = SPECIFICATION[name]
    task = load_task(name)
    for way in ways:
        for done in range(len(way)):
            wanted = {other[done] for other in ways if other[:done] == way[:done]}
            before = task.run(trace(way[:done])).state
            assert task.step(before, ()) == (before, 0.0)
            for other in {*PROPOSITIONS} - wanted:
                assert task.step(before, {other}) == (before, 0.0), (way[:done], other)


def test_the_states_after_different_histories_are_different() -> None:
    task = load_task("exp3")
    histories = [(), ("coffee",), ("mail",), ("mail", "coffee"), ("mail", "coffee", "office")]
    assert len({task.run(trace(history)).state for history in histories}) == 5
    assert task.run(trace(["coffee", "mail"])).state == task.run(trace(["mail", "coffee"])).state


def test_no_short_trace_but_those_of_the_specification_is_paid() -> None:
    for name, (_, ways) in SPECIFICATION.items():
        task, length = load_task(name), min(map(len, ways))
        for names in product(PROPOSITIONS, repeat=min(length, 3)):
            paid = task.run(trace(names)).reward
            assert paid == ways.get(names, 0.0), (name, names)


@given(machines())
def test_a_saved_task_loads_back_equal(tmp_path_factory: object, task: RewardMachine) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.toml"  # type: ignore[attr-defined]
    save_task(task, path)
    assert load_task(path) == task
    assert load_task(str(path)) == task


@pytest.mark.parametrize("strict", [True, False])
def test_a_strict_task_is_still_strict_when_read_back(strict: bool) -> None:
    task = RewardMachine(
        [Edge("s", "a", "t"), Edge("s", "b & !a", "u")], initial="s", strict=strict
    )
    again = parse_task(Source("any", format_task(task)))
    assert again == task
    assert again.strict is strict


def test_a_probability_is_written_only_where_it_is_below_1() -> None:
    task = RewardMachine([Edge("s", "a", "t", probability=0.8), Edge("t", "a", "s")], initial="s")
    text = format_task(task)
    assert '{ from = "s", when = "a", to = "t", probability = 0.8 },' in text
    assert '{ from = "t", when = "a", to = "s" },' in text
    assert parse_task(Source("any", text.replace("0.8", "1"))).edges[0].probability == 1.0


def test_a_guard_with_brackets_to_the_right_survives_being_written() -> None:
    task = RewardMachine([Edge("s", "a & (b & c)", "t")], initial="s")
    assert parse_task(Source("any", format_task(task))) == task


def test_a_guard_as_long_as_allowed_survives_being_written() -> None:
    task = RewardMachine([Edge("s", "&".join("a" * 5000), "t")], initial="s")
    assert parse_task(Source("any", format_task(task))) == task


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@given(machine=machines(), gamma=st.floats(0.01, 0.99), ends=st.sampled_from(["false", "a & !b"]))
@settings(max_examples=50, deadline=None)
def test_a_shaped_task_is_still_shaped_when_read_back(
    suffix: str, machine: RewardMachine, gamma: float, ends: str
) -> None:
    try:
        shaped = machine.shaped(gamma, world_ends=ends)
    except TaskError:
        assume(False)  # rewards so large that there is no number for what is added to them
    again = read_task(Source(f"any{suffix}", write_task(shaped, suffix)))
    assert again == shaped
    assert again.shaping == shaped.shaping


def test_a_file_may_ask_for_shaping(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD + "shaped = { gamma = 0.5 }")
    plain = parse_task(Source("mine.toml", GOOD))
    assert load_task(tmp_path / "mine.toml") == plain.shaped(0.5)


@pytest.mark.parametrize("suffix", [".dot", ".gv", ".mmd", ".mermaid", ".hoa"])
def test_a_format_that_cannot_say_that_a_task_is_shaped_refuses_it(suffix: str) -> None:
    shaped = load_task("exp1").shaped(0.9)
    with pytest.raises(TaskError, match=r"exp1 \(shaped\): .*TOML or JSON.*shaping\.unshaped"):
        write_task(shaped, suffix)
    assert shaped.shaping is not None
    assert write_task(shaped.shaping.unshaped, suffix)


def test_a_task_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "my_task.toml").write_text(GOOD)
    assert load_task(tmp_path / "my_task.toml").name == "my_task"


def test_a_file_may_use_tables_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    text = 'initial = "s"\r\n[[edges]]\r\nfrom = "s"\r\nwhen = "a"\r\nto = "t"\r\nreward = 2\r\n'
    (tmp_path / "mine.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_task(tmp_path / "mine.toml").step("s", {"a"}) == ("t", 2.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("initial = ", ["not valid TOML", "end of document"]),
        ("[" * 5000, ["not valid TOML"]),
        ("a = " + "[" * 100_000, ["not valid TOML"]),
        ("edges = []", ["key initial is missing"]),
        ('initial = "s"', ["key edges is missing"]),
        (GOOD + 'inital = "s"', ["unknown key 'inital'", "did you mean 'initial'?"]),
        ('initial = 1\n"edges" = []', ["initial: 1 is not text"]),
        ('initial = "s"\nedges = "s"', ["edges: 's' is not a list"]),
        ('initial = "s"\nedges = [1]', ["edges[0]: 1 is not a table"]),
        (GOOD + "strict = 1", ["strict: 1 is not true or false"]),
        (GOOD + 'consume_initial = "no"', ["consume_initial: 'no' is not true or false"]),
        (GOOD + 'failure = "f"', ["failure: 'f' is not a list"]),
        (GOOD + 'failure = ["f", 2]', ["failure: 2 is not a state's name"]),
        (GOOD + 'states = ["s", ["t"]]', ["states: ['t'] is not a state's name"]),
        (GOOD + 'states = ["s"]', ["'t' is used but not among"]),
        (GOOD + 'states = ["s", "t", "s"]', ["'s' is declared twice"]),
        (GOOD + 'failure = ["t"]', ["'t' is both a success and a failure"]),
        (GOOD + 'undefined = "halt"', ["undefined is 'halt'", "'stay', 'fail'"]),
        (GOOD + "shaped = 0.9", ["shaped: 0.9 is not a table"]),
        (GOOD + 'shaped = { world_ends = "a" }', ["the key shaped.gamma is missing"]),
        (GOOD + 'shaped = { gamma = "a" }', ["shaped.gamma: 'a' is not a number"]),
        (GOOD + "shaped = { gamma = 1 }", ["shaped: gamma is 1; allowed: numbers above 0.0, be"]),
        (GOOD + "shaped = { gamma = nan }", ["shaped: gamma is nan; allowed"]),
        (GOOD + "shaped = { gamma = 0.9, world_ends = 1 }", ["shaped.world_ends: 1 is not text"]),
        (GOOD + 'shaped = { gamma = 0.9, world_ends = "&" }', ["shaped: guard, column 1"]),
        (GOOD + "shaped = { gama = 0.9 }", ["did you mean 'shaped.gamma'?"]),
        (in_edge('from = "s", when = "a"'), ["key edges[1].to is missing"]),
        (in_edge('from = "s", when = "a", to = 5'), ["edges[1].to: 5 is not text"]),
        (in_edge('from = "s", when = true, to = "s"'), ["edges[1].when: True is not text"]),
        (
            in_edge('from = "s", wen = "a", to = "s"'),
            ["unknown key 'edges[1].wen'", "did you mean 'edges[1].when'?"],
        ),
        (in_edge('from = "s", when = "a & )", to = "s"'), ["edges[1].when: guard, column 5"]),
        (in_edge('from="s", when="a", to="s", reward=true'), ["edges[1].reward: True is not a nu"]),
        (in_edge('from="s", when="a", to="s", reward="1"'), ["edges[1].reward: '1' is not a num"]),
        (in_edge('from="s", when="a", to="s", reward=nan'), ["edges[1]: ", "finite"]),
        (in_edge('from="s", when="a", to="s", reward=-inf'), ["edges[1]: ", "finite"]),
        (in_edge(f'from="s", when="a", to="s", reward=1{"0" * 400}'), ["edges[1]: "]),
        (in_edge(f'from="s", when="a", to="s", reward=0x{"f" * 5000}'), ["edges[1]: ", "finite"]),
        (in_edge('from="s", when="b", to="s", probability=0'), ["edges[1]: the probability of"]),
        (in_edge('from="s", when="b", to="s", probability=1.5'), ["edges[1]: ", "above 0, at mo"]),
        (in_edge('from="s", when="b", to="s", probability=nan'), ["edges[1]: ", "above 0, at mo"]),
        (
            in_edge('from="s", when="b", to="s", probability=true'),
            ["edges[1].probability: True is not a number"],
        ),
        (
            in_edge('from="s", when="b", to="s", probabilty=0.5'),
            ["did you mean 'edges[1].probability'?"],
        ),
        (
            'initial = "s"\nedges = [\n'
            + '{ from = "s", when = "b", to = "s", probability = 0.6 },\n' * 2
            + "]",
            ["the probabilities of the edges of 's' when 'b' sum to 1.2; allowed: at most 1"],
        ),
        (in_edge(f'from="s", when="a", to="s", reward=1{"0" * 5000}'), ["mine.toml"]),
        (f"initial = 0x{'f' * 5000}\nedges = []", ["initial", "is not text"]),
        (GOOD + "edges = []", ["not valid TOML", "overwrite"]),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_key(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(TaskError) as caught:
        load_task(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    for word in words:
        assert word in message
    assert len(message) < 2000


@given(st.text() | st.lists(st.sampled_from([*GOOD.split(" "), "\n", '"', "]", "="])).map(" ".join))
def test_any_text_is_a_task_or_an_error_of_ours(text: str) -> None:
    with suppress(QRMaxError):
        assert parse_task(Source("any", text)).states


def test_an_unknown_task_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown task 'expp5'\n  did you mean 'exp5'\?"):
        load_task("expp5")


def test_a_missing_file_says_so() -> None:
    with pytest.raises(SourceError, match=r"^nowhere.toml: cannot be read: No such file"):
        load_task("nowhere.toml")


def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(GOOD)
    with pytest.raises(QRMaxError):
        save_task(RewardMachine([], initial="\ud800"), path)  # no UTF-8 for half a character
    assert path.read_text() == GOOD
    assert [*tmp_path.iterdir()] == [path]


def test_a_task_cannot_be_saved_over_a_directory(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("kept")
    with pytest.raises(SourceError, match="folder: cannot be written: Is a directory"):
        save_task(load_task("exp1"), tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "kept"]
