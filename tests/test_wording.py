"""Docstrings begin with a noun phrase or an imperative; "Whether ..." is for predicates alone.

Messages, help texts and printed output use the words of the literature: `PLAIN` lists those that
they avoid, each with what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import qrmax

PACKAGE = Path(qrmax.__file__).parent
ROOMS = sorted({path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")})
QUESTIONS = ("What", "How", "Where", "Which", "Who", "When", "Why")
ROOT = Path(__file__).parents[1]
PLAIN = {
    r"pays?|paid": "reward",
    r"(go|goes|going|went) on": "resume, continue",
    r"broken? off": "interrupt",
    r"(begin|begins|begun) (anew|again)": "restart",
    r"judge[sd]?": "evaluate",
    r"chance": "probability, stochastic",
    r"worth": "value",
    r"so many|that many": "n",
    r"first values": "initial values",
    r"what is (true|wanted|best|not known|there)": "labels, goal, optimal, unknown",
    r"wanted": "goal",
    r"(get|gets|got) there": "meet the stopping rule",
    r"how (probable|likely)|how far": "probability, progress",
    r"seldom": "rarely",
    r"drawn anew": "resampled",
    r"last polic(y|ies)": "final policy",
    r"what there is": "all names",
    r"(real|numbered) (positions?|states?)": "continuous, discrete",
    r"makes? no sense|no sensible": "inconsistent",
    r"(?<!there )(is|are) no(?! longer)": "is not a",
    r"for people": "",
}
"""Words that messages avoid, as patterns, and those to use instead."""

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


def messages(room: str) -> Iterator[tuple[str, str]]:
    """Places and texts of all string literals that are not docstrings, or the setting `pay`."""
    for path in sorted(
        [PACKAGE / room] if room.endswith(".py") else (PACKAGE / room).rglob("*.py")
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "..." for p in node.values]
                prose |= {*map(id, node.values)}
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and id(node) not in prose and node.value != "pay":
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", str(node.value)


def dialect(text: str) -> Iterator[str]:
    """The replacements for the words that a text should avoid."""
    for words, better in PLAIN.items():
        if found := re.search(rf"(?<![\w-])(?:{words})(?![\w=-])", text, re.IGNORECASE):
            yield f"{found[0]!r}: rather {better!r}"


@pytest.mark.parametrize("room", ROOMS)
def test_messages_and_help_texts_use_the_words_of_the_field(room: str) -> None:
    found = [f"{place}: {text}: {word}" for place, text in messages(room) for word in dialect(text)]
    assert found == []


def test_the_help_of_the_makefile_uses_the_words_of_the_field() -> None:
    helps = re.findall(r"^\w+:.*## (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(helps) > 10
    assert [word for text in helps for word in dialect(text)] == []


def test_comments_of_studies_and_tasks_use_the_words_of_the_field() -> None:
    comments = {path.name: re.findall(r"#.*", path.read_text()) for path in PACKAGE.rglob("*.toml")}
    found = [(name, *dialect(text)) for name, texts in comments.items() for text in texts]
    assert [words for words in found if len(words) > 1] == []


@pytest.mark.parametrize(
    "text",
    [
        "the most that a step can pay",
        "goes on with another",
        "Judged by what it plans for",
        "'x' is no number",
        "runs that got there",
    ],
)
def test_private_words_are_noticed(text: str) -> None:
    assert [*dialect(text)]


@pytest.mark.parametrize("text", ["pay=...", "there is no such file", "unpaid", "judgement"])
def test_others_are_not(text: str) -> None:
    assert not [*dialect(text)]
