"""Reduced ordered binary decision diagrams (BDDs), hash-consed.

A node tests one variable and branches to `low` if it is false and to `high` if it is true; a leaf
holds the value of the function. Variables are numbers, tested in ascending order; redundant nodes
are removed and equal nodes shared, so the diagrams are canonical: two functions are equal if and
only if their nodes have the same number.

The leaves FALSE and TRUE make Boolean functions; `leaf` makes terminals with any other value, such
as the successor state under a label (a multi-terminal BDD). All operations are iterative: no
diagram is too deep for Python's stack. A `Diagrams` belongs to one computation and is not
thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable

from qrmax.errors import SizeError

FALSE, TRUE = 0, 1
LEAF = 1 << 60  # the variable of a leaf: last in the order
MAX_NODES = 2_000_000  # a few hundred megabytes


class Diagrams:
    """A store of BDD nodes, which refer to one another by number.

    >>> d = Diagrams()
    >>> a, b = d.variable(0), d.variable(1)
    >>> d.conj(a, d.negate(b)) == d.negate(d.disj(d.negate(a), b))
    True
    """

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self.var = [LEAF, LEAF]  # [node]: the variable
        self.low = [FALSE, TRUE]  # [node]; of a leaf, its value
        self.high = [FALSE, TRUE]  # [node]
        self.max_nodes = max_nodes
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._computed: dict[tuple[int, int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """The node that tests `variable`, which must precede all variables below it."""
        return low if low == high else self._add((variable, low, high))

    def leaf(self, value: int) -> int:
        """The constant function with this value; a leaf of its own, never FALSE or TRUE."""
        return self._add((LEAF, value, value))

    def variable(self, number: int) -> int:
        """The function that is true if and only if this variable is."""
        return self.node(number, FALSE, TRUE)

    def negate(self, f: int) -> int:
        """The negation of `f`."""
        return self.ite(f, FALSE, TRUE)

    def conj(self, f: int, g: int) -> int:
        """The conjunction of `f` and `g`."""
        return self.ite(f, g, FALSE) if f < g else self.ite(g, f, FALSE)

    def disj(self, f: int, g: int) -> int:
        """The disjunction of `f` and `g`."""
        return self.ite(f, TRUE, g) if f < g else self.ite(g, TRUE, f)

    def ite(self, test: int, then: int, otherwise: int) -> int:
        """If-then-else: `then` if `test` is true, else `otherwise`."""
        trivial = _terminal_case(test, then, otherwise)
        if trivial >= 0:
            return trivial
        var, low, high, computed = self.var, self.low, self.high, self._computed
        goal = (test, then, otherwise)
        open_goals = [] if goal in computed else [goal]
        while open_goals:
            f, g, h = key = open_goals[-1]
            if key in computed:
                open_goals.pop()
                continue
            top = min(var[f], var[g], var[h])
            f0, f1 = (low[f], high[f]) if var[f] == top else (f, f)
            g0, g1 = (low[g], high[g]) if var[g] == top else (g, g)
            h0, h1 = (low[h], high[h]) if var[h] == top else (h, h)
            if (if_false := _terminal_case(f0, g0, h0)) < 0:
                if_false = computed.get((f0, g0, h0), -1)
                if if_false < 0:
                    open_goals.append((f0, g0, h0))
            if (if_true := _terminal_case(f1, g1, h1)) < 0:
                if_true = computed.get((f1, g1, h1), -1)
                if if_true < 0:
                    open_goals.append((f1, g1, h1))
            if if_false >= 0 and if_true >= 0:
                computed[key] = self.node(top, if_false, if_true)
                open_goals.pop()
                if len(computed) > self.max_nodes:
                    raise self._too_many()
        return computed[goal]

    def branches(self, f: int, variable: int) -> tuple[int, int]:
        """The cofactors of `f` with the variable false and true.

        No variable of `f` may precede this one.
        """
        return (self.low[f], self.high[f]) if self.var[f] == variable else (f, f)

    def follow(self, f: int, truth: Callable[[int], bool]) -> int:
        """The leaf that `f` evaluates to under the assignment `truth`."""
        while (variable := self.var[f]) != LEAF:
            f = self.high[f] if truth(variable) else self.low[f]
        return f

    def _add(self, key: tuple[int, int, int]) -> int:
        number = self._nodes.get(key)
        if number is None:
            number = self._nodes[key] = len(self.var)
            if number > self.max_nodes:
                raise self._too_many()
            variable, low, high = key
            self.var.append(variable)
            self.low.append(low)
            self.high.append(high)
        return number

    def _too_many(self) -> SizeError:
        return SizeError(f"decision diagrams of more than {self.max_nodes} nodes")


def _terminal_case(f: int, g: int, h: int) -> int:
    """The result of `ite` in its terminal cases, else -1."""
    if f == TRUE or g == h:
        return g
    if f == FALSE:
        return h
    if g == TRUE and h == FALSE:
        return f
    return -1
