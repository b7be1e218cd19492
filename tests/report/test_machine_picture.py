"""Pictures of machines: well-formed, complete, and with nothing drawn over anything else."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odd_machines import machines
from qrmax.errors import TaskError
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task, task_names
from qrmax.report.layers import acyclic, heights, ordered, ranks
from qrmax.report.machine_layout import LINE, MachineLayout, label_width
from qrmax.report.machine_picture import MOST_STATES, draw_machine

SVG = "{http://www.w3.org/2000/svg}"


def texts(machine: RewardMachine) -> list[str]:
    tree = ElementTree.fromstring(draw_machine(machine).svg())
    return [element.text or "" for element in tree.iter(f"{SVG}text")]


def rooms(layout: MachineLayout) -> list[tuple[float, float, float, float]]:
    """The rectangles that boxes with their loops, and labels, take up."""
    found = [
        (
            box.at.x - box.room / 2,
            box.at.y - box.height / 2 - box.above,
            box.at.x + box.room / 2,
            box.at.y + box.height / 2,
        )
        for box in layout.boxes
    ]
    for line in layout.lines:
        at, lines = line.label
        width, height = label_width(lines), LINE * len(lines)
        found.append((at.x - width / 2, at.y - height / 2, at.x + width / 2, at.y + height / 2))
    return found


@pytest.mark.parametrize("name", task_names())
def test_every_state_and_every_edge_of_a_task_is_in_its_picture(name: str) -> None:
    task = load_task(name)
    shown = texts(task)
    assert {*task.states} - {"failed"} <= {*shown}
    assert task.name in shown
    for edge in task.edges:
        assert any(text.startswith(str(edge.guard)) for text in shown)


def test_the_picture_says_what_pays_and_how_likely() -> None:
    task = RewardMachine(
        [Edge("s", "a", "t", 1.0, 0.5), Edge("s", "a", "t", -2.0, 0.25), Edge("s", "b", "s")],
        initial="s",
        failure=["t"],
        undefined="fail",
        description="Try & <fail>.",
    )
    shown = texts(task)
    assert "a, p=0.5 / +1" in shown
    assert "a, p=0.25 / -2" in shown
    assert "Try & <fail>." in shown
    assert "Any other label leads to failed." in shown
    assert "failed" not in shown
    assert 'class="failure ring"' in draw_machine(task).svg()


def test_a_very_long_guard_is_cut() -> None:
    guard = " & ".join(f"name{i}" for i in range(40))
    task = RewardMachine([Edge("s", guard, "t", 1.0)], initial="s")
    (label,) = (text for text in texts(task) if text.startswith("name0"))
    assert label.endswith("… / +1")
    assert len(label) <= 60


def test_a_machine_that_is_too_large_to_look_at_is_refused() -> None:
    edges = [Edge(f"q{i}", "a", f"q{i + 1}") for i in range(MOST_STATES)]
    with pytest.raises(TaskError, match="at most 200 can be drawn"):
        draw_machine(RewardMachine(edges, initial="q0"))


@given(machines())
@settings(max_examples=50)
def test_any_machine_is_drawn_with_nothing_over_anything_else(machine: RewardMachine) -> None:
    ElementTree.fromstring(draw_machine(machine).svg())
    layout = MachineLayout(machine)
    for one, other in combinations(rooms(layout), 2):
        beside = one[2] <= other[0] + 0.1 or other[2] <= one[0] + 0.1
        below = one[3] <= other[1] + 0.1 or other[3] <= one[1] + 0.1
        assert beside or below


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_turned_round_links_have_no_circles_and_lead_to_later_layers(
    links: list[tuple[int, int]],
) -> None:
    given_links = [link for link in dict.fromkeys(links) if link[0] != link[1]]
    forward = acyclic(8, given_links, first=3)
    assert [{*link} for link in forward] == [{*link} for link in given_links]
    rank = ranks(8, forward)
    assert all(rank[start] < rank[end] for start, end in forward)


def test_the_order_in_the_layers_avoids_crossings() -> None:
    assert ordered([[0, 1], [2, 3]], [(0, 3), (1, 2)]) in ([[0, 1], [3, 2]], [[1, 0], [2, 3]])


def test_a_chain_is_a_straight_line() -> None:
    chain = [(0, 1), (1, 2)]
    middle = heights([[0], [1], [2]], chain, [10.0, 30.0, 10.0], [0.0, 5.0, 0.0], gap=4.0)
    assert middle[0] == pytest.approx(middle[1] + 5.0) == pytest.approx(middle[2])
