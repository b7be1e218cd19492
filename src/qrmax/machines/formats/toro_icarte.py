"""Tasks in the text format of Toro Icarte's reward machines.

    0      # initial state
    [2]    # terminal states
    (0,0,'!f&!n',ConstantRewardFunction(0))
    (0,1,'f&!n',ConstantRewardFunction(0))
    (1,1,'!g&!n',ConstantRewardFunction(0))
    (1,2,'g&!n',ConstantRewardFunction(1))

A guard is a disjunction of conjunctions of letters, each optionally negated by `!`, or `True`. The
original evaluates each line as Python code; here lines are parsed, never executed. Letters stand
for propositions, by default those of the Office World.

As in the original, the label of the start state is not read, and a label that no edge matches ends
the episode. There, all terminal states are one, so that an unmatched label also gives the reward of
a terminal edge of the state, although its guard does not hold: stepping on a plant delivers the
coffee. This is reproduced only with `compat`.

Two comments have a meaning: `# name: ...` and `# description: ...`. The format is read-only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from qrmax.errors import ParameterError, QRMaxError, TaskError, shown
from qrmax.logic.guards import Guard, is_proposition, written
from qrmax.machines.edges import Edge
from qrmax.machines.formats.ends import ends_by_reward
from qrmax.machines.formats.fields import make_machine
from qrmax.machines.formats.number import NUMBER
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

OFFICE_LETTERS: Mapping[str, str] = {
    **{letter: letter.upper() for letter in "abcd"},
    "e": "mail",
    "f": "coffee",
    "g": "office",
    "n": "decoration",
}
"""The propositions of the letters of the Office World."""

_WHOLE = r"\s*(-?\d{1,9})\s*"
_INITIAL = re.compile(_WHOLE)
_TERMINAL = re.compile(rf"\s*\[({_WHOLE}(?:,{_WHOLE})*)?\]\s*")
_EDGE = re.compile(
    rf"\s*\({_WHOLE},{_WHOLE},\s*(['\"])(?P<guard>[^'\"]*)\3\s*,"
    rf"\s*ConstantRewardFunction\(\s*(?P<reward>{NUMBER})\s*\)\s*\)\s*"
)
_LITERAL = r"!?[A-Za-z]"
_GUARD = re.compile(rf"{_LITERAL}(?:[&|]{_LITERAL})*")
_LETTER = re.compile(r"[A-Za-z]")
_REMARK = re.compile(r"\s*(name|description):\s*(.*?)\s*")


def parse(
    source: Source, *, letters: Mapping[str, str] | None = None, compat: bool = False
) -> RewardMachine:
    """Parse a task; `compat` reproduces the original's reward on unmatched labels."""
    meaning = OFFICE_LETTERS if letters is None else _checked(letters)
    about = {"name": Path(source.name).stem}
    lines = [*_lines(source, about)]
    if len(lines) < 2:
        raise source.error(
            TaskError,
            "too short; the first line is the initial state, the second the terminal states",
            line=1,
        )
    (first, initial), (second, terminal), *rest = lines
    if not _INITIAL.fullmatch(initial):
        raise source.error(
            TaskError, f"{shown(initial)} is not the number of the initial state", line=first
        )
    if not _TERMINAL.fullmatch(terminal):
        raise source.error(
            TaskError,
            f"{shown(terminal)} is not a list of terminal states such as [2]",
            line=second,
        )
    ends_named = [str(int(number)) for number in re.findall(r"-?\d+", terminal)]
    edges = [_edge(source, number, line, meaning) for number, line in rest]
    used = [edge for edge in edges if edge.source not in ends_named]  # as the original does
    ends = ends_by_reward(used, ends_named)
    unmatched = _unmatched(ends.edges, ends.all) if compat else []
    return make_machine(
        source,
        [*ends.edges, *unmatched],
        initial=str(int(initial)),
        success=ends.success,
        failure=ends.failure,
        undefined="fail",
        consume_initial=False,
        **about,
    )


def _lines(source: Source, about: dict[str, str]) -> Iterator[tuple[int, str]]:
    """The nonempty lines with their numbers, without comments."""
    for number, line in enumerate(source.lines(), start=1):
        content, _, comment = line.partition("#")
        if remark := _REMARK.fullmatch(comment):
            about[remark[1]] = remark[2]
        if content.strip():
            yield number, content


def _edge(source: Source, number: int, line: str, letters: Mapping[str, str]) -> Edge:
    parts = _EDGE.fullmatch(line)
    if parts is None:
        raise source.error(
            TaskError,
            "not an edge",
            line=number,
            note="allowed: (from, to, 'guard', ConstantRewardFunction(number))",
        )
    text = parts["guard"]
    if text != "True" and not _GUARD.fullmatch(text):
        raise source.error(
            TaskError,
            f"the guard {shown(text)} is not valid in this format",
            line=number,
            column=parts.start("guard") + 1,
            note="allowed: letters, each optionally with '!', joined by '&' and '|'; or True",
        )
    named = _LETTER.sub(lambda letter: written(letters.get(letter[0], letter[0])), text)
    try:
        guard = Guard.parse("true" if text == "True" else named)
        return Edge(str(int(parts[1])), guard, str(int(parts[2])), float(parts["reward"]))
    except QRMaxError as error:
        raise source.error(TaskError, str(error), line=number) from error


def _unmatched(edges: list[Edge], terminal: frozenset[str]) -> list[Edge]:
    """The original's edges for unmatched labels: the last terminal edge, unguarded."""
    ending = {edge.source: edge for edge in edges if edge.target in terminal}
    return [Edge(e.source, "true", e.target, e.reward) for e in ending.values()]


def _checked(letters: Mapping[str, str]) -> Mapping[str, str]:
    for letter, name in letters.items():
        if not _LETTER.fullmatch(letter) or not is_proposition(name):
            raise ParameterError(
                f"letters has {shown(letter)}: {shown(name)}; allowed: one letter, and the name "
                "of a proposition"
            )
    return letters
