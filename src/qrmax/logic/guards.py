"""Boolean guards over named propositions: parse, print, evaluate.

    guard  :=  term ('|' term)*             any of
    term   :=  factor ('&' factor)*         all of
    factor :=  '!' factor | '(' guard ')' | 'true' | 'false' | name | '"' any name '"'

A *label* is the set of propositions that are true in a state; a guard is a predicate on labels.

A guard is stored in postfix order (`coffee & !decoration` is `coffee decoration ! &`), so that
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

MAX_TOKENS = 10_000  # no guard written by hand is longer
MAX_TRIALS = 20_000  # partial assignments, in the search for a satisfying label

Label = frozenset[str]
"""The propositions that are true in a state."""

_LABELS = (
    "a label is a set of propositions, such as {'coffee'} or {'coffee': True}, and () if "
    "none is true"
)


def braced(label: Label) -> str:
    """A label formatted for messages."""
    return f"{{{', '.join(sorted(label))}}}"


def as_label(given: Iterable[str], where: str = "a label") -> Label:
    """Convert a labelling function's result: names, or a mapping of names to True or False.

    >>> sorted(as_label({"edge": True, "goal": False}))
    ['edge']
    >>> sorted(as_label(["goal", "edge"]))
    ['edge', 'goal']

    In a mapping the values may be True, False, 1 or 0, Python's or NumPy's. Anything else is an
    error, including a single string, whose letters would be taken for names. Every label from
    outside goes through here; `where` tells an error message where it came from.
    """
    if isinstance(given, Mapping):
        given = [name for name, value in given.items() if _is_true(name, value, where)]
    if isinstance(given, str):
        raise GuardError(f"{where} is the string {shown(given)}; {_LABELS}: {{{shown(given)}}}")
    try:
        label = frozenset(given)
    except TypeError:
        raise GuardError(f"{where} is {shown(given)}; {_LABELS}") from None
    for name in label:
        if not isinstance(name, str):
            raise GuardError(
                f"{where} is {shown(given)}, and {shown(name)} is not a string; {_LABELS}"
            )
    return label


def _is_true(name: object, value: object, where: str) -> bool:
    """Whether a labelling function gave a proposition a true value."""
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
    """A proposition as source text: quoted unless it is an identifier that is not reserved.

    >>> written("coffee"), written("hot coffee"), written("true")
    ('coffee', '"hot coffee"', '"true"')
    """
    plain = re.fullmatch(PLAIN_NAME, name) and name not in reserved
    return name if plain else f'"{name}"'


def is_name(item: str) -> bool:
    """Whether an item of the postfix form is a proposition, not an operator or a constant."""
    return item not in _OPERATORS and item not in _CONSTANTS


def named(text: str) -> str:
    """The proposition that source text denotes; the inverse of `written`."""
    return text.strip('"')


@dataclass(frozen=True, slots=True)
class Guard:
    """A Boolean condition on labels, made by `Guard.parse`.

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
            raise GuardError("a guard is made by Guard.parse(...), not by Guard(...)")
        names = frozenset(map(named, filter(is_name, self.postfix)))
        object.__setattr__(self, "propositions", names)

    @staticmethod
    def parse(text: str) -> Guard:
        """Parse a guard; a `GuardError` shows the column of a syntax error."""
        return Guard(_to_postfix(Source("guard", text)))

    def holds(self, label: Iterable[str]) -> bool:
        """Whether the guard is true when exactly the propositions in `label` are."""
        true = as_label(label)
        verdict = self._value(dict.fromkeys(self.propositions, False) | dict.fromkeys(true, True))
        return verdict is True

    def overlap(self, other: Guard) -> Label | None:
        """A label for which both guards hold, or None if there is none.

        >>> sorted(Guard.parse("coffee").overlap(Guard.parse("mail")))
        ['coffee', 'mail']
        >>> Guard.parse("coffee").overlap(Guard.parse("mail & !coffee")) is None
        True
        """
        return Guard((*self.postfix, *other.postfix, "&")).example()

    def but_not(self, other: Guard) -> Guard:
        """The guard that holds if this one does and the other does not.

        >>> print(Guard.parse("coffee").but_not(Guard.parse("mail | mud")))
        coffee & !(mail | mud)
        """
        if self.postfix == ("true",):
            return Guard((*other.postfix, "!"))
        return Guard((*self.postfix, *other.postfix, "!", "&"))

    def example(self) -> Label | None:
        """A label for which the guard holds, or None if it is unsatisfiable."""
        names = sorted(self.propositions)
        # branch on one proposition at a time, pruning decided assignments
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
            f"deciding whether {str(self)[:200]!r} can hold takes more than {MAX_TRIALS} trials"
        )

    def _value(self, known: Mapping[str, bool]) -> bool | None:
        """The guard's value under a partial assignment: True, False or None (undecided)."""
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
        stack: list[tuple[str, int]] = []  # text, precedence of its outermost operator
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
    """Whether a guard can name this proposition, in quotes if necessary.

    >>> is_proposition("hot coffee"), is_proposition("")
    (True, False)
    """
    return _NAME.fullmatch(written(name)) is not None


def _within(operand: tuple[str, int], operator: str, *, on_the_right: bool = False) -> str:
    """The operand's text, in parentheses if precedence requires them."""
    text, binding = operand
    return text if binding >= _BINDING[operator] + on_the_right else f"({text})"


def _to_postfix(source: Source) -> tuple[str, ...]:
    """Dijkstra's shunting-yard algorithm; `wants_operand` checks the rest of the grammar."""
    postfix: list[str] = []
    waiting: list[tuple[str, int]] = []  # operators and open brackets, with offsets
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
    """The tokens with their offsets."""
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
