"""Formulas of LTLf, LDLf and PPLTL: parse, print.

A formula is interpreted over a *trace*, a finite sequence of labels; a label is the set of
propositions true at that position.

All logics have propositions, `true`, `false` and, in order of decreasing precedence, `!` (not), `&`
(and), `|` (or), `->` (implies), `<->` (if and only if). A proposition is a name, or any text in
double quotes: `"hot coffee"`, `"F"`.

**LTLf** looks ahead from the first label:

    X f     there is a next label, and f holds there       f U g   f until g, which must come
    WX f    f holds at the next label, if there is one     f R g   g up to and including where f
            (also written N f)                                     holds, or always: !(!f U !g)
    F f     f eventually holds                              f W g   f U g, or always f
    G f     f always holds from now on                     f M g   f R g, and f must come
    last    this is the last label

***LDLf** looks ahead along paths, which are regular expressions over labels:

    <r>f    f holds at the end of some path along r        [r]f    ... of every path along r
    end     there is no label here                         last    this is the last label
    tt, ff  true, false                                    p       here is a label, and p is in it

    paths:  a & !b one such label; f? no label, but f holds here; r;s, r+s, r*

**PPLTL** looks back from the last label:

    Y f     there is a previous label, f held there        f S g   f since g, which must have come
    WY f    f held at the previous label, if any           O f     f held once, or holds now
                                                           H f     f has always held

The binary temporal operators bind more tightly than `&`; `*` and `?` apply to the operand directly
before them; `;` and `+` bind least. All binary operators are right-associative: `a U b U c` is
`a U (b U c)`. `&&`, `||`, `~`, `=>` and `<=>` are accepted, too.

**The empty trace.** There is no label, so no proposition is true and nothing lies ahead or behind:
propositions, X, F, U, M, Y, O, S and `last` do not hold, and hence `!a`, WX, G, R, W, WY and H do.
In LDLf this is the same as being at the end: `end` holds, `<a>f` does not and `[a]f` does.

A formula is stored in postfix order, as guards are, so no nesting is too deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from qrmax.errors import FormulaError, check_choice, shown
from qrmax.logic.guards import PLAIN_NAME, QUOTED_NAME, named, written
from qrmax.source import Source

MAX_TOKENS = 50_000

LOGICS = ("ltlf", "ldlf", "ppltl")

_BINDING = {"+": 1, ";": 2, "<->": 3, "->": 4, "|": 5, "&": 6}
_BINDING |= dict.fromkeys(("U", "R", "W", "M", "S"), 7)
_POSTFIX, _PREFIX, _OPERAND = 8, 9, 10  # precedences
_CLOSES = {")": "(", ">": "<", "]": "["}
MODAL = {"<": "<>", "[": "[]"}  # opening bracket -> modal operator
_SPELLINGS = {"&&": "&", "||": "|", "~": "!", "=>": "->", "<=>": "<->"}


class Vocabulary(NamedTuple):
    """The keywords and operators of a logic."""

    constants: frozenset[str]
    prefix: frozenset[str]
    binary: frozenset[str]
    postfix: frozenset[str] = frozenset()
    opening: frozenset[str] = frozenset({"("})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOCABULARY = {
    "ltlf": Vocabulary(
        constants=_words("true false tt ff last"),
        prefix=_words("! X WX N F G"),
        binary=_words("& | -> <-> U R W M"),
    ),
    "ldlf": Vocabulary(
        constants=_words("true false tt ff end last"),
        prefix=_words("!"),
        binary=_words("& | -> <-> ; +"),
        postfix=_words("* ?"),
        opening=_words("( < ["),
    ),
    "ppltl": Vocabulary(
        constants=_words("true false tt ff"),
        prefix=_words("! Y WY O H"),
        binary=_words("& | -> <-> S"),
    ),
}

# Names that a proposition can only have in quotes.
_RESERVED = {
    logic: words.constants | words.prefix | words.binary | words.postfix | {*MODAL.values()}
    for logic, words in VOCABULARY.items()
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of LTLf, LDLf or PPLTL, made by `Formula.parse`.

    >>> formula = Formula.parse("F(coffee & F office) & G !hole")
    >>> print(formula)
    F(coffee & F office) & G !hole
    >>> formula.propositions
    ('coffee', 'office', 'hole')

    Formulas of one logic are combined by `&`, `|` and `~` (not):

    >>> print(~(Formula.parse("F coffee") | Formula.parse("F mail")))
    !(F coffee | F mail)
    """

    logic: str
    postfix: tuple[str, ...]
    propositions: tuple[str, ...] = field(init=False, compare=False)  # in order of occurrence

    def __post_init__(self) -> None:
        check_choice("logic", self.logic, LOGICS)
        if not isinstance(self.postfix, tuple):
            raise FormulaError("a formula is made by Formula.parse(...)")
        names = (named(item) for item in self.postfix if self.is_proposition(item))
        object.__setattr__(self, "propositions", tuple(dict.fromkeys(names)))

    @staticmethod
    def parse(text: str, logic: str = "ltlf") -> Formula:
        """Parse a formula; a `FormulaError` shows the column of a syntax error.

        Args:
            text: the formula.
            logic: "ltlf", "ldlf" or "ppltl".
        """
        if not isinstance(text, str):
            raise FormulaError(f"a formula is text, not {shown(text)}")
        return Formula.read(Source("formula", text), logic)

    @staticmethod
    def read(source: Source, logic: str) -> Formula:
        """Parse a formula from a named source."""
        check_choice("logic", logic, LOGICS)
        return Formula(logic, _Reader(source, logic).read())

    def is_proposition(self, item: str) -> bool:
        """Whether an item of the postfix form is a proposition, not a keyword or operator."""
        return item not in _RESERVED[self.logic]

    def __and__(self, other: Formula) -> Formula:
        return self._joined(other, "&")

    def __or__(self, other: Formula) -> Formula:
        return self._joined(other, "|")

    def __invert__(self) -> Formula:
        return Formula(self.logic, (*self.postfix, "!"))

    def _joined(self, other: object, operator: str) -> Formula:
        if not isinstance(other, Formula):
            raise FormulaError(f"{operator!r} joins two formulas; {shown(other)} is not one")
        if other.logic != self.logic:
            raise FormulaError(
                f"{operator!r} joins formulas of one logic, not {self.logic} and {other.logic}"
            )
        return Formula(self.logic, (*self.postfix, *other.postfix, operator))

    def __str__(self) -> str:
        words = VOCABULARY[self.logic]
        stack: list[tuple[str, int]] = []  # text, precedence of its outermost operator
        for item in self.postfix:
            if item in words.prefix:
                operand = _within(stack.pop(), _PREFIX)
                space = "" if item == "!" or operand.startswith("(") else " "
                stack.append((item + space + operand, _PREFIX))
            elif item in words.postfix:
                stack.append((_within(stack.pop(), _OPERAND) + item, _POSTFIX))
            elif item in MODAL.values():
                operand, (path, _) = _within(stack.pop(), _PREFIX), stack.pop()
                stack.append((item[0] + path + item[1] + operand, _PREFIX))
            elif item in words.binary:
                right, left = stack.pop(), stack.pop()
                binding = _BINDING[item]
                text = f"{_within(left, binding + 1)} {item} {_within(right, binding)}"
                stack.append((text, binding))
            else:
                stack.append((item, _OPERAND))
        return stack.pop()[0]

    def __repr__(self) -> str:
        return f"Formula.parse({str(self)!r}, {self.logic!r})"


def _within(operand: tuple[str, int], at_least: int) -> str:
    """The operand's text, in parentheses if its precedence is below `at_least`."""
    text, binding = operand
    return text if binding >= at_least else f"({text})"


# Syntactic categories. In LDLf `a & b` is a formula or one step of a path: the context decides.
_FORMULA, _STEP, _PATH = 1, 2, 4


class _Reader:
    """Dijkstra's shunting-yard algorithm, tracking the possible categories of each operand."""

    def __init__(self, source: Source, logic: str) -> None:
        self.source = source
        self.logic = logic
        self.words = VOCABULARY[logic]
        self.postfix: list[str] = []
        self.kinds: list[int] = []  # of the operands on the stack
        self.waiting: list[tuple[str, int]] = []  # operators and open brackets, with offsets

    def read(self) -> tuple[str, ...]:
        wants_operand = True
        for token, offset in _tokens(self.source):
            if wants_operand:
                wants_operand = self._read_operand(token, offset)
            elif token in _CLOSES:
                wants_operand = self._close(token, offset)
            elif token in self.words.postfix:
                self._apply_waiting(_PREFIX)
                self._apply(token, offset)
            elif token in self.words.binary:
                self._apply_waiting(_BINDING[token] + 1)  # right-associative
                self.waiting.append((token, offset))
                wants_operand = True
            else:
                raise self._unexpected(token, self._expected_operator(), offset)
        if wants_operand:
            end = len(self.source.text)
            raise self._error(f"the formula ends where {self._expected_operand()} is expected", end)
        self._apply_waiting(0)
        if self.waiting:
            bracket, offset = self.waiting[-1]
            raise self._error(f"{bracket!r} without its {_partner(bracket)!r}", offset)
        if not self.kinds[-1] & _FORMULA:
            raise self._error("a path, but a formula is expected: write <path>tt", 0)
        return tuple(self.postfix)

    def _read_operand(self, token: str, offset: int) -> bool:
        """Read a token in operand position; return whether an operand is still expected."""
        words = self.words
        if token in words.opening or token in words.prefix:
            self.waiting.append(("WX" if token == "N" else token, offset))
            return True
        is_name = token[0] == '"' or token[0] == "_" or token[0].isalpha()
        if not is_name or token in words.binary:
            raise self._unexpected(token, self._expected_operand(), offset)
        if token in words.constants:
            self.postfix.append(token)
            self.kinds.append(_FORMULA | _STEP if token in ("true", "false") else _FORMULA)
        else:
            self.postfix.append(written(named(token), _RESERVED[self.logic]))
            self.kinds.append(_FORMULA | _STEP)
        return False

    def _close(self, token: str, offset: int) -> bool:
        """Close a bracket; return whether an operand, the formula after a path, must follow."""
        self._apply_waiting(0)
        if not self.waiting:
            raise self._error(f"{token!r} without its {_CLOSES[token]!r}", offset)
        bracket, opened = self.waiting.pop()
        if bracket != _CLOSES[token]:
            _, column = self.source.place(opened)
            wanted = f"{_partner(bracket)!r} for the {bracket!r} at column {column}"
            raise self._unexpected(token, wanted, offset)
        if bracket in MODAL:
            self._demand_path(self.kinds[-1], bracket, opened)
            self.waiting.append((MODAL[bracket], opened))
        return bracket in MODAL

    def _apply_waiting(self, binding: int) -> None:
        """Apply pending operators of at least this precedence, back to the last open bracket."""
        while self.waiting and self.waiting[-1][0] not in _CLOSES.values():
            operator, offset = self.waiting[-1]
            if _BINDING.get(operator, _PREFIX) < binding:
                return
            self.waiting.pop()
            self._apply(operator, offset)

    def _apply(self, operator: str, offset: int) -> None:
        """Apply an operator to its operands, which must be of the right category."""
        self.postfix.append(operator)
        kind = self.kinds.pop()
        if operator in ("*", ";", "+"):
            self._demand_path(kind, operator, offset)
            if operator != "*":
                self._demand_path(self.kinds.pop(), operator, offset)
            self.kinds.append(_PATH)
            return
        self._demand_formula(kind, operator, offset)
        if operator == "?":
            kind = _PATH
        elif operator in MODAL.values():
            self.kinds.pop()  # the path, checked when its bracket was closed
            kind = _FORMULA
        elif operator in self.words.binary:
            left = self.kinds.pop()
            self._demand_formula(left, operator, offset)
            kind &= left
        self.kinds.append(kind)

    def _demand_formula(self, kind: int, operator: str, offset: int) -> None:
        if not kind & _FORMULA:
            hint = "a path leads to a formula: write <path>tt"
            raise self._error(f"{operator!r} applies to formulas, not to a path; {hint}", offset)

    def _demand_path(self, kind: int, operator: str, offset: int) -> None:
        if not kind & (_STEP | _PATH):
            hint = "write (formula)? for a test, true for any label"
            raise self._error(f"{operator!r} applies to paths, not to a formula; {hint}", offset)

    def _expected_operand(self) -> str:
        words = self.words
        signs = [repr(sign) for sign in sorted(words.opening | {"!"})]
        operators = sorted(words.prefix - {"!"}) + sorted(words.constants)
        return f"a proposition, {', '.join(operators)} or {' '.join(signs)}"

    def _expected_operator(self) -> str:
        words = self.words
        brackets = [_partner(item) for item, _ in self.waiting if item in _CLOSES.values()][-1:]
        return f"{' '.join(sorted(words.binary | words.postfix) + brackets)} or the end"

    def _unexpected(self, token: str, expected: str, offset: int) -> FormulaError:
        return self._error(f"unexpected {token[:40]!r}, expected {expected}", offset)

    def _error(self, message: str, offset: int) -> FormulaError:
        line, column = self.source.place(offset)
        return self.source.error(FormulaError, message, line=line, column=column)


def _partner(bracket: str) -> str:
    return next(closing for closing, opening in _CLOSES.items() if opening == bracket)


_TOKEN = re.compile(
    rf"\s+|({PLAIN_NAME}|{QUOTED_NAME}|<->|<=>|->|=>|&&|\|\||[][!~&|()<>;+*?])|(\S)"
)


def _tokens(source: Source) -> Iterator[tuple[str, int]]:
    """The tokens in their canonical spelling, with their offsets."""
    count = 0
    for found in _TOKEN.finditer(source.text):
        token, stray = found.groups()
        count += token is not None
        problem = ""
        if stray == '"':
            problem = "'\"' without its partner on the same line, and a name between them"
        elif stray:
            problem = f"unexpected {stray!r}, which occurs in no formula"
        elif count > MAX_TOKENS:
            problem = f"the formula has more than {MAX_TOKENS} operators and names"
        if problem:
            line, column = source.place(found.start())
            raise source.error(FormulaError, problem, line=line, column=column)
        if token:
            yield _SPELLINGS.get(token, token), found.start()
