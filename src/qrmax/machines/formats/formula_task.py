"""Tasks as formulas: `F(coffee & F office) & G !decoration`.

The suffix of a file determines the logic: `.ltlf`, `.ldlf`, `.ppltl`. Formulas are also accepted
wherever a task is expected; they are LTLf unless they begin with the name of another logic, as
`ldlf: <true*;coffee>tt` does. The machine gives reward 1 when the formula is first satisfied. In
files, lines that begin with `#` are comments. The format is read-only.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from qrmax.errors import FormulaError
from qrmax.logic.formula import LOGICS, Formula
from qrmax.machines.formula_machine import machine_of_formulas
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

UNNAMED = "formula"
_LOGIC = re.compile(rf"\s*({'|'.join(LOGICS)})\s*:")
_OF_FORMULAS = re.compile(r"""[\s()&|!<>\[\]":]""")
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def is_formula(text: str) -> bool:
    """Whether a text is a formula: names and paths have no spaces, brackets or operators.

    >>> is_formula("F coffee"), is_formula("exp5"), is_formula("tasks/my.toml")
    (True, False, False)
    """
    return _OF_FORMULAS.search(text) is not None


def as_source(text: str) -> Source:
    """A formula as the text of an unnamed file.

    >>> as_source("ldlf: <coffee>tt")
    Source(name='formula.ldlf', text=' <coffee>tt')
    """
    prefix = _LOGIC.match(text)
    logic, start = (prefix[1], prefix.end()) if prefix else (LOGICS[0], 0)
    return Source(f"{UNNAMED}.{logic}", text[start:])


def _read(source: Source, logic: str) -> Formula:
    """Parse a formula; an error says if it is one of another logic."""
    try:
        return Formula.read(source, logic)
    except FormulaError as error:
        fits = next((other for other in LOGICS if _can_read(source, other)), None)
        if fits is None:
            raise
        hint = f"it is valid {fits.upper()}: write '{fits}: ...', or a file .{fits}"
        raise FormulaError(f"{error}\n  {hint}") from None


def _can_read(source: Source, logic: str) -> bool:
    with suppress(FormulaError):
        Formula.read(source, logic)
        return True
    return False


def parse(source: Source) -> RewardMachine:
    """Parse a task from a formula."""
    path = Path(source.name)
    logic = path.suffix.lower().removeprefix(".")
    text = _COMMENT.sub(lambda comment: " " * len(comment[0]), source.text)
    unnamed = path.stem == UNNAMED
    formula = _read(Source(UNNAMED if unnamed else source.name, text), logic)
    name = " ".join(text.split()) if unnamed else path.stem
    return machine_of_formulas(formula, 1.0, logic, {"name": name})
