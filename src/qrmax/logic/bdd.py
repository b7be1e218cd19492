"""Decision diagrams: functions of true and false, each of them kept once.

A node asks for one variable and goes on to `low` where it is false and to `high` where it is true;
a leaf holds what the function is worth. Variables are numbers, asked in ascending order; a node
whose branches are the same is left out, and equal nodes are one. So two functions are equal exactly
where their nodes are the same number.

The leaves FALSE and TRUE make Boolean functions; any other number can be a `leaf`, too, the state
that a label leads to, say. All work is done in loops: no diagram is too deep for Python's stack.
Diagrams belong to one computation: nothing is shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable

from qrmax.errors import SizeError

FALSE, TRUE = 0, 1
LEAF = 1 << 60  # the variable of a leaf: after all others
MAX_NODES = 2_000_000  # some hundred megabytes


class Diagrams:
    """Nodes that refer to one another by number.

    >>> d = Diagrams()
    >>> a, b = d.variable(0), d.variable(1)
    >>> d.both(a, d.no(b)) == d.no(d.either(d.no(a), b))
    True
    """

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self.asks = [LEAF, LEAF]  # [node]: the variable
        self.low = [FALSE, TRUE]  # [node]; of a leaf, its value
        self.high = [FALSE, TRUE]  # [node]
        self.max_nodes = max_nodes
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """Ask for a variable that comes before all those below."""
        return low if low == high else self._add((variable, low, high))

    def leaf(self, value: int) -> int:
        """The function that is always worth this number, not to be confused with FALSE or TRUE."""
        return self._add((LEAF, value, value))

    def variable(self, number: int) -> int:
        """The function that is true where this variable is."""
        return self.node(number, FALSE, TRUE)

    def no(self, f: int) -> int:
        """True where `f` is false."""
        return self.choose(f, FALSE, TRUE)

    def both(self, f: int, g: int) -> int:
        """True where `f` and `g` are."""
        return self.choose(f, g, FALSE) if f < g else self.choose(g, f, FALSE)

    def either(self, f: int, g: int) -> int:
        """True where `f` or `g` is."""
        return self.choose(f, TRUE, g) if f < g else self.choose(g, TRUE, f)

    def choose(self, test: int, then: int, otherwise: int) -> int:
        """Worth what `then` is where `test` is true, and what `otherwise` is where it is false."""
        simple = _simple(test, then, otherwise)
        if simple >= 0:
            return simple
        asks, low, high, chosen = self.asks, self.low, self.high, self._chosen
        goal = (test, then, otherwise)
        open_goals = [] if goal in chosen else [goal]
        while open_goals:
            f, g, h = key = open_goals[-1]
            if key in chosen:
                open_goals.pop()
                continue
            top = min(asks[f], asks[g], asks[h])
            f0, f1 = (low[f], high[f]) if asks[f] == top else (f, f)
            g0, g1 = (low[g], high[g]) if asks[g] == top else (g, g)
            h0, h1 = (low[h], high[h]) if asks[h] == top else (h, h)
            if (no := _simple(f0, g0, h0)) < 0:
                no = chosen.get((f0, g0, h0), -1)
                if no < 0:
                    open_goals.append((f0, g0, h0))
            if (yes := _simple(f1, g1, h1)) < 0:
                yes = chosen.get((f1, g1, h1), -1)
                if yes < 0:
                    open_goals.append((f1, g1, h1))
            if no >= 0 and yes >= 0:
                chosen[key] = self.node(top, no, yes)
                open_goals.pop()
                if len(chosen) > self.max_nodes:
                    raise self._too_many()
        return chosen[goal]

    def branches(self, f: int, variable: int) -> tuple[int, int]:
        """What `f` comes to where the variable is false, and where it is true.

        Nothing that `f` asks for may come before this variable.
        """
        return (self.low[f], self.high[f]) if self.asks[f] == variable else (f, f)

    def follow(self, f: int, truth: Callable[[int], bool]) -> int:
        """The leaf that `f` comes to where variables are as `truth` says."""
        while (variable := self.asks[f]) != LEAF:
            f = self.high[f] if truth(variable) else self.low[f]
        return f

    def _add(self, key: tuple[int, int, int]) -> int:
        number = self._nodes.get(key)
        if number is None:
            number = self._nodes[key] = len(self.asks)
            if number > self.max_nodes:
                raise self._too_many()
            variable, low, high = key
            self.asks.append(variable)
            self.low.append(low)
            self.high.append(high)
        return number

    def _too_many(self) -> SizeError:
        return SizeError(f"decision diagrams of more than {self.max_nodes} nodes")


def _simple(f: int, g: int, h: int) -> int:
    """What `choose` comes to where that can be seen at once, else -1."""
    if f == TRUE or g == h:
        return g
    if f == FALSE:
        return h
    if g == TRUE and h == FALSE:
        return f
    return -1
