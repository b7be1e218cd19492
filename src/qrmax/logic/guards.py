"""Boolean guards over named propositions: parse, print, evaluate.

    guard  :=  term ('|' term)*             any of
    term   :=  factor ('&' factor)*         all of
    factor :=  '!' factor | '(' guard ')' | 'true' | 'false' | name | '"' any name '"'

A *label* is the set of propositions that are true in a state; a guard holds for a label or not.

A guard is kept in postfix order (`coffee & !decoration` is `coffee decoration ! &`), so that
parsing, evaluating and printing are loops: no input, however deeply nested, can overflow the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from qrmax.errors import GuardError, shown
from qrmax.source import Source

MAX_TOKENS = 10_000  # a longer guard is surely not written by a person
MAX_TRIALS = 20_000  # of labels, in search of an overlap

Label = frozenset[str]
"""The propositions that are true in a state."""

_LABELS = (
    "a label is a set of propositions, such as {'coffee'} or {'coffee': True}, and () where "
    "nothing is true"
)


def braced(label: Label) -> str:
    """A label as a message shows it."""
    return f"{{{', '.join(sorted(label))}}}"


def as_label(given: Iterable[str], where: str = "a label") -> Label:
    """The propositions that are true: names, or a mapping of names to True and False.

    >>> sorted(as_label({"edge": True, "goal": False}))
    ['edge']
    >>> sorted(as_label(["goal", "edge"]))
    ['edge', 'goal']

    In a mapping a name is true where its value is True or 1, Python's or NumPy's, and false where
    it is False or 0. Anything else is refused, a lone text too: its letters would be taken for
    names. Every label that comes in is read here; `where` says to an error where it came from.
    """
    if isinstance(given, Mapping):
        given = [name for name, value in given.items() if _is_true(name, value, where)]
    if isinstance(given, str):
        raise GuardError(f"{where} is the text {shown(given)}; {_LABELS}: {{{shown(given)}}}")
    try:
        label = frozenset(given)
    except TypeError:
        raise GuardError(f"{where} is {shown(given)}; {_LABELS}") from None
    for name in label:
        if not isinstance(name, str):
            raise GuardError(f"{where} is {shown(given)}, and {shown(name)} is no text; {_LABELS}")
    return label


def _is_true(name: object, value: object, where: str) -> bool:
    """Whether a labelling function says that a proposition is true."""
    flag = isinstance(value, bool | np.bool_)
    if not flag and not (isinstance(value, Integral) and value in (0, 1)):
        raise GuardError(
            f"{where} says that {shown(name)} is {shown(value)}; allowed: True and False, or 1 and "
            "0, as bool(...) gives them"
        )
    return bool(value)


PLAIN_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
QUOTED_NAME = r'"[^"\n]+"'
_CONSTANTS = ("true", "false")
_NAME = re.compile(f"{PLAIN_NAME}|{QUOTED_NAME}")
_SPACE = re.compile(r"\s*")
_BINDING = {"|": 1, "&": 2, "!": 3}
_OPERAND = 4  # binds tighter than any operator
_OPERATORS = "!&|()"
_EXPECTED = "a proposition, true, false, '!' or '('"


def written(name: str, reserved: Iterable[str] = _CONSTANTS) -> str:
    """A proposition as text writes it: in quotes unless it is a plain name that is not reserved.

    >>> written("coffee"), written("hot coffee"), written("true")
    ('coffee', '"hot coffee"', '"true"')
    """
    plain = re.fullmatch(PLAIN_NAME, name) and name not in reserved
    return name if plain else f'"{name}"'


def is_name(item: str) -> bool:
    """Whether an item of the postfix form writes a proposition, not an operator or a constant."""
    return item not in _OPERATORS and item not in _CONSTANTS


def named(text: str) -> str:
    """The proposition that text writes so: `written`, the other way round."""
    return text.strip('"')


@dataclass(frozen=True, slots=True)
class Guard:
    """A Boolean condition on labels, read from text by `Guard.parse`.

    >>> guard = Guard.parse("coffee & !(decoration | mail)")
    >>> guard.holds({"coffee"}), guard.holds({"coffee", "mail"})
    (True, False)
    >>> print(guard)
    coffee & !(decoration | mail)
    """

    postfix: tuple[str, ...]
    propositions: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.postfix, tuple):
            raise GuardError("a guard is read from text by Guard.parse(...), not by Guard(...)")
        names = frozenset(map(named, filter(is_name, self.postfix)))
        object.__setattr__(self, "propositions", names)

    @staticmethod
    def parse(text: str) -> Guard:
        """Read a guard; a `GuardError` shows the column of what is wrong."""
        return Guard(_to_postfix(Source("guard", text)))

    def holds(self, label: Iterable[str]) -> bool:
        """Whether the guard is true where exactly the propositions in `label` are."""
        true = as_label(label)
        verdict = self._value(dict.fromkeys(self.propositions, False) | dict.fromkeys(true, True))
        return verdict is True

    def overlap(self, other: Guard) -> Label | None:
        """A label for which both guards hold, or None where there is no such label.

        >>> sorted(Guard.parse("coffee").overlap(Guard.parse("mail")))
        ['coffee', 'mail']
        >>> Guard.parse("coffee").overlap(Guard.parse("mail & !coffee")) is None
        True
        """
        return Guard((*self.postfix, *other.postfix, "&")).example()

    def but_not(self, other: Guard) -> Guard:
        """The guard that holds where this one does and the other does not.

        >>> print(Guard.parse("coffee").but_not(Guard.parse("mail | mud")))
        coffee & !(mail | mud)
        """
        if self.postfix == ("true",):
            return Guard((*other.postfix, "!"))
        return Guard((*self.postfix, *other.postfix, "!", "&"))

    def example(self) -> Label | None:
        """A label for which the guard holds, or None where there is no such label."""
        names = sorted(self.propositions)
        # decide one name after another, cut what is settled
        undecided: list[dict[str, bool]] = [{}]
        for _ in range(MAX_TRIALS):
            if not undecided:
                return None
            known = undecided.pop()
            verdict = self._value(known)
            if verdict is True:
                return frozenset(name for name, value in known.items() if value)
            if verdict is None:
                name = next(name for name in names if name not in known)
                undecided.append({**known, name: True})
                undecided.append({**known, name: False})
        raise GuardError(
            f"whether {str(self)[:200]!r} can hold takes more than {MAX_TRIALS} trials"
        )

    def _value(self, known: Mapping[str, bool]) -> bool | None:
        """The guard's value where only some propositions are known: True, False or None (open)."""
        stack: list[bool | None] = []
        for item in self.postfix:
            if item == "!":
                value = stack.pop()
                stack.append(None if value is None else not value)
            elif item in ("&", "|"):
                right, left = stack.pop(), stack.pop()
                settles = item == "|"  # one True settles an "or", one False settles an "and"
                if settles in (left, right):
                    stack.append(settles)
                else:
                    stack.append(None if left is None or right is None else not settles)
            elif item in _CONSTANTS:
                stack.append(item == "true")
            else:
                stack.append(known.get(item if item[0] != '"' else named(item)))
        return stack.pop()

    def __str__(self) -> str:
        stack: list[tuple[str, int]] = []  # text and how tightly its outermost operator binds
        for item in self.postfix:
            if item == "!":
                stack.append(("!" + _within(stack.pop(), "!"), _BINDING["!"]))
            elif item in _BINDING:
                right, left = stack.pop(), stack.pop()
                text = f"{_within(left, item)} {item} {_within(right, item, on_the_right=True)}"
                stack.append((text, _BINDING[item]))
            else:
                stack.append((item, _OPERAND))
        return stack.pop()[0]

    def __repr__(self) -> str:
        return f"Guard.parse({str(self)!r})"


def is_proposition(name: str) -> bool:
    """Whether a guard can name this, in quotes if need be.

    >>> is_proposition("hot coffee"), is_proposition("")
    (True, False)
    """
    return _NAME.fullmatch(written(name)) is not None


def _within(operand: tuple[str, int], operator: str, *, on_the_right: bool = False) -> str:
    """The operand's text, in brackets where it would be read otherwise."""
    text, binding = operand
    return text if binding >= _BINDING[operator] + on_the_right else f"({text})"


def _to_postfix(source: Source) -> tuple[str, ...]:
    """Dijkstra's shunting yard; `wants_operand` is all the grammar that is left to check."""
    postfix: list[str] = []
    waiting: list[tuple[str, int]] = []  # operators and open brackets, with their places
    wants_operand = True
    for count, (token, offset) in enumerate(_tokens(source)):
        if count >= MAX_TOKENS:
            raise GuardError(f"a guard of more than {MAX_TOKENS} operators and names")
        if wants_operand:
            if token in "!(":
                waiting.append((token, offset))
            elif token in _OPERATORS:
                raise _error(source, f"unexpected {token!r}, expected {_EXPECTED}", offset)
            else:
                postfix.append(token if token in _CONSTANTS else written(named(token)))
                wants_operand = False
        elif token == ")":
            while waiting and waiting[-1][0] != "(":
                postfix.append(waiting.pop()[0])
            if not waiting:
                raise _error(source, "')' without its '('", offset)
            waiting.pop()
        elif token in "&|":
            while waiting and _BINDING.get(waiting[-1][0], 0) >= _BINDING[token]:
                postfix.append(waiting.pop()[0])
            waiting.append((token, offset))
            wants_operand = True
        else:
            raise _error(source, f"unexpected {token!r}, expected '&', '|' or the end", offset)
    if wants_operand:
        end = len(source.text)
        raise _error(source, f"the guard ends where {_EXPECTED} is expected", end)
    while waiting:
        operator, offset = waiting.pop()
        if operator == "(":
            raise _error(source, "'(' without its ')'", offset)
        postfix.append(operator)
    return tuple(postfix)


def _error(source: Source, message: str, offset: int) -> GuardError:
    line, column = source.place(offset)
    return source.error(GuardError, message, line=line, column=column)


def _tokens(source: Source) -> Iterable[tuple[str, int]]:
    """The tokens and where they begin."""
    text = source.text
    at = _skip_space(text, 0)
    while at < len(text):
        if text[at] in _OPERATORS:
            token = text[at]
        elif name := _NAME.match(text, at):
            token = name.group()
        else:
            raise _error(
                source, f"unexpected {text[at]!r}, expected {_EXPECTED}, '&', '|' or ')'", at
            )
        yield token, at
        at = _skip_space(text, at + len(token))


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
