"""Other tools' solvers for a discounted tabular MDP, each in its best known setting.

They are the peers of a benchmark, so every choice here favours the peer: the settings were
picked by measurement, and imports, compilation and set-up are not timed.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
FLOOR = 1e-13  # of max |V|: no absolute tolerance below it, double precision would not reach it


class Mdp(NamedTuple):
    """Maximise the discounted reward; zero-probability padding and repeated successors are fine."""

    succ: NDArray[np.int32]  # [S, A, K]
    prob: Floats  # [S, A, K]
    reward: Floats  # [S, A], expected on one step
    terminal: NDArray[np.bool_]  # [S], absorbing with value 0
    start: int
    gamma: float
    error: float  # wanted error, relative to |V(start)| and, in the sup norm, to max |V|


class Solution(NamedTuple):
    """What a peer found, and how long it took."""

    value: Floats  # [S]
    build: float  # seconds to make the tool's own model of the arrays
    solve: float  # seconds from that model to `value`


class Pairs(NamedTuple):
    """One row per enabled state-action pair, by state; a terminal state has a single row."""

    matrix: sparse.csr_matrix  # canonical: columns sorted, no duplicates, no stored zeros
    reward: Floats
    state: NDArray[np.int64]  # state of each row


def pairs(mdp: Mdp) -> Pairs:
    """The row of a terminal state is a self-loop, for the tools which insist on stochastic rows."""
    states, actions, _ = mdp.succ.shape
    terminal = np.flatnonzero(mdp.terminal)
    succ, prob = mdp.succ.copy(), mdp.prob.copy()
    prob[terminal] = 0.0
    prob[terminal, 0, 0] = 1.0
    succ[terminal, 0, 0] = terminal
    enabled = ~mdp.terminal[:, None] | (np.arange(actions) == 0)
    matrix = _csr(succ, prob, states)
    # A disabled pair has an empty row by now, so it goes by dropping its pointer.
    pointer = matrix.indptr[np.append(enabled.ravel(), True)]
    matrix = sparse.csr_matrix(
        (matrix.data, matrix.indices, pointer), shape=(pointer.size - 1, states)
    )
    reward = np.where(mdp.terminal[:, None], 0.0, mdp.reward)[enabled]
    return Pairs(matrix, reward, np.nonzero(enabled)[0])


def _csr(succ: NDArray[np.int32], prob: Floats, states: int) -> sparse.csr_matrix:
    width = succ.shape[-1]
    pointer = np.arange(0, succ.size + 1, width, dtype=np.int32)
    matrix = sparse.csr_matrix(
        (prob.ravel().copy(), succ.ravel().copy(), pointer), shape=(pointer.size - 1, states)
    )
    matrix.eliminate_zeros()
    matrix.sum_duplicates()  # also sorts the columns
    return matrix


def _tighten(solve: Callable[[Floats | None, float], Floats], mdp: Mdp) -> Floats:
    """Run a solver of absolute tolerance until it is small enough for |V(start)|, unknown before.

    Each run starts from the last one's value, so the total costs hardly more than the last alone.
    """
    tolerance = mdp.error * float(np.abs(mdp.reward).max())
    value = solve(None, tolerance)
    while True:
        at_start, top = abs(float(value[mdp.start])), float(np.abs(value).max())
        # A start which is still lost in the tolerance gets a thousandth of it, down to `FLOOR`.
        wanted = max(mdp.error * at_start, 1e-3 * tolerance, FLOOR * top)
        if tolerance <= wanted:
            return value
        tolerance = 0.99 * wanted  # what `value` lacks must not call for one more run
        value = solve(value, tolerance)


def _tiny() -> Mdp:
    """A first call on this one keeps a tool's compilation and set-up out of the times."""
    succ = np.array([[[1], [0]], [[1], [1]]], dtype=np.int32)
    reward = np.array([[1.0, 0.0], [0.0, 0.0]])
    return Mdp(succ, np.ones(succ.shape), reward, np.array([False, True]), 0, 0.5, 1e-3)


# --- QuantEcon


def solve_quantecon(mdp: Mdp, k: int = 3) -> Solution:
    """`DiscreteDP` over sparse state-action pairs, by modified policy iteration.

    A small `k` suits problems whose rewards are far away: the greedy policy then changes with
    every sweep, and more inner steps evaluate a policy which is about to be dropped.
    """
    _quantecon(_tiny(), k)
    return _quantecon(mdp, k)


def _quantecon(mdp: Mdp, k: int) -> Solution:
    from quantecon.markov import DiscreteDP

    begin = perf_counter()
    rows = pairs(mdp)
    actions = np.arange(rows.state.size) - np.searchsorted(rows.state, rows.state)
    model = DiscreteDP(rows.reward, rows.matrix, mdp.gamma, rows.state, actions)
    built = perf_counter()

    def run(initial: Floats | None, tolerance: float) -> Floats:
        # Its value is within half of epsilon.
        found = model.solve(
            "modified_policy_iteration", initial, epsilon=2 * tolerance, max_iter=1_000_000, k=k
        )
        value: Floats = found.v
        return value

    value = _tighten(run, mdp)
    return Solution(value, built - begin, perf_counter() - built)


# --- SciPy


def solve_scipy(mdp: Mdp) -> Solution:
    """Jacobi value iteration: one sparse product and one maximum a sweep."""
    states, actions, _ = mdp.succ.shape
    begin = perf_counter()
    # Action-major rows, so that the maximum runs over long contiguous vectors (a maximum over a
    # short last axis is several times slower in numpy). Terminal rows are empty: value 0.
    live = ~mdp.terminal
    prob = np.ascontiguousarray((mdp.prob * (mdp.gamma * live)[:, None, None]).swapaxes(0, 1))
    matrix = _csr(np.ascontiguousarray(mdp.succ.swapaxes(0, 1)), prob, states)
    reward = np.ascontiguousarray((mdp.reward * live[:, None]).T)
    built = perf_counter()

    contraction = mdp.gamma / (1.0 - mdp.gamma)
    value = np.zeros(states)
    while True:
        q = (matrix @ value).reshape(actions, states)
        q += reward
        new = q.max(axis=0)
        np.subtract(new, value, out=value)
        bound = contraction * np.abs(value, out=value).max()
        value = new
        if bound <= mdp.error * abs(value[mdp.start]) or bound <= FLOOR * np.abs(value).max():
            break
    return Solution(value, built - begin, perf_counter() - built)


# --- Storm


def solve_storm(mdp: Mdp) -> Solution:
    """Storm's sparse engine; topological value iteration (Gauss-Seidel within each component).

    The discount becomes a (1 - gamma) step into a sink. Storm has discounted rewards of its own
    (`Cdiscount`), but solves those by value iteration on the whole model; only the reachability
    form, which wants rewards >= 0, gets the topological solver, twice as fast on these problems.
    If there are only costs, they are what is minimised.
    """
    _storm(_tiny())
    return _storm(mdp)


def _storm(mdp: Mdp) -> Solution:
    import stormpy
    from stormpy import environments

    begin = perf_counter()
    costs = bool((mdp.reward <= 0.0).all())
    leaking = _leaking(mdp._replace(reward=-mdp.reward) if costs else mdp)
    model = _umb_model(pairs(leaking), leaking.terminal, mdp.start)
    built = perf_counter()

    environment = environments.Environment()  # the default one of stormpy is the slower `sound`
    solver = environment.solver().min_max()
    solver.method = environments.MinMaxMethod.TOPOLOGICAL
    solver.relative_termination_criterion = True  # so no scale of the values is needed
    solver.maximal_number_of_iterations = 1_000_000_000
    # Storm stops on the last change; this factor makes that a bound of the error in a component.
    # Errors may add up along the components, so what was achieved has to be checked.
    solver.precision = stormpy.Rational(mdp.error * (1.0 - mdp.gamma) / mdp.gamma)
    best = "min" if costs else "max"
    formula = stormpy.parse_property(f'R{{"r"}}{best}=? [ F "done" ]')
    result = stormpy.model_checking(model, formula, environment=environment)
    value = np.array(result.get_value_vector())[: mdp.terminal.size]
    if costs:
        value = -value
    return Solution(value, built - begin, perf_counter() - built)


def _leaking(mdp: Mdp) -> Mdp:
    """Add a terminal sink as the last state, and let every action leak 1 - gamma into it."""
    states, actions, width = mdp.succ.shape
    succ = np.full((states + 1, actions, width + 1), states, dtype=np.int32)
    prob = np.full(succ.shape, 1.0 - mdp.gamma)
    succ[:-1, :, :-1] = mdp.succ
    np.multiply(mdp.prob, mdp.gamma, out=prob[:-1, :, :-1])
    reward = np.vstack([mdp.reward, np.zeros((1, actions))])
    return mdp._replace(succ=succ, prob=prob, reward=reward, terminal=np.append(mdp.terminal, True))


def _umb_model(rows: Pairs, done: NDArray[np.bool_], start: int) -> object:
    """By a UMB file, Storm's binary exchange format: no Python object per entry is made."""
    import stormpy
    from stormpy.io import UmbImportOptions

    count, states = rows.matrix.shape
    bit = {"type": "bool", "size": 1}
    double = {"type": "double", "size": 64}
    index = {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": states,
            "#initial-states": 1,
            "#choices": count,
            "#choice-actions": 0,
            "#branches": rows.matrix.nnz,
            "#branch-actions": 0,
            "#observations": 0,
            "branch-probability-type": double,
        },
        "annotations": {
            "aps": {"done": {"applies-to": ["states"], "type": bit}},
            "rewards": {"r": {"applies-to": ["choices"], "type": double}},
        },
    }
    files = {
        "index.json": json.dumps(index).encode(),
        "state-to-choices.bin": np.searchsorted(rows.state, np.arange(states + 1)).astype("<u8"),
        "state-is-initial.bin": _bits(np.arange(states) == start),
        "choice-to-branches.bin": rows.matrix.indptr.astype("<u8"),
        "branch-to-target.bin": rows.matrix.indices.astype("<u8"),
        "branch-to-probability.bin": rows.matrix.data.astype("<f8"),
        "annotations/aps/done/states/values.bin": _bits(done),
        "annotations/rewards/r/choices/values.bin": rows.reward.astype("<f8"),
    }
    with tempfile.NamedTemporaryFile(suffix=".umb") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, content in files.items():
                data = content if isinstance(content, bytes) else content.tobytes()
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        file.flush()
        options = UmbImportOptions()
        options.build_state_valuations = False  # there are none
        return stormpy.build_model_from_umb(file.name, options=options)


def _bits(flags: NDArray[np.bool_]) -> bytes:
    """Little-endian bits, padded to whole 64-bit words."""
    packed = np.packbits(flags, bitorder="little").tobytes()
    return packed + bytes(-len(packed) % 8)
