"""MiniGrid environments with numbered states: the only file that imports minigrid.

The symbolic state of a MiniGrid environment is the agent's position and direction, the object that
it carries, the position of each object, and which doors are open or locked. `Layout` sets and reads
the symbolic state of an environment; `MiniGridWorld` numbers the reachable states, by a
breadth-first search with the environment's own `step`. So its model is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from qrmax.errors import MissingExtraError, ModelError, ParameterError, SizeError, shown
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.problem import warn_of_what_can_never_be
from qrmax.worlds.task_wrapper import TaskWrapper

MAX_STATES = 200_000
GONE = -1  # the position of an object that is carried, in a box, or removed


class Symbolic(NamedTuple):
    """A symbolic state: everything that a step of MiniGrid depends on, given the layout."""

    cell: tuple[int, int]  # of the agent: column, row
    direction: int  # right, down, left, up
    carried: int  # the number of an object, or GONE
    places: tuple[int, ...]  # of each object: the number of its cell, or GONE
    doors: tuple[tuple[bool, bool], ...]  # of each door: open, locked


def minigrid(
    env: str | gymnasium.Env[Any, Any],
    task: Any = None,
    *,
    seed: int = 0,
    actions: Iterable[str] | None = None,
    places: Mapping[str, tuple[int, int]] | None = None,
    env_reward: bool = False,
    max_states: int = MAX_STATES,
    **options: Any,
) -> Any:
    """A MiniGrid environment with numbered states, labels, and a task on top.

    >>> import qrmax
    >>> env = qrmax.minigrid(
    ...     "MiniGrid-DoorKey-5x5-v0", "F(carrying_key & F(door_open & F at_goal))", seed=3
    ... )
    >>> problem = qrmax.Problem.from_gymnasium(env)  # exact
    >>> qrmax.evaluate(problem, qrmax.solve(problem).policy).nominal_length
    12

    Args:
        env: the id of an environment, or an environment.
        task: a formula, the name or file of a task, or a `RewardMachine`; if None, no task.
        seed: the seed of the layout, which is the same in every episode.
        actions: the names of the actions that the agent has: left, right, forward, pickup, drop,
            toggle, done; by default all of them. Without drop there are far fewer states.
        places: further propositions, true at a column and row, such as `{"corner": (1, 1)}`.
        env_reward: whether MiniGrid's own reward is added to that of the task.
        max_states: the limit on the number of states; more raise an error.
        options: keyword arguments of `gymnasium.make`, such as `render_mode`, with an id.

    Returns a `TaskWrapper`, or without a task the `MiniGridWorld`. MiniGrid's own reward decreases
    with the number of steps, which is no function of the state; it is replaced by its sign, 1 for
    success, and a discount factor has the same effect.

    Labels have these propositions, each also with a colour, as in `carrying_red_key`, and those of
    `places`; `env.propositions` lists all that can be true:

        at_goal at_lava at_door at_floor       the cell of the agent
        carrying_key carrying_ball carrying_box, and carrying    any object
        door_open door_locked                  any of the doors
        facing_key facing_door facing_wall ...    the cell in front of the agent
    """
    if isinstance(env, str):
        _import_minigrid()
        env = gymnasium.make(env, **options)
    elif options:
        raise ParameterError(f"{', '.join(options)} given beside an environment; give its id")
    world = MiniGridWorld(env, seed, actions, places or {}, max_states)
    if task is None:
        return world
    labels = {number: world.labels(number) for number in range(len(world.states))}
    tasked = TaskWrapper(world, task, labels, env_reward=env_reward)
    warn_of_what_can_never_be(_Posed(world.name, tasked.machine, (frozenset(world.propositions),)))
    return tasked


class _Posed(NamedTuple):
    """A task and the possible labels, for a warning about misspelt propositions."""

    name: str
    machine: RewardMachine
    labels: tuple[frozenset[str], ...]


def _import_minigrid() -> None:
    try:
        import minigrid  # noqa: F401 (it registers its environments)
    except ImportError as error:
        raise MissingExtraError(
            "qrmax.minigrid needs MiniGrid, which is not installed: pip install 'qrmax[minigrid]'"
        ) from error


class Layout:
    """The objects of an environment that has been reset, and its symbolic states."""

    def __init__(self, env: Any) -> None:
        self.env = env
        grid = env.grid.grid
        found = [thing for thing in grid if thing is not None]
        inside = []
        for thing in found:  # grows in the loop
            if getattr(thing, "contains", None) is not None:
                found.append(thing.contains)
                inside.append(thing.contains)
        # objects that can be moved, or are in a box
        self.things = [thing for thing in found if thing.can_pickup() or thing in inside]
        self.doors = [thing for thing in found if thing.type == "door"]
        self._number = {id(thing): number for number, thing in enumerate(self.things)}
        self._fixed = [None if id(thing) in self._number else thing for thing in grid]

    def read(self) -> Symbolic:
        """Read the symbolic state of the environment."""
        places = [GONE] * len(self.things)
        for cell, thing in enumerate(self.env.grid.grid):
            if thing is not self._fixed[cell]:
                if id(thing) not in self._number:
                    raise self.refusal("puts new things on the grid")
                places[self._number[id(thing)]] = cell
        carrying = self.env.carrying
        return Symbolic(
            (int(self.env.agent_pos[0]), int(self.env.agent_pos[1])),
            int(self.env.agent_dir),
            GONE if carrying is None else self._number[id(carrying)],
            tuple(places),
            tuple((bool(door.is_open), bool(door.is_locked)) for door in self.doors),
        )

    def restore(self, state: Symbolic) -> None:
        """Set the symbolic state of the environment, as if no step had been taken."""
        env, grid = self.env, list(self._fixed)
        for thing, place in zip(self.things, state.places, strict=True):
            if place == GONE:
                thing.cur_pos = np.array([-1, -1])
            else:
                grid[place] = thing
                thing.cur_pos = (place % env.grid.width, place // env.grid.width)
        env.grid.grid = grid
        for door, (is_open, is_locked) in zip(self.doors, state.doors, strict=True):
            door.is_open, door.is_locked = is_open, is_locked
        env.agent_pos, env.agent_dir = state.cell, state.direction
        env.carrying = None if state.carried == GONE else self.things[state.carried]
        env.step_count = 0

    def label(self, state: Symbolic, places: Mapping[str, tuple[int, int]]) -> frozenset[str]:
        """The label of the current state."""
        env = self.env
        here, ahead = env.grid.get(*env.agent_pos), env.grid.get(*env.front_pos)
        facts = {name for name, cell in places.items() if cell == state.cell}
        if here is not None:
            facts |= _named("at", here)
        if ahead is not None:
            facts |= _named("facing", ahead)
        if env.carrying is not None:
            facts |= {"carrying", *_named("carrying", env.carrying)}
        for door in self.doors:
            for holds, what in ((door.is_open, "open"), (door.is_locked, "locked")):
                if holds:
                    facts |= {f"door_{what}", f"{door.color}_door_{what}"}
        return frozenset(facts)

    def refusal(self, why: str) -> ModelError:
        """The error of an environment that has no symbolic states."""
        return ModelError(
            f"{type(self.env).__name__} {why}, so its states cannot be numbered; use it in a "
            "qrmax.TaskWrapper, with observations of your own"
        )


def _named(relation: str, thing: Any) -> set[str]:
    return {f"{relation}_{thing.type}", f"{relation}_{thing.color}_{thing.type}"}


class MiniGridWorld(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MiniGrid environment whose observations are numbers of states; see `minigrid`.

    `states[n]` is the state with number n, `P` the model in the format of Gymnasium's toy text.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        seed: int,
        actions: Iterable[str] | None,
        places: Mapping[str, tuple[int, int]],
        max_states: int,
    ) -> None:
        if not isinstance(env, gymnasium.Env) or not hasattr(env.unwrapped, "agent_dir"):
            raise ParameterError(
                f"env is {shown(env)}; needed: a MiniGrid environment, or the id of one, such as "
                "'MiniGrid-DoorKey-5x5-v0'"
            )
        super().__init__(env)
        self.layout_seed = seed
        self.action_names, self._actions = _choose_actions(env.unwrapped, actions)
        self.action_space = spaces.Discrete(len(self._actions))
        self._chance = np.random.default_rng(seed)
        self._reset_layout()
        self._places = _checked_places(places, self._layout.env.grid)
        self._explore(max_states)
        self.observation_space = spaces.Discrete(len(self.states))
        self.max_episode_steps = int(self._layout.env.max_steps)
        self.initial_state_distrib = np.zeros(len(self.states))
        self.initial_state_distrib[0] = 1.0

    @property
    def name(self) -> str:
        """The id of the environment, or the name of its class."""
        spec = self.env.spec
        return type(self.unwrapped).__name__ if spec is None else spec.id

    @property
    def propositions(self) -> list[str]:
        """The propositions that are true in some state, sorted."""
        return sorted(frozenset[str]().union(*self._labels))

    def labels(self, observation: int, info: Any = None) -> frozenset[str]:  # noqa: ARG002
        """The labelling function: the propositions true in the state with this number."""
        return self._labels[observation]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode in the same layout; `seed` is that of all other randomness."""
        if seed is not None:
            self._chance = np.random.default_rng(seed)
        info = self._reset_layout(options)
        self.unwrapped.np_random = self._chance
        return self._numbered(), info

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; the reward is the sign of MiniGrid's."""
        if not self.action_space.contains(action):
            raise ParameterError(
                f"action is {shown(action)}; allowed: 0 to {len(self._actions) - 1}, "
                f"{', '.join(self.action_names)}"
            )
        _, reward, terminated, truncated, info = self.env.step(self._actions[int(action)])
        return self._numbered(), _worth(reward), bool(terminated), bool(truncated), info

    def _reset_layout(self, options: dict[str, Any] | None = None) -> dict[str, Any]:
        _, info = self.env.reset(seed=self.layout_seed, options=options)
        self._layout = Layout(self.unwrapped)
        return info

    def _numbered(self) -> int:
        state = self._layout.read()
        if state not in self._number:
            raise ModelError(
                f"{type(self.unwrapped).__name__} has reached {state}, which was not among the "
                f"{len(self.states)} states reachable from its start: its layout, or a "
                "step, is random beyond the seed"
            )
        return self._number[state]

    def _explore(self, max_states: int) -> None:
        """Number the reachable states, in breadth-first order, and record the model."""
        env, layout = self._layout.env, self._layout
        if hasattr(env, "instrs"):
            raise layout.refusal("has instructions that depend on the history")
        self.states: list[Symbolic] = []
        self._number: dict[Symbolic, int] = {}
        self._labels: list[frozenset[str]] = []
        self.P: dict[int, dict[int, list[tuple[float, int, float, bool]]]] = {}
        going_on = {self._number_of(layout.read(), max_states): None}  # nonterminal, in order
        chance = repr(env.np_random.bit_generator.state)
        env.gen_obs = dict  # images are not needed here, and take most of the time
        try:
            while going_on:
                s = next(iter(going_on))
                del going_on[s]
                rows = self.P[s] = {}
                for a, action in enumerate(self._actions):
                    layout.restore(self.states[s])
                    _, reward, terminated, _, _ = env.step(action)
                    t = self._number_of(layout.read(), max_states)
                    rows[a] = [(1.0, t, _worth(reward), bool(terminated))]
                    if not terminated and t not in self.P:
                        going_on[t] = None
                if repr(env.np_random.bit_generator.state) != chance:
                    raise layout.refusal("moves things at random")
        finally:
            del env.gen_obs
        for t in range(len(self.states)):  # terminal states have no successors
            self.P.setdefault(t, {a: [(1.0, t, 0.0, True)] for a in range(len(self._actions))})

    def _number_of(self, state: Symbolic, max_states: int) -> int:
        """The number of a state, which may be new."""
        number = self._number.setdefault(state, len(self.states))
        if number == len(self.states):
            if number >= max_states:
                raise SizeError(
                    f"{type(self.unwrapped).__name__} has more than {max_states} states; give "
                    "fewer actions, such as actions=('left', 'right', 'forward', 'pickup', "
                    "'toggle'), a smaller environment, or a larger max_states"
                )
            self.states.append(state)
            self._labels.append(self._layout.label(state, self._places))
        return number


def _worth(reward: Any) -> float:
    """The sign of MiniGrid's reward, which decreases with the number of steps."""
    return float(np.sign(reward))


def _choose_actions(env: Any, chosen: Iterable[str] | None) -> tuple[list[str], list[Any]]:
    named = {action.name: action for action in env.actions}
    names = [*named] if chosen is None else [chosen] if isinstance(chosen, str) else [*chosen]
    if not names or not {*names} <= named.keys() or len({*names}) < len(names):
        raise ParameterError(
            f"actions are {shown(names)}; allowed: some of {', '.join(named)}, each once"
        )
    return names, [named[name] for name in names]


def _checked_places(places: Any, grid: Any) -> dict[str, tuple[int, int]]:
    try:
        checked = {str(name): (int(x), int(y)) for name, (x, y) in dict(places).items()}
    except (TypeError, ValueError):
        raise ParameterError(
            f'places are {shown(places)}; needed: columns and rows by name, {{"corner": (1, 1)}}'
        ) from None
    for name, (x, y) in checked.items():
        if not (0 <= x < grid.width and 0 <= y < grid.height):
            raise ParameterError(
                f"place {name!r} is ({x}, {y}); allowed: columns 0 to {grid.width - 1}, rows 0 to "
                f"{grid.height - 1}"
            )
    return checked
