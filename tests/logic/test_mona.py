"""MONA, an independent program, makes equivalent automata, and none smaller."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import count
from random import Random

import pytest

import qrmax
from formulas import ATOMS, Tree, random_tree, write
from qrmax.errors import MissingExtraError, SizeError
from qrmax.logic import mona
from qrmax.logic.compiler import compile_formula
from qrmax.logic.formula import LOGICS

needs_mona = pytest.mark.skipif(shutil.which("mona") is None, reason="needs the program mona")


def states_by_mona(tree: Tree) -> int:
    """How many states MONA's own automaton of an LTLf formula has, translated here."""
    text = f"m2l-str;\nvar2 {', '.join(ATOMS)};\nex1 s: s = 0 & {in_mona(tree, 's', count())};\n"
    done = subprocess.run(
        ["mona", "-xw", "-u", "/dev/stdin"], input=text, capture_output=True, text=True, check=True
    )
    found = re.search(r"^states: (\d+)$", done.stdout, flags=re.MULTILINE)
    assert found, done.stdout
    return int(found[1])


def in_mona(tree: Tree, x: str, fresh: count[int]) -> str:
    """The formula at position x of the string."""
    y, z = f"y{next(fresh)}", f"z{next(fresh)}"

    def at(position: str, part: Tree) -> str:
        return in_mona(part, position, fresh)

    match tree:
        case "true" | "false":
            return tree
        case "last":
            return f"(~ex1 {y}: {y} = {x} + 1)"
        case str():
            return f"({x} in {tree})"
        case ("!", f):
            return f"(~{at(x, f)})"
        case ("&" | "|" | "->" | "<->", f, g):
            sign = {"->": "=>", "<->": "<=>"}.get(tree[0], tree[0])
            return f"({at(x, f)} {sign} {at(x, g)})"
        case ("X", f):
            return f"(ex1 {y}: {y} = {x} + 1 & {at(y, f)})"
        case ("WX", f):
            return at(x, ("!", ("X", ("!", f))))
        case ("F", f):
            return at(x, ("U", "true", f))
        case ("G", f):
            return f"(all1 {y}: {x} <= {y} => {at(y, f)})"
        case ("U", f, g):
            before = f"all1 {z}: {x} <= {z} & {z} < {y} => {at(z, f)}"
            return f"(ex1 {y}: {x} <= {y} & {at(y, g)} & {before})"
        case ("R", f, g):
            return at(x, ("!", ("U", ("!", f), ("!", g))))
        case ("W", f, g):
            return at(x, ("|", ("U", f, g), ("G", f)))
        case ("M", f, g):
            return at(x, ("U", g, ("&", f, g)))
    raise ValueError(tree)


@needs_mona
def test_mona_needs_as_many_states() -> None:
    rng = Random(23)
    sizes = []
    for _ in range(150):
        tree = random_tree("ltlf", 3, rng)
        # MONA reads one letter more at the beginning, and then at least one label.
        dfa = compile_formula(write(("X", tree)))
        assert len(dfa.states) == states_by_mona(tree), write(tree)
        sizes.append(len(dfa.states))
    assert max(sizes) > 8


@needs_mona
@pytest.mark.parametrize("logic", LOGICS)
def test_mona_makes_the_same_automaton_of_random_formulas(logic: str) -> None:
    rng = Random(17)
    for _ in range(60):
        text = write(random_tree(logic, 4, rng))
        assert compile_formula(text, logic, backend="mona") == compile_formula(text, logic), text


@needs_mona
def test_mona_has_limits_of_its_own_and_of_ours() -> None:
    with pytest.raises(SizeError, match="more than 3 states"):
        compile_formula("X X X X a", backend="mona", max_states=3)
    with pytest.raises(SizeError, match="MONA"):
        compile_formula("X " * 3_000 + "a", backend="mona")


def test_without_mona_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mona, "PROGRAM", "no-such-program")
    with pytest.raises(MissingExtraError, match="apt install mona"):
        qrmax.compile_formula("F a", backend="mona")
