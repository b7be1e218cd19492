"""Reward machines: transitions, tables, equivalence."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coffee_task import coffee_task
from qrmax.errors import ParameterError
from qrmax.logic.guards import Guard
from qrmax.machines.edges import Edge, Outcome
from qrmax.machines.machine_table import RANDOM_START
from qrmax.machines.reward_machine import MachineStep, RewardMachine
from random_problems import with_chances

LABELS = [frozenset(c) for size in range(4) for c in combinations("abc", size)]


@st.composite
def machines(draw: st.DrawFn) -> RewardMachine:
    inner, ends = ["q0", "q1", "q2"], ["won", "lost"]
    guards = st.sampled_from(["a", "!a", "a & b", "b | c", "!(a | c)", "true", "false", "c & !b"])
    edges = st.lists(
        st.builds(
            Edge,
            st.sampled_from(inner),
            guards,
            st.sampled_from(inner + ends),
            st.floats(-5, 5),
        ),
        max_size=8,
    )
    drawn = draw(edges)
    if draw(st.booleans()):
        chance = st.floats(0.01, 1.0)
        drawn = with_chances(drawn, [draw(chance) for _ in drawn])
    return RewardMachine(
        drawn,
        initial="q0",
        success=["won"],
        failure=["lost"],
        undefined=draw(st.sampled_from(["stay", "fail"])),
        consume_initial=draw(st.booleans()),
    )


def test_an_edge_moves_and_pays_and_an_unlisted_label_stays_for_nothing() -> None:
    task = coffee_task()
    assert task.step("start", {"coffee"}) == MachineStep("has_coffee", 0.0)
    assert task.step("has_coffee", {"office"}) == MachineStep("done", 1.5)
    assert task.step("start", {"mud", "coffee"}) == MachineStep("dirty", -2.0)
    assert task.step("start", {"office"}) == MachineStep("start", 0.0)
    assert task.step("has_coffee", set()) == MachineStep("has_coffee", 0.0)


def test_terminal_states_stay_and_pay_nothing_even_where_undefined_labels_fail() -> None:
    for undefined in ("stay", "fail"):
        task = coffee_task(undefined=undefined)
        assert task.step("done", {"office"}) == MachineStep("done", 0.0)
        assert task.step("dirty", {"mud"}) == MachineStep("dirty", 0.0)


def test_of_two_edges_that_hold_the_first_wins() -> None:
    one, two = Edge("s", "a", "one", 1), Edge("s", "a | b", "two", 2)
    assert RewardMachine([one, two], initial="s").step("s", {"a"}) == ("one", 1.0)
    assert RewardMachine([two, one], initial="s").step("s", {"a"}) == ("two", 2.0)
    assert RewardMachine([one, two], initial="s").step("s", {"b"}) == ("two", 2.0)


def test_an_undefined_label_fails_where_the_machine_says_so() -> None:
    task = coffee_task(undefined="fail")
    assert task.step("start", {"office"}) == MachineStep("failed", 0.0)
    assert task.step("failed", {"coffee"}) == MachineStep("failed", 0.0)
    assert task.failure == {"dirty", "failed"}
    assert task.terminal == {"done", "dirty", "failed"}
    assert task.run([{"coffee"}, set()]).failure


def test_reset_reads_the_start_label_without_pay_unless_told_not_to() -> None:
    assert coffee_task().reset({"coffee"}) == "has_coffee"
    assert coffee_task().reset(()) == "start"
    assert coffee_task(consume_initial=False).reset({"coffee"}) == "start"
    table = coffee_task(consume_initial=False).table([frozenset(), frozenset({"coffee"})])
    assert table.initial.tolist() == [0, 0]


def test_a_run_lists_every_state_and_sums_the_rewards() -> None:
    run = coffee_task().run([{"coffee"}, (), {"office"}, {"office"}])
    assert run.states == ("start", "has_coffee", "has_coffee", "done", "done")
    assert run.rewards == (0.0, 0.0, 1.5, 0.0)
    assert (run.state, run.reward, run.success, run.failure) == ("done", 1.5, True, False)
    lost = coffee_task().run([{"mud"}])
    assert (lost.state, lost.reward, lost.success, lost.failure) == ("dirty", -2.0, False, True)
    empty = coffee_task().run([])
    assert (empty.states, empty.reward, empty.success, empty.failure) == (
        ("start",),
        0.0,
        False,
        False,
    )


def test_the_table_has_one_row_per_state_in_their_order() -> None:
    task = coffee_task()
    assert task.states == ("start", "has_coffee", "dirty", "done")
    assert [task.index(state) for state in task.states] == [0, 1, 2, 3]
    table = task.table([frozenset(), frozenset({"coffee"}), frozenset({"office"})])
    assert table.next_state.shape == table.prob.shape == table.reward.shape == (4, 3, 1)
    assert table.next_state[:, :, 0].tolist() == [[0, 1, 0], [1, 1, 3], [2, 2, 2], [3, 3, 3]]
    assert table.reward[:, :, 0].tolist() == [[0, 0, 0], [0, 0, 1.5], [0, 0, 0], [0, 0, 0]]
    assert (table.prob == 1.0).all()
    assert table.terminal.tolist() == [False, False, True, True]
    assert table.success.tolist() == [False, False, False, True]
    assert table.initial.tolist() == [0, 1, 0]


def test_the_table_over_no_labels_is_empty_but_shaped() -> None:
    table = coffee_task().table([])
    assert table.next_state.shape == table.prob.shape == table.reward.shape == (4, 0, 1)


@given(machines())
def test_the_table_lists_the_outcomes_and_pads_them_with_staying_for_nothing(
    task: RewardMachine,
) -> None:
    table = task.table(LABELS)
    width = table.prob.shape[2]
    assert (width > 1) == task.is_stochastic
    for q, state in enumerate(task.states):
        for number, label in enumerate(LABELS):
            outcomes = task.outcomes(state, label)
            padding = [Outcome(0.0, state, 0.0)] * (width - len(outcomes))
            columns = (table.prob, table.next_state, table.reward)
            listed = zip(*(column[q, number].tolist() for column in columns), strict=True)
            named = [(chance, task.states[target], reward) for chance, target, reward in listed]
            assert named == [*outcomes, *padding]
            assert sum(outcome.probability for outcome in outcomes) == pytest.approx(1.0, abs=1e-14)
            assert all(outcome.probability > 0.0 for outcome in outcomes)
            if len(outcomes) == 1:
                assert outcomes[0].probability == 1.0
                assert task.step(state, label) == outcomes[0][1:]
        assert table.terminal[q] == (state in task.success or state in task.failure)
        assert table.success[q] == (state in task.success)
    for number, label in enumerate(LABELS):
        if table.initial[number] == RANDOM_START:
            assert len(task.outcomes("q0", label)) > 1
        else:
            assert task.states[table.initial[number]] == task.reset(label)
    assert not table.reward[table.terminal].any()
    ends = np.flatnonzero(table.terminal)
    assert (table.next_state[table.terminal] == ends[:, None, None]).all()


@given(machines(), st.lists(st.sampled_from(LABELS)), st.integers(0, 1000))
def test_a_run_is_its_steps_one_after_another(
    task: RewardMachine, trace: list[frozenset[str]], seed: int
) -> None:
    run = task.run(trace, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    assert len(run.states) == len(trace) + 1
    for i, label in enumerate(trace):
        assert task.step(run.states[i], label, rng) == (run.states[i + 1], run.rewards[i])
    assert run.state == run.states[-1]
    assert run.reward == pytest.approx(sum(run.rewards))


def test_declared_states_fix_the_order() -> None:
    order = ["done", "dirty", "has_coffee", "start", "unused"]
    assert coffee_task(states=order).states == tuple(order)


def test_an_edge_takes_a_guard_or_its_text() -> None:
    assert Edge("s", "a & b", "t", 1) == Edge("s", Guard.parse("a&b"), "t", 1.0)
    assert repr(Edge("s", "a&b", "t", 2.5)) == "Edge('s' -> 't' when 'a & b', reward 2.5)"


def test_machines_are_equal_where_everything_about_them_is() -> None:
    assert coffee_task() == coffee_task()
    assert hash(coffee_task()) == hash(coffee_task())
    changes = {"undefined": "fail", "strict": True, "consume_initial": False, "name": "other"}
    for key, value in {**changes, "description": "Fetch.", "failure": ["dirty", "x"]}.items():
        assert coffee_task(**{key: value}) != coffee_task(), key


def test_repr_is_one_line_of_facts() -> None:
    shown = "3 edges, 'start' -> success 'done', failure 'dirty')"
    assert repr(coffee_task(name="mine")) == f"RewardMachine('mine': 4 states, {shown}"
    assert "no end" in repr(RewardMachine([], initial="s"))


def test_str_is_a_table_for_people() -> None:
    assert str(coffee_task(name="mine", description="Fetch it.")).split("\n") == [
        "mine: Fetch it.",
        "",
        "from        when           to          reward",
        "----------  -------------  ----------  ------",
        "start       coffee & !mud  has_coffee  0",
        "start       mud            dirty       -2",
        "has_coffee  office         done        1.5",
        "",
        "initial: start (reads the start label)",
        "success: done",
        "failure: dirty",
        "otherwise: stay, reward 0",
    ]
    plain = str(RewardMachine([], initial="s", undefined="fail", consume_initial=False))
    assert plain.endswith(
        "initial: s\nsuccess: none\nfailure: failed\notherwise: 'failed', reward 0"
    )


def test_propositions_are_those_of_every_guard() -> None:
    assert coffee_task().propositions == {"coffee", "mud", "office"}
    assert RewardMachine([], initial="s").propositions == frozenset()


def test_guards_of_events_are_no_longer_than_they_need_to_be() -> None:
    edges = [Edge("s", "a & b", "t"), Edge("s", "b", "u"), Edge("s", "c & !b", "v")]
    task = RewardMachine(edges, initial="s")
    guards = [str(event.guard) for event in task.events("s")]
    assert guards == ["a & b", "b & !a", "c & !b", "!b & !c"]


def test_what_is_no_machine_cannot_be_compared_with_one() -> None:
    with pytest.raises(ParameterError, match="is not a RewardMachine; qrmax"):
        coffee_task().equivalent("exp1")  # type: ignore[arg-type]


@given(machines())
def test_of_the_events_of_a_state_exactly_one_happens(machine: RewardMachine) -> None:
    for state in machine.states:
        events = machine.events(state)
        for label in LABELS:
            (happens,) = [event for event in events if event.guard.holds(label)]
            assert happens.outcomes == machine.outcomes(state, label)
