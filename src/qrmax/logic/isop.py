"""Guards to decision diagrams, and decision diagrams to readable guards.

A diagram is written as an irredundant sum of products (Minato and Morreale's ISOP): a disjunction
of cubes from which no cube, and no literal of a cube, can be dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from qrmax.errors import GuardError, SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.guards import MAX_TOKENS, Guard, is_name, named, written
from qrmax.logic.trampoline import Steps, trampoline
from qrmax.logic.transitions import Transitions, state_ref

MAX_NODES = 20_000  # of the diagrams used to shorten a guard

Cube = tuple[tuple[int, bool], ...]
"""A conjunction of literals: propositions by number, each with the value it must have."""


def diagram_of(guard: Guard, diagrams: Diagrams, numbers: Mapping[str, int]) -> int:
    """The diagram of a guard; `numbers` are the variables of its propositions."""
    stack: list[int] = []
    for item in guard.postfix:
        if item == "!":
            stack.append(diagrams.negate(stack.pop()))
        elif item in ("&", "|"):
            right, left = stack.pop(), stack.pop()
            combine = diagrams.conj if item == "&" else diagrams.disj
            stack.append(combine(left, right))
        elif item in ("true", "false"):
            stack.append(TRUE if item == "true" else FALSE)
        else:
            stack.append(diagrams.variable(numbers[named(item)]))
    return stack.pop()


def labels_by_target(transitions: Transitions, source: int, diagrams: Diagrams) -> dict[int, int]:
    """For each successor of a state, the characteristic function of the labels leading there."""
    found: dict[int, dict[int, int]] = {}  # of refs
    ahead = [transitions.root[source]]
    while ahead:
        ref = ahead[-1]
        if ref < 0:
            found[ref] = {state_ref(ref): TRUE}
            ahead.pop()
            continue
        low, high = transitions.low[ref], transitions.high[ref]
        if low in found and high in found:
            if_false, if_true = found[low], found[high]
            found[ref] = {
                target: diagrams.node(
                    transitions.var[ref],
                    if_false.get(target, FALSE),
                    if_true.get(target, FALSE),
                )
                for target in {**if_false, **if_true}
            }
            ahead.pop()
        else:
            ahead += (low, high)
    return dict(sorted(found[transitions.root[source]].items()))


def guard_of(function: int, diagrams: Diagrams, names: Sequence[str]) -> Guard:
    """The guard of a diagram, as an irredundant sum of products.

    >>> d = Diagrams()
    >>> a, b, c = map(d.variable, range(3))
    >>> print(guard_of(d.disj(d.conj(a, b), d.conj(d.negate(a), c)), d, ["a", "b", "c"]))
    a & b | !a & c
    """
    cubes = sorted(cubes_of(function, diagrams), key=_shortest_first)
    postfix: list[str] = []
    for number, cube in enumerate(cubes):
        for place, (proposition, is_true) in enumerate(cube):
            postfix += [written(names[proposition]), *([] if is_true else ["!"])]
            postfix += ["&"] if place else []
        postfix += [] if cube else ["true"]
        postfix += ["|"] if number else []
    return Guard(tuple(postfix or ["false"]))


def shortened(guard: Guard) -> Guard:
    """An equivalent guard as a sum of products, if that is shorter; else the guard itself.

    >>> print(shortened(Guard.parse("!(a & b) & a & (c | !c)")))
    a & !b
    """
    names = list(dict.fromkeys(map(named, filter(is_name, guard.postfix))))
    diagrams = Diagrams(MAX_NODES)
    try:
        function = diagram_of(guard, diagrams, {name: n for n, name in enumerate(names)})
        short = guard_of(function, diagrams, names)
    except (SizeError, GuardError):  # too large: left as it is
        return guard
    return short if len(short.postfix) < len(guard.postfix) else guard


def cubes_of(function: int, diagrams: Diagrams) -> list[Cube]:
    """An irredundant set of cubes whose disjunction is the function."""
    if function == FALSE:
        return []
    cover = trampoline(_isop(function, function, diagrams, {}))
    return [_unchained(chain) for chain in cover.cubes]


Chain: TypeAlias = "tuple[int, bool, Chain] | None"
"""A cube as a linked list of literals, so that cubes share their tails."""


class Cover(NamedTuple):
    """A function and its cubes."""

    function: int
    cubes: list[Chain]
    size: int  # literals in all cubes


EMPTY, TAUTOLOGY = Cover(FALSE, [], 0), Cover(TRUE, [None], 0)


def _isop(lower: int, upper: int, d: Diagrams, known: dict[tuple[int, int], Cover]) -> Steps[Cover]:
    """An irredundant cover of some function between the bounds `lower` and `upper`."""
    if lower == FALSE:
        return EMPTY
    if upper == TRUE:
        return TAUTOLOGY
    if (lower, upper) not in known:
        variable = min(d.var[lower], d.var[upper])
        lower_0, lower_1 = d.branches(lower, variable)
        upper_0, upper_1 = d.branches(upper, variable)
        # Cubes with the variable cover what no cube without it can.
        low: Cover = yield _isop(d.conj(lower_0, d.negate(upper_1)), upper_0, d, known)
        high: Cover = yield _isop(d.conj(lower_1, d.negate(upper_0)), upper_1, d, known)
        left_0 = d.conj(lower_0, d.negate(low.function))
        left_1 = d.conj(lower_1, d.negate(high.function))
        rest: Cover = yield _isop(d.disj(left_0, left_1), d.conj(upper_0, upper_1), d, known)
        cubes: list[Chain] = [(variable, True, cube) for cube in high.cubes]
        cubes += [(variable, False, cube) for cube in low.cubes]
        size = len(cubes) + low.size + high.size + rest.size
        if size > MAX_TOKENS:
            raise GuardError(f"a guard of more than {MAX_TOKENS} operators and names")
        function = d.disj(d.node(variable, low.function, high.function), rest.function)
        known[lower, upper] = Cover(function, cubes + rest.cubes, size)
    return known[lower, upper]


def _unchained(chain: Chain) -> Cube:
    literals = []
    while chain is not None:
        proposition, is_true, chain = chain
        literals.append((proposition, is_true))
    return tuple(literals)


def _shortest_first(cube: Cube) -> tuple[int, list[tuple[int, bool]]]:
    return len(cube), [(proposition, not is_true) for proposition, is_true in cube]
