"""Random reward machines over given propositions.

    sequence     visit some propositions in order
    any-order    visit two to four of them, in any order
    branching    after a common beginning, whatever is visited first decides what comes next, and
                 the reward: 1 in one branch, less in the others
    patrol       visit some in order, for a reward of 1, again and again: there is no end
    restart      a sequence, in which one more proposition sends the machine back to its start

They have 3 to 16 states, a patrol 2 to 4. Rewards are positive, and no state is a failure: from
every state that is not terminal, visiting the right propositions leads to a reward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.worlds.draws import Draws

DONE = "done"
LONGEST = 8  # propositions of a sequence
MOST_IN_ANY_ORDER = 4  # 2**4 states
REWARDS = (0.25, 0.5, 0.75)  # of the lesser branches

Names = Sequence[str]


def random_task(draws: Draws, names: Names, kinds: Sequence[str]) -> RewardMachine:
    """Draw a task of one of these kinds over two propositions or more; a restart needs three.

    >>> random_task(Draws(1, "a task"), ["a", "b", "c"], ["any-order"]).description
    'a, b and c, in any order'
    """
    return _KINDS[draws.one_of(kinds)](draws, names)


def _sequence(draws: Draws, names: Names) -> RewardMachine:
    order = _walk(draws, names, draws.integer(2, LONGEST))
    return _done(_chain(order, DONE), "sequence", ", then ".join(order))


def _any_order(draws: Draws, names: Names) -> RewardMachine:
    most = min(MOST_IN_ANY_ORDER, len(names))
    wanted = sorted(draws.some_of(names, draws.integer(2, most)))
    edges = []
    for count in range(len(wanted)):
        for seen in combinations(wanted, count):
            for name in wanted:
                if name not in seen:
                    after = tuple(sorted((*seen, name)))
                    last = len(after) == len(wanted)
                    target = DONE if last else _visited(after)
                    edges.append(Edge(_visited(seen), name, target, float(last)))
    listed = f"{', '.join(wanted[:-1])} and {wanted[-1]}, in any order"
    return _done(edges, "any-order", listed, initial=_visited(()))


def _visited(names: Sequence[str]) -> str:
    return "+".join(names) or "none"


def _branching(draws: Draws, names: Names) -> RewardMachine:
    begin = _walk(draws, names, draws.integer(0, 2))
    firsts = draws.some_of([n for n in names if n not in begin[-1:]], draws.integer(2, 3))
    if len(firsts) < 2:  # with two propositions a common beginning leaves no choice
        begin, firsts = [], draws.shuffled(names)
    edges = _chain(begin, "choice") if begin else []
    edges = [Edge(e.source, e.guard, e.target) for e in edges]  # no reward before the choice
    said = []
    for number, first in enumerate(firsts):
        steps = [first, *_walk(draws, names, draws.integer(1, 3), after=first)]
        reward = 1.0 if number == 0 else draws.one_of(REWARDS)
        edges += _chain(steps, DONE, reward, prefix=f"{first}-", initial="choice")
        said.append(f"{', then '.join(steps)} (reward {reward:g})")
    beginning = "".join(f"{name}, then " for name in begin)
    description = f"{beginning}{'either ' if begin else ''}{', or '.join(said)}"
    return _done(edges, "branching", description, initial="q0" if begin else "choice")


def _patrol(draws: Draws, names: Names) -> RewardMachine:
    order = draws.some_of(names, draws.integer(2, min(4, len(names))))
    edges = _chain(order, "q0")
    return RewardMachine(
        edges, initial="q0", name="patrol", description=f"{', '.join(order)}, again and again"
    )


def _restart(draws: Draws, names: Names) -> RewardMachine:
    back, *others = draws.shuffled(names)
    order = _walk(draws, others, draws.integer(2, 4))
    edges = _chain(order, DONE)
    edges += [Edge(f"q{place}", back, "q0") for place in range(1, len(order))]
    return _done(edges, "restart", f"{', then '.join(order)}, with {back} back to the start")


_KINDS: dict[str, Callable[[Draws, Names], RewardMachine]] = {
    "sequence": _sequence,
    "any-order": _any_order,
    "branching": _branching,
    "patrol": _patrol,
    "restart": _restart,
}


def _walk(draws: Draws, names: Names, length: int, after: str = "") -> list[str]:
    """Propositions of which no two in a row are the same; fewer if there is but one."""
    found: list[str] = []
    for _ in range(length):
        last = found[-1] if found else after
        others = [name for name in names if name != last]
        if others:
            found.append(draws.one_of(others))
    return found


def _chain(
    order: Names, end: str, reward: float = 1.0, prefix: str = "q", initial: str = "q0"
) -> list[Edge]:
    """Edges that lead through these propositions to the state `end`, with a reward on the last."""
    states = [initial, *(f"{prefix}{place}" for place in range(1, len(order))), end]
    return [
        Edge(states[place], name, states[place + 1], reward if place == len(order) - 1 else 0.0)
        for place, name in enumerate(order)
    ]


def _done(edges: Sequence[Edge], name: str, description: str, initial: str = "q0") -> RewardMachine:
    return RewardMachine(edges, initial=initial, success=[DONE], name=name, description=description)
