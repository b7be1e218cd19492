"""A Markov decision process as successor lists.

State `s` and action `a` lead to `succ[s, a, k]` with probability `prob[s, a, k]` and reward
`reward[s, a, k]`. Lists of different lengths are padded with probability 0. Terminal states end the
episode: their lists are never used. Memory is linear in |S||A|k; no array is |S| x |S|.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError
from qrmax.problems.coordinates import check_coordinates

MASS_TOLERANCE = 1e-9
MOST_REWARD = 1e300
MOST_ENTRIES = 2**31 - 1  # successors are numbered with 32 bits


class TabularMDP:
    """A Markov decision process over numbered states and actions.

    >>> mdp = TabularMDP(succ=[[[0, 1]], [[1, 0]]], prob=[[[0.5, 0.5]], [[1, 0]]], start=0)
    >>> mdp
    TabularMDP(2 states, 1 actions, up to 2 successors)

    Args:
        succ: `succ[s, a, k]` is the k-th successor of state s and action a.
        prob: `prob[s, a, k]` is its probability; pad shorter lists with probability 0.
        reward: `reward[s, a, k]` is the reward of the transition; 0 by default.
        terminal: `terminal[s]` is whether episodes end in state s; none by default.
        start: the initial state, or a distribution over initial states.
        coordinates: `coordinates[s, d]` are the coordinates of state s, for agents that need them;
            none by default.

    The arrays are checked, and read-only in the MDP. They are copied only if their type differs:
    do not change your own afterwards.
    """

    succ: NDArray[np.int32]  # [s, a, k]
    prob: NDArray[np.float64]  # [s, a, k]
    reward: NDArray[np.float64]  # [s, a, k]
    terminal: NDArray[np.bool_]  # [s]
    start: NDArray[np.float64]  # [s], sums to 1
    coordinates: NDArray[np.float64] | None  # [s, d]

    def __init__(
        self,
        succ: ArrayLike,
        prob: ArrayLike,
        reward: ArrayLike | None = None,
        *,
        terminal: ArrayLike | None = None,
        start: int | ArrayLike = 0,
        coordinates: ArrayLike | None = None,
    ) -> None:
        shape = _shape_of(succ)
        if len(shape) != 3 or 0 in shape:
            raise ModelError(f"succ has shape {shape}; needed: [states, actions, successors]")
        if math.prod(shape) > MOST_ENTRIES:
            raise ModelError(f"succ has {math.prod(shape)} entries; at most {MOST_ENTRIES} fit")
        n_states = shape[0]
        self.succ = _whole_numbers("succ", succ)
        self.prob = _array("prob", prob, shape)
        self.reward = (
            np.broadcast_to(np.float64(0.0), shape)  # costs no memory
            if reward is None
            else _array("reward", reward, shape)
        )
        ends = np.zeros(n_states, dtype=bool) if terminal is None else np.asarray(terminal)
        if ends.shape != (n_states,) or ends.dtype != np.bool_:
            raise ModelError(f"terminal must hold one Boolean for each of the {n_states} states")
        self.terminal = ends
        self.start = _start_distribution(start, n_states)
        self._check()
        self.coordinates = (
            None if coordinates is None else read_only(check_coordinates(coordinates, n_states))
        )
        for name in ("succ", "prob", "reward", "terminal", "start"):
            setattr(self, name, read_only(getattr(self, name)))

    @staticmethod
    def from_dense(
        transition: ArrayLike,
        reward: ArrayLike | None = None,
        *,
        terminal: ArrayLike | None = None,
        start: int | ArrayLike = 0,
        coordinates: ArrayLike | None = None,
    ) -> TabularMDP:
        """Make an MDP from dense matrices, for small problems.

        Args:
            transition: `transition[s, a, s']` is a transition probability.
            reward: `reward[s, a, s']` is the reward of the transition; 0 by default.
            terminal: `terminal[s]` is whether episodes end in state s; none by default.
            start: the initial state, or a distribution over initial states.
            coordinates: `coordinates[s, d]` are the coordinates of state s; none by default.

        >>> TabularMDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]]).succ.tolist()
        [[[0, 1]], [[1, 0]]]
        """
        dense = np.asarray(transition, dtype=np.float64)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2]:
            raise ModelError(
                f"transition has shape {dense.shape}; needed: [states, actions, states]"
            )
        width = max(1, int((dense != 0).sum(axis=2).max()))
        succ = np.argsort(dense == 0, axis=2, kind="stable")[:, :, :width]
        pay = None if reward is None else _array("reward", reward, dense.shape)
        return TabularMDP(
            succ,
            np.take_along_axis(dense, succ, axis=2),
            None if pay is None else np.take_along_axis(pay, succ, axis=2),
            terminal=terminal,
            start=start,
            coordinates=coordinates,
        )

    @staticmethod
    def from_gymnasium(env: Any) -> TabularMDP:
        """Make an MDP from a Gymnasium environment that exposes its model, `env.unwrapped.P`.

        FrozenLake, CliffWalking and Taxi do.

        >>> import gymnasium
        >>> TabularMDP.from_gymnasium(gymnasium.make("FrozenLake-v1"))
        TabularMDP(16 states, 4 actions, up to 3 successors)

        States and actions have the numbers of the environment's observations and actions. A state
        in which some transitions end the episode and others do not gets a terminal copy: those come
        last. With a task, and with the time limit, see `Problem.from_gymnasium`.
        """
        from qrmax.problems.exposed import exposed_model

        model = exposed_model(env)
        if model.tasked is not None:
            raise ModelError(
                f"{model.name} has a task, which an MDP leaves out; Problem.from_gymnasium(env) "
                "makes a problem of both, env.env is the environment without it"
            )
        return model.mdp

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.succ.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return int(self.succ.shape[1])

    def expected_reward(self) -> NDArray[np.float64]:
        """The mean reward of each action, `[s, a]`."""
        if not any(self.reward.strides):  # a broadcast zero: there is no reward anywhere
            return np.zeros(self.succ.shape[:2])
        return np.asarray(np.einsum("sak,sak->sa", self.prob, self.reward))

    def nominal(self) -> TabularMDP:
        """The deterministic MDP of most likely outcomes (the first of equals)."""
        best = self._likelihood().argmax(axis=2)[:, :, None]
        return TabularMDP(
            np.take_along_axis(self.succ, best, axis=2),
            np.ones(best.shape),
            np.take_along_axis(self.reward, best, axis=2),
            terminal=self.terminal,
            start=int(self.start.argmax()),
            coordinates=self.coordinates,
        )

    def _likelihood(self) -> NDArray[np.float64]:
        """The probability of each successor, `[s, a, k]`; duplicates count together."""
        width = self.succ.shape[2]
        listed = np.sort(np.where(self.prob > 0.0, self.succ, -1 - np.arange(width)), axis=2)
        if not (listed[:, :, 1:] == listed[:, :, :-1]).any():
            return self.prob
        likelihood = np.zeros_like(self.prob)
        for k in range(width):
            same = self.succ == self.succ[:, :, k : k + 1]
            likelihood[:, :, k] = np.where(same, self.prob, 0.0).sum(axis=2)
        return likelihood

    def __repr__(self) -> str:
        return (
            f"TabularMDP({self.n_states} states, {self.n_actions} actions, "
            f"up to {self.succ.shape[2]} successors)"
        )

    def _check(self) -> None:
        in_range = (self.succ >= 0) & (self.succ < self.n_states)
        _refuse(~in_range, "succ", self.succ, f"allowed: 0 to {self.n_states - 1}")
        fair = (self.prob >= 0) & (self.prob <= 1 + MASS_TOLERANCE)
        _refuse(~fair, "prob", self.prob, "allowed: 0 to 1")
        small = np.abs(self.reward) < MOST_REWARD  # sums of larger ones overflow
        _refuse(
            ~small, "reward", self.reward, f"allowed: finite numbers below {MOST_REWARD:g} in size"
        )
        mass = self.prob.sum(axis=2)
        wrong = (np.abs(mass - 1.0) > MASS_TOLERANCE) & ~self.terminal[:, None]
        _refuse(wrong, "the sum of prob", mass, "needed: 1")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to; the array itself stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def _shape_of(succ: ArrayLike) -> tuple[int, ...]:
    try:
        return np.shape(succ)
    except ValueError:
        raise ModelError(
            "succ is ragged; every action of every state needs as many successors: "
            "pad the shorter lists with any state and probability 0"
        ) from None


def _whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int32]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ModelError(f"{name} holds {array.dtype}; needed: whole numbers")
    if array.size and (array.max() > np.iinfo(np.int32).max or array.min() < 0):
        raise ModelError(f"{name} holds numbers outside 0 to {np.iinfo(np.int32).max}")
    return np.ascontiguousarray(array, dtype=np.int32)


def _array(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(f"{name} has shape {array.shape}; needed: {shape}")
    return array


def _start_distribution(start: int | ArrayLike, n_states: int) -> NDArray[np.float64]:
    if isinstance(start, int | np.integer):
        if not 0 <= start < n_states:
            raise ModelError(f"start is state {start}; allowed: 0 to {n_states - 1}")
        distribution = np.zeros(n_states)
        distribution[start] = 1.0
        return distribution
    distribution = np.array(start, dtype=np.float64)
    if distribution.shape != (n_states,):
        raise ModelError(f"start has shape {distribution.shape}; needed: ({n_states},)")
    if not (distribution >= 0).all() or abs(distribution.sum() - 1.0) > MASS_TOLERANCE:
        raise ModelError(
            f"start must be probabilities that sum to 1; they sum to {distribution.sum()}"
        )
    return distribution


def _refuse(wrong: NDArray[np.bool_], name: str, values: NDArray[Any], allowed: str) -> None:
    """Raise a `ModelError` that names the first state-action pair with an invalid value."""
    if wrong.any():
        place = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
        words = zip(("state", "action", "successor"), place, strict=False)
        where = ", ".join(f"{word} {number}" for word, number in words)
        raise ModelError(f"{name} is {values[place]} at {where}; {allowed}")
