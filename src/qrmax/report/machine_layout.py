"""The layout of a picture of a reward machine.

States are on the even layers of the layout and edge labels on the odd ones, so that nothing is
drawn over a label. Edges between the same two states share a line; self-loops are above their
state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import FAILED, RewardMachine
from qrmax.pictures.drawing import Point
from qrmax.report.layers import acyclic, heights, ordered, ranks

LONGEST = 60  # characters of an edge's label; a longer one is cut
LINE = 16.0  # line spacing
LOOP = 24.0  # height of a loop above its box

_BOX_HEIGHT = 34.0
_LEAST_BOX = 44.0
_GAP_ACROSS, _GAP_DOWN = 26.0, 20.0
_SPREAD = 9.0  # between two lines that meet a box on the same side
_NARROW, _WIDE = "iljtfrI.,:;!|'()[] ", "mwMW@%&"


ORIGIN = Point(0.0, 0.0)


class Words(NamedTuple):
    """The lines of a label; `at` is their centre."""

    at: Point
    lines: tuple[str, ...]


class Line(NamedTuple):
    """An arrow; its label stands between its parts."""

    parts: list[list[Point]]
    label: Words


@dataclass
class Box:
    """A state."""

    state: str
    width: float
    loop: tuple[str, ...] = ()  # the label of its loop
    at: Point = ORIGIN  # the centre
    height: float = _BOX_HEIGHT

    @property
    def above(self) -> float:
        """The height of a loop."""
        return LOOP + LINE * len(self.loop) if self.loop else 0.0

    @property
    def room(self) -> float:
        """The width of the box and of the loop above it."""
        return max(self.width, label_width(self.loop))


@dataclass
class _Place:
    """A dummy node of the layout: a label, or a bend of a line."""

    lines: tuple[str, ...] = ()
    at: Point = ORIGIN


@dataclass
class _Arrow:
    source: int
    target: int
    lines: tuple[str, ...]
    way: list[int] = field(default_factory=list)  # the nodes that it goes through, in its direction


class MachineLayout:
    """The positioned boxes and lines of a machine."""

    def __init__(self, machine: RewardMachine) -> None:
        states = [state for state in machine.states if _is_drawn(machine, state)]
        number = {state: i for i, state in enumerate(states)}
        texts: dict[tuple[int, int], list[str]] = {}
        for edge in machine.edges:
            texts.setdefault((number[edge.source], number[edge.target]), []).append(_words(edge))
        self.first = number[machine.initial]
        self.boxes = [
            Box(
                state, max(_LEAST_BOX, 1.1 * text_width(state) + 26.0), tuple(texts.get((i, i), ()))
            )
            for i, state in enumerate(states)
        ]
        self._arrows = [_Arrow(*ends, tuple(t)) for ends, t in texts.items() if ends[0] != ends[1]]
        self._places: list[_Place] = []
        self._layers = self._place_all()
        self.lines = [self._line(arrow) for arrow in self._arrows]

    def _place_all(self) -> list[list[int]]:
        n_states = len(self.boxes)
        forward = acyclic(n_states, [(a.source, a.target) for a in self._arrows], self.first)
        rank = ranks(n_states, forward)
        layers: list[list[int]] = [[] for _ in range(2 * max(rank) + 1)]
        for state, level in enumerate(rank):
            layers[2 * level].append(state)
        links: list[tuple[int, int]] = []
        for arrow, (start, end) in zip(self._arrows, forward, strict=True):
            first, last = 2 * rank[start] + 1, 2 * rank[end] - 1
            middle = first + (last - first) // 4 * 2
            chain = [start]
            for level in range(first, last + 1):
                self._places.append(_Place(arrow.lines if level == middle else ()))
                chain.append(n_states + len(self._places) - 1)
                layers[level].append(chain[-1])
            chain.append(end)
            links += pairwise(chain)
            arrow.way = chain if start == arrow.source else chain[::-1]
        layers = ordered(layers, links)
        sizes = [box.height + box.above for box in self.boxes]
        sizes += [LINE * len(place.lines) + 2.0 for place in self._places]
        anchors = [box.above / 2 for box in self.boxes] + [0.0] * len(self._places)
        middles = heights(layers, links, sizes, anchors, _GAP_DOWN)
        x = 0.0
        for layer in layers:
            width = max(map(self._room, layer))
            for node in layer:
                self._put(node, Point(x + width / 2, middles[node]))
            x += width + _GAP_ACROSS
        return layers

    def _put(self, node: int, at: Point) -> None:
        if node < len(self.boxes):
            box = self.boxes[node]
            box.at = Point(at.x, at.y + box.above / 2)  # a loop is above it
        else:
            self._places[node - len(self.boxes)].at = at

    def _room(self, node: int) -> float:
        if node < len(self.boxes):
            return self.boxes[node].room
        return label_width(self._places[node - len(self.boxes)].lines)

    def _at(self, node: int) -> Point:
        n_states = len(self.boxes)
        return self.boxes[node].at if node < n_states else self._places[node - n_states].at

    def _line(self, arrow: _Arrow) -> Line:
        """The path of an arrow, straight through the columns that it passes."""
        onward = 1.0 if self._at(arrow.source).x < self._at(arrow.target).x else -1.0
        parts = [[self._port(arrow, arrow.source, onward)]]
        label = Words(ORIGIN, ())
        for node in arrow.way[1:-1]:
            place = self._places[node - len(self.boxes)]
            layer = next(layer for layer in self._layers if node in layer)
            half = (self._room(node) if place.lines else max(map(self._room, layer))) / 2
            parts[-1].append(Point(place.at.x - onward * half, place.at.y))
            if place.lines:
                parts.append([])
                label = Words(place.at, place.lines)
            parts[-1].append(Point(place.at.x + onward * half, place.at.y))
        parts[-1].append(self._port(arrow, arrow.target, -onward))
        return Line(parts, label)

    def _port(self, arrow: _Arrow, state: int, side: float) -> Point:
        """The point where a line meets a box: lines share a side, in order."""
        box = self.boxes[state]
        near = {
            i: self._at(other.way[1] if other.source == state else other.way[-2])
            for i, other in enumerate(self._arrows)
            if state in (other.source, other.target)
        }
        there = sorted((at.y, i) for i, at in near.items() if (at.x > box.at.x) == (side > 0.0))
        place = [self._arrows[i] for _, i in there].index(arrow)
        spread = min(_SPREAD, (box.height - 12.0) / max(1, len(there) - 1))
        y = box.at.y + spread * (place - (len(there) - 1) / 2)
        return Point(box.at.x + side * box.width / 2, y)


def text_width(text: str) -> float:
    """The approximate width of a text in the font of names."""
    return sum(4.4 if c in _NARROW else 11.5 if c in _WIDE else 8.0 for c in text)


def label_width(lines: tuple[str, ...]) -> float:
    """The width of a label, in a monospaced font."""
    return 7.3 * max(map(len, lines)) + 10.0 if lines else 0.0


def _is_drawn(machine: RewardMachine, state: str) -> bool:
    """Whether a state is drawn; the implicit failure state only if edges lead to it."""
    implied = state == FAILED and machine.undefined == "fail"
    return not implied or any(edge.target == state for edge in machine.edges)


def _words(edge: Edge) -> str:
    """The label of an edge for reading."""
    guard = str(edge.guard)
    chance = f", p={edge.probability:g}" if edge.probability < 1.0 else ""
    reward = f" / {edge.reward:+g}" if edge.reward else ""
    room = LONGEST - len(chance) - len(reward)
    return f"{guard if len(guard) <= room else guard[: room - 1] + '…'}{chance}{reward}"
