"""Random formulas as trees, written and evaluated here without the library.

A tree is a name, a constant, or an operator with its operands: ("U", tree, tree). The evaluator is
the definition of each logic, position by position; position `len(trace)` is the end.
"""

from __future__ import annotations

from itertools import product
from random import Random

Tree = str | tuple
Trace = list[frozenset[str]]

ATOMS = ("a", "b", "c")
LABELS = [
    frozenset(x for x, on in zip(ATOMS, bits, strict=True) if on)
    for bits in product((0, 1), repeat=3)
]

_UNARY = {"ltlf": ("!", "X", "WX", "F", "G"), "ldlf": ("!",), "ppltl": ("!", "Y", "WY", "O", "H")}
_BINARY = {
    "ltlf": ("&", "|", "->", "<->", "U", "R", "W", "M"),
    "ldlf": ("&", "|", "->", "<->", "<>", "<>", "<>", "[]", "[]", "[]"),
    "ppltl": ("&", "|", "->", "<->", "S"),
}
_CONSTANTS = {
    "ltlf": ("true", "false", "last"),
    "ldlf": ("tt", "ff", "end", "last"),
    "ppltl": ("true", "false"),
}


def random_tree(logic: str, depth: int, rng: Random) -> Tree:
    """A formula of at most this depth."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(ATOMS if rng.random() < 0.85 else _CONSTANTS[logic])
    operator = rng.choice(_UNARY[logic] + _BINARY[logic])
    if operator in ("<>", "[]"):
        return (operator, _random_path(depth - 1, rng), random_tree(logic, depth - 1, rng))
    operands = 1 if operator in _UNARY[logic] else 2
    return (operator, *(random_tree(logic, depth - 1, rng) for _ in range(operands)))


def _random_path(depth: int, rng: Random) -> Tree:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([*ATOMS, "true", ("!", "a"), ("&", "a", ("!", "b")), ("|", "b", "c")])
    operator = rng.choice(("*", "*", "?", ";", ";", "+"))
    if operator == "?":
        return (operator, random_tree("ldlf", depth - 1, rng))
    return (operator, *(_random_path(depth - 1, rng) for _ in range(1 if operator == "*" else 2)))


def random_trace(rng: Random, longest: int = 7) -> Trace:
    """Labels over the three atoms."""
    return [rng.choice(LABELS) for _ in range(rng.randint(0, longest))]


def write(tree: Tree) -> str:
    """The tree as text, with every bracket."""
    if isinstance(tree, str):
        return tree
    operator, *operands = tree
    texts = [f"({write(operand)})" for operand in operands]
    if operator in ("<>", "[]"):
        return operator[0] + texts[0] + operator[1] + texts[1]
    if operator in ("*", "?"):
        return texts[0] + operator
    return f"{operator} {texts[0]}" if len(texts) == 1 else f" {operator} ".join(texts)


def holds(tree: Tree, trace: Trace, logic: str) -> bool:
    """Whether the trace satisfies the formula."""
    return _holds(tree, trace, len(trace) - 1 if logic == "ppltl" else 0)


def _holds(tree: Tree, trace: Trace, i: int) -> bool:
    here = range(i, len(trace)) if i >= 0 else range(0)  # the labels from i on
    past = range(min(i, len(trace) - 1) + 1)  # the labels up to i
    is_label = 0 <= i < len(trace)
    match tree:
        case "true" | "tt":
            return True
        case "false" | "ff":
            return False
        case "end":
            return not is_label
        case "last":
            return is_label and i == len(trace) - 1
        case str():
            return is_label and tree in trace[i]
        case ("!", f):
            return not _holds(f, trace, i)
        case ("&", f, g):
            return _holds(f, trace, i) and _holds(g, trace, i)
        case ("|", f, g):
            return _holds(f, trace, i) or _holds(g, trace, i)
        case ("->", f, g):
            return not _holds(f, trace, i) or _holds(g, trace, i)
        case ("<->", f, g):
            return _holds(f, trace, i) == _holds(g, trace, i)
        case ("X", f):
            return i + 1 < len(trace) and _holds(f, trace, i + 1)
        case ("WX", f):
            return i + 1 >= len(trace) or _holds(f, trace, i + 1)
        case ("F", f):
            return any(_holds(f, trace, j) for j in here)
        case ("G", f):
            return all(_holds(f, trace, j) for j in here)
        case ("U", f, g):
            return any(
                _holds(g, trace, j) and all(_holds(f, trace, k) for k in range(i, j)) for j in here
            )
        case ("R", f, g):
            return all(
                _holds(g, trace, j) or any(_holds(f, trace, k) for k in range(i, j)) for j in here
            )
        case ("W", f, g):
            return _holds(("U", f, g), trace, i) or all(_holds(f, trace, j) for j in here)
        case ("M", f, g):
            return any(
                _holds(f, trace, j) and all(_holds(g, trace, k) for k in range(i, j + 1))
                for j in here
            )
        case ("Y", f):
            return i > 0 and _holds(f, trace, i - 1)
        case ("WY", f):
            return i <= 0 or _holds(f, trace, i - 1)
        case ("O", f):
            return any(_holds(f, trace, j) for j in past)
        case ("H", f):
            return all(_holds(f, trace, j) for j in past)
        case ("S", f, g):
            return any(
                _holds(g, trace, j) and all(_holds(f, trace, k) for k in range(j + 1, i + 1))
                for j in past
            )
        case ("<>", r, f):
            return any(_holds(f, trace, j) for j in _reached(r, trace, {i}))
        case ("[]", r, f):
            return all(_holds(f, trace, j) for j in _reached(r, trace, {i}))
    raise ValueError(tree)


def _reached(path: Tree, trace: Trace, sources: set[int]) -> set[int]:
    match path:
        case ("?", f):
            return {i for i in sources if _holds(f, trace, i)}
        case (";", r, s):
            return _reached(s, trace, _reached(r, trace, sources))
        case ("+", r, s):
            return _reached(r, trace, sources) | _reached(s, trace, sources)
        case ("*", r):
            reached, new = set(sources), set(sources)
            while new:
                new = _reached(r, trace, new) - reached
                reached |= new
            return reached
    return {i + 1 for i in sources if i < len(trace) and _holds(path, trace, i)}
