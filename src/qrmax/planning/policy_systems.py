"""The value of one policy on one machine layer, as a sparse linear system that is solved directly.

For the pairs x of a layer, with everything that leaves the layer on the right-hand side,

    (I - gamma P) v = b,   b(x) = r(x) + gamma sum over x' outside the layer of P(x' | x) V(x')

Sweeps need about 1 / (1 - gamma) of themselves for this on recurrent chains, and forever on slowly
mixing ones; elimination does not care. Its fill-in stays small if states are connected to few
others nearby (corridors, grids), and if they are not, chains mix fast and a Krylov method needs
a few products only: on large systems that is tried first.

Pairs from which the policy never meets anything but zeros on the right-hand side have the value
zero and are left out: the rest is nonsingular also with gamma = 1 if b is zero on closed classes.
This is the one file of planning that imports SciPy, and only when a system is to be solved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.models import Model

LARGE = 3_000  # unknowns from which on a Krylov method is tried first
KRYLOV_STEPS = 100  # after which elimination is taken to be quicker
KRYLOV_PRECISION = 1e-14  # of the residual, relative; the sweeps that follow do the rest
SPREAD = 10.0  # of neighbours in the best order, times sqrt(n), beyond which systems fill in
TOO_LARGE = 2_000_000  # unknowns that elimination would need too much memory for


def evaluate_layer(
    model: Model, value: FloatArray, policy: IntArray, layer: IntArray, gamma: float
) -> bool:
    """Set V of a layer to that of a policy `[q, s]`; False if that could not be solved for."""
    inside = np.zeros(model.done.shape, np.bool_)
    inside[layer] = ~model.done[layer]
    q, s = np.nonzero(inside)
    matrix, constant = _system(model, value, policy, q, s, gamma)
    relevant = _leads_to(matrix, constant != 0.0)
    found = _solve(matrix[relevant][:, relevant], constant[relevant])
    if found is None:
        return False
    value[q, s] = 0.0
    value[q[relevant], s[relevant]] = found
    return True


def _system(
    model: Model,
    value: FloatArray,
    policy: IntArray,
    q: NDArray[np.intp],
    s: NDArray[np.intp],
    gamma: float,
) -> tuple[Any, FloatArray]:
    """The sparse matrix gamma P over the pairs (s, q), and b."""
    from scipy.sparse import csr_array

    env, task = model.env, model.task
    a = policy[q, s]
    succ, prob = env.succ[s, a], env.prob[s, a]  # [x, k]
    label = task.label[succ]
    outer = q[:, None]
    constant = env.reward[s, a] + (prob * task.reward[outer, label]).sum(axis=1)
    number = np.full(model.done.shape, -1, np.int64)
    number[q, s] = np.arange(len(q))
    q_next = task.next_state[outer, label]  # [x, k, j]
    column = number[q_next, succ[:, :, None]]
    weight = gamma * prob[:, :, None] * task.prob[outer, label]
    inside = column >= 0
    outside = np.where(inside, 0.0, value[q_next, succ[:, :, None]])
    constant += (weight * outside).sum(axis=(1, 2))
    listed = inside & (weight > 0.0)
    row = np.broadcast_to(np.arange(len(q))[:, None, None], column.shape)
    entries = weight[listed], (row[listed], column[listed])
    return csr_array(entries, shape=(len(q), len(q))), constant


def _leads_to(matrix: Any, wanted: BoolArray) -> NDArray[np.int64]:
    """The rows from which one of those wanted can be reached, in order."""
    from scipy.sparse import block_array, csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n = len(wanted)
    origin = csr_array(wanted[None].astype(np.float64))  # a node before all that are wanted
    backwards = block_array([[matrix.T, None], [origin, csr_array((1, 1))]], format="csr")
    found = breadth_first_order(backwards, n, return_predecessors=False)
    return np.sort(found[found < n]).astype(np.int64)


def _solve(matrix: Any, constant: FloatArray) -> FloatArray | None:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    if not len(constant):
        return constant
    system = eye_array(len(constant), format="csr") - matrix
    if len(constant) > LARGE:
        found = _bicgstab(system, constant)
        if found is not None or len(constant) > TOO_LARGE or _fills_in(system):
            return found
    try:
        factors = splu(
            system.tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,  # an M-matrix needs no pivoting, which would add fill-in
            options={"SymmetricMode": True},
        )
    except (RuntimeError, MemoryError):  # singular to working precision, or too much fill-in
        return None
    found = factors.solve(constant)
    found += factors.solve(constant - system @ found)  # iterative refinement
    return np.asarray(found) if np.isfinite(found).all() else None


def _fills_in(system: Any) -> bool:
    """Whether elimination would make the system about dense: no order keeps neighbours close.

    The mean distance from the diagonal is about sqrt(n) on grids and n / 4 on random graphs.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(system, symmetric_mode=False)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.repeat(place, np.diff(system.indptr))
    spread = float(np.abs(rows - place[system.indices]).mean())
    return spread > SPREAD * math.sqrt(len(order))


def _bicgstab(system: Any, constant: FloatArray) -> FloatArray | None:
    """BiCGSTAB (van der Vorst 1992) for a few steps, or None.

    SciPy's takes inner products in the threads of a BLAS, which differ from machine to machine and
    wait for one another where cores are shared.
    """
    found = np.zeros_like(constant)
    rest = constant.copy()
    shadow, direction = rest.copy(), rest.copy()
    rho, enough = _dot(shadow, rest), KRYLOV_PRECISION**2 * _dot(constant, constant)
    for _ in range(KRYLOV_STEPS):
        along = system @ direction
        alpha = rho / (_dot(shadow, along) or np.nan)
        half = rest - alpha * along
        turned = system @ half
        omega = _dot(turned, half) / (_dot(turned, turned) or np.nan)
        found += alpha * direction + omega * half
        rest = half - omega * turned
        if _dot(rest, rest) <= enough:
            return found
        before, rho = rho, _dot(shadow, rest)
        if not np.isfinite(rho) or 0.0 in (before, omega):  # it has broken down
            break
        direction = rest + (rho / before) * (alpha / omega) * (direction - omega * along)
    return None


def _dot(left: FloatArray, right: FloatArray) -> float:
    return float((left * right).sum())
