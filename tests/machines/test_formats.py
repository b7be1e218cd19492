"""Every format: what is written reads back, and whatever is read is a task or an error of ours."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_machines import machines
from qrmax.errors import ParameterError, QRMaxError, TaskError, UnknownNameError
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import (
    MAX_CHARACTERS,
    SUFFIXES,
    load_task,
    read_task,
    save_task,
    task_names,
    write_task,
)
from qrmax.source import Source

EXACT = (".toml", ".json", ".dot", ".gv", ".mmd", ".mermaid")
TORO_ICARTE = (
    "0 # initial state\n[2] # terminal state\n"
    "(0,0,'!f&!n',ConstantRewardFunction(0))\n(0,1,'f&!n',ConstantRewardFunction(0))\n"
    "(1,1,'!g&!n',ConstantRewardFunction(0))\n(1,2,'g&!n',ConstantRewardFunction(1))\n"
)
RMSPEC = json.dumps(
    {
        "name": "deliver",
        "env_id": "office",
        "version": "1.0",
        "states": ["s0", "s1", "s2"],
        "initial_state": "s0",
        "terminal_states": ["s2"],
        "event_vocabulary": ["coffee", "office"],
        "transitions": [
            {"from_state": "s0", "event": "coffee", "to_state": "s1", "reward": 0.0},
            {"from_state": "s1", "event": "office", "to_state": "s2", "reward": 1.0},
        ],
    },
    indent=1,
)
RISKY = RewardMachine(
    [
        Edge("start", "coffee & !mail", "has coffee", probability=0.8),
        Edge("has coffee", "office", "done", 1.0, probability=0.5),
        Edge("has coffee", "office", "done", 3.0, probability=0.3),
        Edge("has coffee", "mail", "spilt", -0.1),
    ],
    initial="start",
    success=["done"],
    failure=["spilt"],
    undefined="fail",
    consume_initial=False,
    name="risky",
    description='Say "coffee" {and} go.',
)


def read(text: str, suffix: str) -> RewardMachine:
    return read_task(Source(f"mine{suffix}", text))


def samples() -> dict[str, str]:
    """A text in each format."""
    written = {suffix: write_task(load_task("exp3"), suffix) for suffix in (*EXACT, ".hoa")}
    return {**written, ".txt": TORO_ICARTE, "rmspec.json": RMSPEC}


@pytest.mark.parametrize("suffix", EXACT)
@given(machine=machines())
@settings(max_examples=50)
def test_what_is_written_reads_back_equal(suffix: str, machine: RewardMachine) -> None:
    assert read(write_task(machine, suffix), suffix) == machine


@pytest.mark.parametrize("suffix", EXACT)
def test_every_built_in_task_survives_every_format(suffix: str, tmp_path: Path) -> None:
    for name in task_names():
        task = load_task(name)
        save_task(task, tmp_path / f"saved{suffix}")
        assert load_task(tmp_path / f"saved{suffix}") == task


@pytest.mark.parametrize("suffix", EXACT)
def test_chance_settings_and_odd_names_are_carried(suffix: str) -> None:
    assert read(write_task(RISKY, suffix), suffix) == RISKY


def test_rewards_are_kept_to_the_last_digit() -> None:
    for reward in (0.1 + 0.2, -5e-324, 1.7976931348623157e308, 1e22, -0.0):
        task = RewardMachine([Edge("s", "a", "t", reward)], initial="s")
        for suffix in EXACT:
            again = read(write_task(task, suffix), suffix)
            assert again.edges[0].reward == reward


@given(machines(random=False))
def test_a_machine_read_from_hoa_has_the_same_states_and_ends(machine: RewardMachine) -> None:
    again = read(write_task(machine, ".hoa"), ".hoa")
    assert again.states == machine.states
    assert (again.initial, again.success) == (machine.initial, machine.success)
    assert (again.failure, again.consume_initial) == (machine.failure, machine.consume_initial)
    assert (again.name, again.description) == (machine.name, machine.description)
    labels = [frozenset(names) for names in ((), "a", "b", "c", "ab", "bc", "abc", ("x_1",))]
    for state in machine.states:
        for label in labels:
            assert again.step(state, label) == machine.step(state, label)


@pytest.mark.parametrize("suffix", [*SUFFIXES, "rmspec.json"])
@given(data=st.data())
@settings(max_examples=30)
def test_any_text_is_a_task_or_an_error_that_names_the_file(
    suffix: str, data: st.DataObject
) -> None:
    good = samples().get(suffix, samples()[".dot"])
    words = [*re.findall(r"\w+|\s+|[^\w\s]", good), "99999999999", "\x00", "é", '"', "]"]
    pieces = st.sampled_from(words)
    text = data.draw(st.text() | st.lists(pieces, max_size=60).map("".join) | damaged(good, pieces))
    message = refusal(text, suffix)
    assert message is None or (f"mine{suffix}" in message and len(message) < 2000)


def refusal(text: str, suffix: str) -> str | None:
    """What is said against a text, if anything."""
    try:
        read(text, suffix)
    except QRMaxError as error:
        return str(error)
    return None


@st.composite
def damaged(draw: st.DrawFn, good: str, pieces: st.SearchStrategy[str]) -> str:
    """A good text with a part of it replaced."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, min(len(good), start + 20)))
    return good[:start] + "".join(draw(st.lists(pieces, max_size=3))) + good[end:]


DEEP = 50_000


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", "[" * DEEP),
        (".json", '{"a":' * DEEP),
        (".dot", "digraph {" + "{" * DEEP),
        (".dot", "digraph { a [" + "x=y," * DEEP),
        (".dot", 'digraph { "' + "\\\\" * DEEP),
        (".dot", "/*" * DEEP),
        (".mmd", "stateDiagram-v2\n" + "a-->" * DEEP),
        (".mmd", "stateDiagram-v2\nclass " + "a," * DEEP),
        (".mmd", "---\n" * DEEP),
        (".hoa", "HOA: v1 " + "/*" * DEEP),
        (".hoa", "HOA: v1 AP: 0 Acceptance: 1 Inf(0) --BODY-- State: 0 [" + "(" * DEEP),
        (".txt", "0\n[" + "1," * DEEP),
        (".txt", "0\n[1]\n(0,1,'" + "a&" * DEEP + "',ConstantRewardFunction(1))"),
        (".txt", "0\n[1]\n(0,1,'a',ConstantRewardFunction(" + "1" * DEEP + "))"),
    ],
)
def test_long_and_deep_texts_are_refused_in_no_time(suffix: str, text: str) -> None:
    before = time.process_time()
    with pytest.raises(QRMaxError) as caught:
        read(text, suffix)
    assert time.process_time() - before < 5.0
    assert len(str(caught.value)) < 2000


def test_aliases_of_aliases_of_hoa_do_not_fill_the_memory() -> None:
    aliases = [f"Alias: @a{i + 1} @a{i} & @a{i}" for i in range(60)]
    text = "\n".join(
        ['HOA: v1 States: 1 Start: 0 AP: 1 "p"', "Alias: @a0 0", *aliases, "Acceptance: 1 Inf(0)"]
    )
    with pytest.raises(TaskError, match=r"too long|more than"):
        read(text, ".hoa")


def test_a_text_longer_than_allowed_is_refused() -> None:
    with pytest.raises(TaskError, match="at most"):
        read("#" * (MAX_CHARACTERS + 1), ".toml")


def test_an_unknown_format_says_which_are_known(tmp_path: Path) -> None:
    task = load_task("exp1")
    with pytest.raises(UnknownNameError, match=r"unknown format '\.yaml'"):
        save_task(task, tmp_path / "task.yaml")
    with pytest.raises(UnknownNameError, match=r"\.txt files can only be read"):
        save_task(task, tmp_path / "task.txt")
    (tmp_path / "task.yaml").write_text("initial: s")
    with pytest.raises(UnknownNameError, match=r"known: .*\.toml"):
        load_task(tmp_path / "task.yaml")
    assert [*tmp_path.iterdir()] == [tmp_path / "task.yaml"]


def test_letters_and_compat_are_for_one_format_only() -> None:
    for options in ({"compat": True}, {"letters": {}}):
        with pytest.raises(ParameterError, match=r"are for \.txt files"):
            load_task("exp1", **options)  # type: ignore[arg-type]


def test_one_edge_may_pay_this_or_that() -> None:
    text = (
        'initial = "s"\nedges = [{ from = "s", when = "a", to = "t", '
        "reward = [[1.0, 0.5], [3.0, 0.25]] }]\n"
    )
    task = read(text, ".toml")
    assert task.edges == (
        Edge("s", "a", "t", 1.0, probability=0.5),
        Edge("s", "a", "t", 3.0, probability=0.25),
    )
    assert "reward = [[1.0, 0.5], [3.0, 0.25]] }" in write_task(task, ".toml")
    assert read(write_task(task, ".toml"), ".toml").edges == task.edges


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        ("[]", "sum to 0; allowed: above 0, at most 1"),
        ("[1.0, 0.5]", "1.0 is not a pair [reward, probability]"),
        ("[[1.0]]", "[1.0] is not a pair"),
        ("[[1.0, true]]", "[1.0, True] is not a pair"),
        ("[[1.0, 0.6], [2.0, 0.6]]", "sum to 1.2"),
        ("[[1.0, nan]]", "sum to nan"),
        ("[[1.0, 1.0], [2.0, 0.0]]", "edges[0]: the probability of"),
        ("[[1.0, 0.5]], probability = 0.5", "leave out edges[0].probability"),
    ],
)
def test_a_bad_list_of_rewards_is_explained(reward: str, words: str) -> None:
    text = f'initial = "s"\nedges = [{{ from = "s", when = "a", to = "t", reward = {reward} }}]'
    with pytest.raises(TaskError) as caught:
        read(text, ".toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("mine.toml, edges[0]: ")


@pytest.mark.parametrize(
    ("suffix", "text", "words"),
    [
        (".json", '{"initial": "s",\n "edges": [}', "line 2, column 12: not valid JSON"),
        (".json", '{"initial": "s", "initial": "t"}', "duplicate key 'initial'"),
        (".json", '{"initial": NaN}', "NaN is not a number"),
        (".json", "[1]", "[1] is not a table with the keys initial, edges"),
        (".dot", "graph { a -- b }", "column 1: expected 'digraph', not 'graph'"),
        (".dot", "digraph {\n  a -> b [label=]\n}", "line 2, column 17: expected a name, not ']'"),
        (".dot", "digraph { subgraph x { a } }", "subgraphs are not supported"),
        (".dot", "digraph { a -> b [label=<b>] }", "unexpected '<'"),
        (".dot", "digraph { a -> b }", "an edge of 'a' has no label"),
        (".dot", 'digraph { a -> b [label="x"] }', "no initial state"),
        (".dot", 'digraph {\n e [shape=point] e -> a\n a -> b [label="x, q=1"] }', "line 3"),
        (
            ".dot",
            'digraph { e [shape=point] e -> a; a -> b [label="x / y"] }',
            "'y' of an edge is no",
        ),
        (".dot", "digraph { e [shape=point] e -> a -> b }", "an edge of 'a' has no label"),
        (".mmd", "graph LR\n a --> b", "line 1: expected 'stateDiagram-v2'"),
        (".mmd", "stateDiagram-v2\n a => b", "line 2: unknown statement 'a => b'"),
        (".mmd", "stateDiagram-v2\n [*] --> a\n a --> b : x &", "line 3: guard, column 4"),
        (".mmd", "stateDiagram-v2\n [*] --> a\n [*] --> b", "line 3: needed: exactly one arrow"),
        (".mmd", "stateDiagram-v2\n a --> b : x", "no initial state"),
        (".hoa", "HOA: v1\nAcceptance: 2 Inf(0)&Inf(1)", "expected 'Acceptance: 1 Inf(0)'"),
        (".txt", "0", "line 1: too short"),
        (".txt", "zero\n[2]", "line 1: 'zero' is not the number"),
        (".txt", "0\n2", "line 2: '2' is not a list of terminal states"),
        (".txt", "0\n[2]\n\n(0,1,'f')", "line 4: not an edge"),
        (".txt", "0\n[2]\n(0,1,'(f)',ConstantRewardFunction(0))", "line 3, column 7: the guard"),
        (".txt", "0\n[2]\n(0,1,'f',RewardControl())", "line 3: not an edge"),
        (".txt", "0\n[2]\n(0,2,'f',ConstantRewardFunction(1e999))", "finite numbers"),
    ],
)
def test_a_bad_text_is_refused_with_the_place(suffix: str, text: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        read(text, suffix)
    assert str(caught.value).startswith(f"mine{suffix}")
    assert words in str(caught.value)


def test_a_file_that_is_python_code_is_not_run(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'trap')!r}, 'w')"
    for text in (f"{trap}\n[2]\n", f"0\n{trap}\n", f"0\n[2]\n(0,1,'f',{trap})\n"):
        with pytest.raises(TaskError):
            read(text, ".txt")
    assert not (tmp_path / "trap").exists()


def test_toro_icartes_format_ends_where_no_edge_holds() -> None:
    task = read(TORO_ICARTE, ".txt")
    assert task.propositions == {"coffee", "office", "decoration"}
    assert not task.consume_initial
    assert task.run([{"coffee"}, set(), {"office"}]).rewards == (0.0, 0.0, 1.0)
    assert task.run([{"coffee"}, {"office"}]).success
    fallen = task.run([{"coffee"}, {"decoration"}])
    assert (fallen.failure, fallen.reward) == (True, 0.0)


def test_what_toro_icartes_format_says_of_terminal_states_is_not_used() -> None:
    more = TORO_ICARTE + "(2,0,'f',ConstantRewardFunction(9))\n"
    assert read(more, ".txt") == read(TORO_ICARTE, ".txt")


def test_with_compat_falling_off_beside_an_end_is_paid_as_in_the_original() -> None:
    task = read_task(Source("mine.txt", TORO_ICARTE), compat=True)
    early, late = task.run([{"decoration"}]), task.run([{"coffee"}, {"decoration"}])
    assert (early.failure, early.reward) == (True, 0.0)
    assert (late.success, late.reward) == (True, 1.0)


def test_letters_say_what_a_file_means() -> None:
    source = Source("mine.txt", TORO_ICARTE)
    task = read_task(source, letters={"f": "fish", "g": "goat"})
    assert task.propositions == {"fish", "goat", "n"}
    odd = read_task(source, letters={"f": "true", "g": "a & b"})  # any text in one line
    assert odd.propositions == {"true", "a & b", "n"}
    for letters in ({"ff": "fish"}, {"f": ""}, {"f": 'a "b"'}):
        with pytest.raises(QRMaxError):
            read_task(source, letters=letters)


def test_comments_name_and_describe_a_toro_icarte_file() -> None:
    text = TORO_ICARTE.replace("initial state", "name: t1").replace(
        "terminal state", "description: Coffee to the office."
    )
    task = read(text, ".txt")
    assert (task.name, task.description) == ("t1", "Coffee to the office.")
    assert read(TORO_ICARTE, ".txt").name == "mine"


def test_an_rmspec_is_told_from_a_task_of_ours() -> None:
    task = read(RMSPEC, ".json")
    assert (task.name, task.states) == ("deliver", ("s0", "s1", "s2"))
    assert task.success == {"s2"}
    assert task.run([{"coffee"}, {"mail"}, {"office"}]).rewards == (0.0, 0.0, 1.0)
    leaving = '{"from_state": "s2", "event": "office", "to_state": "s0"}, {"from_state": "s0"'
    data = " ".join(RMSPEC.split()).replace('{ "from_state": "s0"', leaving)
    assert read(data, ".json") == task  # what is said of a terminal state is not used
    for old, new, words in (
        ('"coffee",', '"tea",', "transitions[0].event: 'coffee' is not in event_vocabulary"),
        ('"to_state": "s1"', '"to_state": 1', "transitions[0].to_state: 1 is not text"),
        ('"initial_state": "s0",', "", "the key initial_state is missing"),
        ('"from_state"', '"source"', "unknown key 'transitions[0].source'"),
        ('"reward": 1.0', '"reward": "r1"', "transitions[1].reward: 'r1' is not a number"),
    ):
        assert old in RMSPEC
        with pytest.raises(TaskError) as caught:
            read(RMSPEC.replace(old, new, 1), ".json")
        assert words in str(caught.value)


def test_where_a_format_does_not_say_paid_ends_are_the_good_ones() -> None:
    text = "0\n[1,2]\n(0,1,'f',ConstantRewardFunction({}))\n(0,2,'n',ConstantRewardFunction(0))\n"
    paid, unpaid = read(text.format(1), ".txt"), read(text.format(0), ".txt")
    assert (paid.success, paid.failure) == ({"1"}, {"2", "failed"})
    assert (unpaid.success, unpaid.failure) == ({"1", "2"}, {"failed"})


def test_an_end_that_is_reached_with_and_without_pay_is_a_success_only_where_it_pays() -> None:
    text = "0\n[1]\n(0,1,'n',ConstantRewardFunction(0))\n(0,1,'f',ConstantRewardFunction(1))\n"
    task = read(text, ".txt")
    assert (task.success, task.failure) == ({"1"}, {"1 unpaid", "failed"})
    assert task.run([{"decoration"}]).failure
    assert task.run([{"coffee"}]).success
    spilt = '{"from_state": "s1", "event": "coffee", "to_state": "s2"}, {"from_state": "s0"'
    spec = read(" ".join(RMSPEC.split()).replace('{ "from_state": "s0"', spilt), ".json")
    assert spec.run([{"coffee"}, {"coffee"}]).failure


SPOT = """HOA: v1 /* as a tool writes /* it */ */
States: 3
Start: 1
AP: 2 "a" "b"
acc-name: Buchi
Alias: @x 0 & 1
Acceptance: 1 Inf(0)
properties: deterministic
--BODY--
State: 0 {0}
[t] 0
State: 1
[@x] 0
[!@x & 0] 1
[!0] 2
State: 2 [t] 2
--END--
"""


def test_an_automaton_by_others_pays_for_acceptance() -> None:
    task = read(SPOT.replace("State: 2 [t] 2", "State: 2\n[t] 2"), ".hoa")
    assert (task.initial, task.success, task.failure) == ("1", {"0"}, {"2"})
    assert task.undefined == "stay"
    assert task.run([{"a"}, {"a", "b"}]).rewards == (0.0, 1.0)
    assert task.run([{"b"}]).failure


def test_edges_of_an_automaton_may_have_no_labels_or_share_that_of_their_state() -> None:
    head = 'HOA: v1 Start: 0 AP: 2 "a" "b" Acceptance: 1 Inf(0) --BODY-- '
    implicit = read(head + "State: 0 0 0 1 0 State: 1 {0} 1 1 1 1 --END--", ".hoa")
    labels = [set(), {"a"}, {"b"}, {"a", "b"}]
    assert [implicit.run([label]).success for label in labels] == [False, False, True, False]
    shared = read(head + "State: [0&!1] 0 1 State: 1 {0} --END--", ".hoa")
    assert [shared.run([label]).success for label in labels] == [False, True, False, False]
    assert shared.undefined == "fail"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("State: 0 [0] 1 [t] 0 State: 1 {0}", "state 0 is not deterministic"),
        ("State: 0 [0] 1&0 State: 1 {0}", "alternation is not supported"),
        ("State: 0 [0] 1 {0} State: 1 {0}", "transition-based acceptance is not supported"),
        (
            "State: 0 [7] 1 State: 1 {0}",
            "expected the number of a proposition, or an alias, not '7'",
        ),
        ("State: 0 [0] 5 State: 1 {0}", "no state 5"),
        ("State: 0 [0] 1 State: 0 {0}", "a second state 0"),
        ("State: 0 [0 &] 1 State: 1 {0}", "expected a label (guard, column 4"),
        ("State: 0 {0}", "the initial state '0' is terminal"),
        ("State: 0 [0] 1 State: 1 [t] 0 [0] 1 State: 2 {0}", "state 1 is not deterministic"),
        ("", "no state 0"),
    ],
)
def test_an_automaton_that_is_no_task_is_refused(body: str, words: str) -> None:
    head = 'HOA: v1 Start: 0 AP: 1 "a" Acceptance: 1 Inf(0) --BODY-- '
    with pytest.raises(TaskError) as caught:
        read(f"{head}{body} --END--", ".hoa")
    assert words in str(caught.value)


@pytest.mark.parametrize("suffix", [*EXACT, ".hoa"])
@pytest.mark.parametrize(
    "name", ["--BODY--", "[*]", "State:", "end", "->", "}", '"', "\\", "", "\r\n"]
)
def test_names_that_mean_something_in_a_format_are_only_names(suffix: str, name: str) -> None:
    task = RewardMachine(
        [Edge(name, "a", "t", 1.0)], initial=name, success=["t"], name=name, description=name
    )
    again = read(write_task(task, suffix), suffix)
    assert (again.name, again.description, again.states) == (name, name, (name, "t"))
    assert again.equivalent(task)


def test_hoa_has_no_room_for_chance() -> None:
    with pytest.raises(TaskError, match="risky: HOA has no probabilities"):
        write_task(RISKY, ".hoa")


def test_a_drawing_by_others_is_read_by_its_shapes() -> None:
    text = """strict digraph office { // drawn by hand
      node [shape=circle]; rankdir = LR
      i [shape=none, label=""]; i -> q0
      q0 -> q0 [label="!coffee"]; q0 -> q1 -> q1 [label="coffee / 2"];
      q2 [shape=doublecircle] q1 -> q2 [label="office/-.5"]
    }"""
    task = read(text, ".dot")
    assert (task.name, task.initial, task.success) == ("office", "q0", {"q2"})
    assert task.run([{"coffee"}, {"coffee"}, {"office"}]).rewards == (2.0, 2.0, -0.5)
    mermaid = "stateDiagram-v2\n[*] --> q0\nq0 --> q1 : coffee\nq1: has coffee\nq1 --> [*]\n"
    assert read(mermaid, ".mmd").success == {"has coffee"}
