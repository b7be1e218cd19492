"""Layered graph drawing, from left to right, with few crossings.

The method is that of Sugiyama, Tagawa and Toda: back edges are reversed, every link leads from a
layer to a later one, long links are split by dummy nodes, and the order in each layer follows from
the barycentre of the neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

Link = tuple[int, int]

SWEEPS = 12  # over the layers, forth and back
MOST_LINKS = 400  # between two layers, beyond which crossings are not counted


def acyclic(n_nodes: int, links: Sequence[Link], first: int) -> list[Link]:
    """The links made acyclic: back edges of a depth-first search are reversed."""
    ahead: list[list[int]] = [[] for _ in range(n_nodes)]
    for start, end in links:
        ahead[start].append(end)
    state = [0] * n_nodes  # 1 on the current path, 2 done
    back: set[Link] = set()
    for root in (first, *range(n_nodes)):
        walk = [] if state[root] else [(root, iter(ahead[root]))]
        state[root] = state[root] or 1
        while walk:
            node, targets = walk[-1]
            for target in targets:
                if state[target] == 1:
                    back.add((node, target))
                elif state[target] == 0:
                    state[target] = 1
                    walk.append((target, iter(ahead[target])))
                    break
            else:
                state[node] = 2
                walk.pop()
    return [(end, start) if (start, end) in back else (start, end) for start, end in links]


def ranks(n_nodes: int, links: Iterable[Link]) -> list[int]:
    """The layer of each node: one after its last predecessor. The links are acyclic."""
    ahead: list[list[int]] = [[] for _ in range(n_nodes)]
    waiting_for = [0] * n_nodes
    for start, end in links:
        ahead[start].append(end)
        waiting_for[end] += 1
    rank = [0] * n_nodes
    ready = [node for node in range(n_nodes) if not waiting_for[node]]
    for node in ready:  # grows in the loop
        for target in ahead[node]:
            rank[target] = max(rank[target], rank[node] + 1)
            waiting_for[target] -= 1
            if not waiting_for[target]:
                ready.append(target)
    return rank


def ordered(layers: Sequence[Sequence[int]], links: Sequence[Link]) -> list[list[int]]:
    """The layers, each in an order with few crossings; links lead from one layer to the next."""
    before, after = _neighbours(links)
    order = [[*layer] for layer in layers]
    best, fewest = order, _crossings(order, after)
    for sweep in range(SWEEPS):
        order = [[*layer] for layer in order]
        forth = sweep % 2 == 0
        near = before if forth else after
        steps = range(1, len(order)) if forth else range(len(order) - 2, -1, -1)
        for here in steps:
            there = order[here - 1 if forth else here + 1]
            place = {node: i / max(1, len(there) - 1) for i, node in enumerate(there)}
            own = {node: i / max(1, len(order[here]) - 1) for i, node in enumerate(order[here])}
            order[here].sort(
                key=lambda node: _mean([place[n] for n in near.get(node, [])], own[node])
            )
        crossings = _crossings(order, after)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def heights(
    layers: Sequence[Sequence[int]],
    links: Sequence[Link],
    size: Sequence[float],
    anchor: Sequence[float],
    gap: float,
) -> list[float]:
    """The vertical position of each node: near its neighbours, without overlaps.

    `anchor` is how far below the middle of a node its links begin.
    """
    before, after = _neighbours(links)
    middle = [0.0] * len(size)
    for layer in layers:
        for node, y in zip(layer, _apart([0.0] * len(layer), layer, size, gap), strict=True):
            middle[node] = y
    both = {n: [*before.get(n, []), *after.get(n, [])] for n in range(len(size))}
    for sweep in range(3 * SWEEPS):  # from both sides in the end, which straightens lines
        near = both if sweep > 2 * SWEEPS else (before, after)[sweep % 2]
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = [
                _mean([middle[n] + anchor[n] - anchor[v] for n in near.get(v, [])], middle[v])
                for v in layer
            ]
            for node, y in zip(layer, _apart(wanted, layer, size, gap), strict=True):
                middle[node] = y
    return middle


def _apart(
    wanted: list[float], layer: Sequence[int], size: Sequence[float], gap: float
) -> list[float]:
    """The positions closest to the desired ones (least squares) that keep nodes apart.

    After subtracting the distances, this is isotonic regression by pooling adjacent violators.
    """
    offset, offsets = 0.0, list[float]()
    for i, node in enumerate(layer):
        if i:
            offset += (size[layer[i - 1]] + size[node]) / 2 + gap
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []  # sum of the desired positions, and their number
    for place, off in zip(wanted, offsets, strict=True):
        blocks.append((place - off, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1] = (blocks[-1][0] + total, blocks[-1][1] + count)
    level = [total / count for total, count in blocks for _ in range(count)]
    return [base + off for base, off in zip(level, offsets, strict=True)]


def _neighbours(links: Iterable[Link]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for start, end in links:
        after.setdefault(start, []).append(end)
        before.setdefault(end, []).append(start)
    return before, after


def _crossings(order: Sequence[Sequence[int]], after: dict[int, list[int]]) -> int:
    found = 0
    for layer, following in pairwise(order):
        place = {node: i for i, node in enumerate(following)}
        spans = [(i, place[end]) for i, node in enumerate(layer) for end in after.get(node, [])]
        if len(spans) <= MOST_LINKS:
            found += sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(spans, 2))
    return found


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
