"""Panels of a problem's states, one for each state of the reward machine.

A panel shows the map (or grid, or graph) with a colour for each state and an arrow for each action
of a policy. All panels share one scale of colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, UnknownNameError
from qrmax.machines.reward_machine import RewardMachine
from qrmax.pictures.colour_scale import ColourScale, is_dark, level_colour
from qrmax.pictures.composition import Items, below, in_grid
from qrmax.pictures.drawing import (
    Font,
    Look,
    Outline,
    Picture,
    Point,
    Segment,
    Shape,
    Text,
    arrow_head,
    disc,
    polyline,
    rectangle,
)
from qrmax.report.ground import Ground, link_items
from qrmax.report.legend import ENTRY, Entry, legend
from qrmax.report.machine_layout import text_width

WIDEST = 1500.0  # of a row of panels
HEADING = 40.0
LEAST_PANEL = 200.0  # the width of a panel with a heading
_LONGEST_ARROW = 48.0
GAP = 28.0
MARGIN = 20.0

_TITLE = Font(15.0, bold=True)
_ABOUT = Font(12.0, "#627d98")
_NAME = Font(13.0, bold=True)
_NEXT = Font(11.0, "#627d98")
_LIGHT, _DARK = "#ffffff", "#1f2933"
KNOWN, SOME, UNKNOWN = "#4a8fb0", "#bcd8dc", "#f6efe0"


class Panel(NamedTuple):
    """The states in one machine state."""

    heading: str
    then: str  # a line below it
    fill: NDArray[np.float64]  # [s], NaN has no colour
    arrows: NDArray[np.int32]  # [s], -1 has none
    marks: tuple[Shape, ...] = ()  # in place of colours


def machine_panels(
    machine: RewardMachine, labels: Iterable[frozenset[str]], states: Sequence[str] | None = None
) -> list[tuple[int, str, str]]:
    """The machine states that have a panel: number, name, and the edges that lead on.

    Those that are terminal, or unreachable with these labels, are left out.
    """
    for state in states or ():
        if state not in machine.states:
            raise UnknownNameError("machine state", state, machine.states)
    there = machine.restricted(labels)
    found = []
    for q, state in enumerate(machine.states):
        if state not in there.states or state in machine.terminal:
            continue
        if states is not None and state not in states:
            continue
        ways: dict[str, list[str]] = {}
        for edge in there.edges_of(state):
            if edge.target != state and edge.target not in machine.failure:
                ways.setdefault(edge.target, []).append(str(edge.guard))
        onward = [f"{' | '.join(dict.fromkeys(guards))} → {t}" for t, guards in ways.items()]
        found.append((q, state, ", ".join(onward)))
    if not found:
        raise ParameterError(
            f"{', '.join(states or machine.states)}: terminal, or not reached with these labels, "
            "so there is nothing to draw"
        )
    return found


def draw_panels(
    ground: Ground,
    panels: Sequence[Panel],
    *,
    title: str,
    about: str,
    scale: ColourScale | None,
    scale_name: str,
    key: Sequence[Entry] = (),
) -> Picture:
    """The panels in a grid, below a title, above the key of colours and signs."""
    pictures = [draw_panel(ground, panel, scale) for panel in panels]
    columns = max(1, min(len(pictures), _columns(len(pictures), max(ground.width, LEAST_PANEL))))
    grid = in_grid(pictures, columns, title=title, gap=GAP)
    width = max(grid.width, 420.0)
    head = Picture(
        title, 0.0, 0.0, max(width, 1.2 * text_width(title), text_width(about)), 58.0,
        (
            Text(Point(0.0, 20.0), title, _TITLE, "start", "title"),
            Text(Point(0.0, 40.0), about, _ABOUT, "start", "about"),
        ),
    )  # fmt: skip
    items, height = Items(), 10.0
    if scale is not None:
        items += scale.key(Point(0.0, 8.0), min(width, 360.0), scale_name)
        height = 60.0
    drawn, lines = legend([*key, *ground.legend], width, height - ENTRY / 2)
    foot = Picture(title, 0.0, 0.0, width, height + lines * ENTRY + 4.0, (*items, *drawn))
    whole = below(head, grid, foot, title=title, gap=6.0)
    return Picture(
        title,
        -MARGIN,
        -MARGIN / 2,
        whole.width + 2.0 * MARGIN,
        whole.height + 1.5 * MARGIN,
        whole.items,
    )


def draw_panel(ground: Ground, panel: Panel, scale: ColourScale | None) -> Picture:
    """One panel."""
    items: Items = [*link_items(ground, panel.arrows), *ground.below]
    levels = np.full(len(ground.places), -1) if scale is None else scale.levels(panel.fill)
    items += fills(ground, levels)
    items += [*panel.marks, *ground.above, *ground.start]
    items += _arrows(ground, panel.arrows, levels)
    if ground.round:
        items += _numbers(ground, panel.arrows, levels)
    shown = _cut(panel.then, max(LEAST_PANEL, ground.width))
    head = [
        Text(Point(0.0, -24.0), panel.heading, _NAME, "start", "heading"),
        Text(Point(0.0, -8.0), shown, _NEXT, "start", "next"),
    ]
    top = HEADING if panel.heading else 6.0
    return Picture(
        panel.heading,
        -2.0,
        -top,
        max(ground.width, LEAST_PANEL, 1.1 * text_width(panel.heading)) + 4.0,
        ground.height + top + 4.0,
        tuple([*head, *items] if panel.heading else items),
    )


def fills(ground: Ground, levels: NDArray[np.int64]) -> Items:
    """The colours of states: one shape for each level, whose edge closes hairlines."""
    outlines: dict[int, list[Segment]] = {}
    for level, outline in _areas(ground, levels.tolist()):
        outlines.setdefault(level, []).extend(outline)
    seam = 0.5 if ground.is_raster else 0.0
    return [
        Shape(tuple(outlines[level]), _seamless(level_colour(level), seam), "value")
        for level in sorted(outlines)
    ]


def _areas(ground: Ground, levels: Sequence[int]) -> Iterator[tuple[int, Outline]]:
    """The areas of states by level; neighbours in a row of a raster are one."""
    if not ground.is_raster:
        for s, level in enumerate(levels):
            if level >= 0:
                yield level, ground.outline(s)
        return
    columns = round(ground.width / ground.places[0].width)
    for first in range(0, len(levels), columns):
        at = first
        for level, group in groupby(levels[first : first + columns]):
            n = sum(1 for _ in group)
            one, last = ground.places[at], ground.places[at + n - 1]
            middle = Point((one.middle.x + last.middle.x) / 2, one.middle.y)
            at += n
            if level >= 0:
                yield level, rectangle(middle, n * one.width, one.height)


def _seamless(colour: str, seam: float) -> Look:
    return Look(colour, colour, seam) if seam else Look(fill=colour)


def _arrows(ground: Ground, moves: NDArray[np.int32], levels: NDArray[np.int64]) -> Items:
    """The actions of a policy: one shape for all lines of a colour and width, and one for heads."""
    lines: dict[tuple[str, float], list[Segment]] = {}
    heads: dict[str, list[Segment]] = {}
    for s, move in enumerate(moves.tolist()):
        if move >= 0 and ground.has_arrow(s) and np.isfinite(ground.ways[s, move]).all():
            colour = _LIGHT if is_dark(int(levels[s])) else _DARK
            arrow = _arrow(ground, s, move)
            heads.setdefault(colour, []).extend(arrow.head)
            if arrow.line:
                lines.setdefault((colour, arrow.width), []).extend(arrow.line)
    return [
        *(
            Shape(tuple(line), Look(stroke=colour, width=width), "arrow")
            for (colour, width), line in lines.items()
        ),
        *(Shape(tuple(head), Look(fill=colour), "arrow") for colour, head in heads.items()),
    ]


class _Arrow(NamedTuple):
    line: Outline
    width: float
    head: Outline


def _arrow(ground: Ground, s: int, move: int) -> _Arrow:
    """The arrow of an action; a dot for one that stays."""
    place, way = ground.places[s], ground.ways[s, move]
    across, down = place.width * ground.apart[0], place.height * ground.apart[1]
    middle = Point(place.middle.x + place.shift.x * across, place.middle.y + place.shift.y * down)
    half = place.room * min(across, down, _LONGEST_ARROW) / 2
    if not way.any():
        return _Arrow((), 0.0, disc(middle, 0.3 * half))
    tip = Point(middle.x + half * way[0], middle.y + half * way[1])
    tail = Point(middle.x - half * way[0], middle.y - half * way[1])
    head = max(3.0, 0.9 * half)
    neck = Point(tip.x - 0.8 * head * way[0], tip.y - 0.8 * head * way[1])
    width = round(max(0.8, 0.16 * half), 1)
    return _Arrow(polyline(tail, neck), width, arrow_head(tip, tail, head))


def _numbers(ground: Ground, moves: NDArray[np.int32], levels: NDArray[np.int64]) -> Items:
    """The numbers of a graph's states, with the action of the policy."""
    items = Items()
    for s, place in enumerate(ground.places):
        colour = _LIGHT if is_dark(int(levels[s])) else _DARK
        move = int(moves[s])
        text = f"{s}" if move < 0 else f"{s}:{move}"
        font = Font(11.0, colour)
        items.append(Text(Point(place.middle.x, place.middle.y + 4.0), text, font, kind="number"))
    return items


def _columns(panels: int, width: float) -> int:
    """The columns of a grid of panels: as many as fit, in rows that are about equally full."""
    most = max(1, int((WIDEST + GAP) / (width + GAP)))
    rows = math.ceil(panels / most)
    return math.ceil(panels / rows)


def _cut(text: str, width: float) -> str:
    if text_width(text) * 0.85 <= width:
        return text
    while text and text_width(text) * 0.85 > width - 10.0:
        text = text[:-1]
    return f"{text}…"
