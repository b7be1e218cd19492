"""Docstrings begin with a noun phrase or an imperative; "Whether ..." is for predicates alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import qrmax

PACKAGE = Path(qrmax.__file__).parent
ROOMS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
QUESTIONS = ("What", "How", "Where", "Which", "Who", "When", "Why")

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Docstring(NamedTuple):
    """A docstring and its place."""

    place: str
    text: str
    is_predicate: bool  # of a function that returns a bool


def docstrings(room: str) -> Iterator[Docstring]:
    for path in sorted(
        [PACKAGE / room] if room.endswith(".py") else (PACKAGE / room).rglob("*.py")
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, _Documented) else None
            if text:
                place = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 1)}"
                yield Docstring(place, text, _is_predicate(node))


def _is_predicate(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    returns = ast.unparse(node.returns) if node.returns is not None else ""
    return returns in ("bool", "bool | None") or "TypeGuard" in returns or "bool_" in returns


@pytest.mark.parametrize("room", ROOMS)
def test_no_docstring_begins_with_a_question(room: str) -> None:
    questions = [f"{d.place}: {d.text}" for d in docstrings(room) if d.text.startswith(QUESTIONS)]
    assert questions == []


@pytest.mark.parametrize("room", ROOMS)
def test_whether_is_for_predicates_alone(room: str) -> None:
    others = [
        f"{d.place}: {d.text}"
        for d in docstrings(room)
        if d.text.startswith("Whether") and not d.is_predicate
    ]
    assert others == []
