"""A run as a file: safetensors for the tables, JSON for the rest. Loading it never runs code.

The file is a safetensors file. Its header has two texts: "qrmax", which is JSON (what was trained,
how, how far it came, where the random streams stand), and "sha256", the checksum of that JSON and
of all arrays. A tabular problem is stored whole, so that a run can be gone on with anywhere; an
environment cannot be, and is given again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax._version import __version__
from qrmax.agents.base import Agent, AnySimulator
from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.agents.outside import agent_reference, agent_source, is_outside
from qrmax.agents.registry import class_in_file, make_config
from qrmax.errors import (
    MOST,
    CheckpointError,
    MissingExtraError,
    ParameterError,
    PluginError,
    QRMaxError,
)
from qrmax.machines.task_files import format_task, parse_task
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.plane import Plane
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator
from qrmax.seeding import stream_at
from qrmax.source import Source, write_whole
from qrmax.training.absent import AbsentEnv
from qrmax.training.environment import EnvPlayer
from qrmax.training.evaluation import Point
from qrmax.training.run import Run
from qrmax.training.run_file import read_run_file
from qrmax.training.stopping import as_rule, rule_as_data
from qrmax.training.trainer import STREAMS, Progress, Session, TrainingConfig
from qrmax.worlds.grid import GridMap, format_map, parse_map

FORMAT = "qrmax run"
TABULAR, CONTINUOUS, ENVIRONMENT = "tabular", "continuous", "environment"  # what is played
TRAINING = ("seed", "max_steps", "max_episodes", "evaluate_every", "compiled")
PLANE = ("direction", "noise", "wall", "reward", "scale")  # the arrays of a plane
SCHEMA = 2
# The axes of tables that may have any length: what was seen, last; the keys of buckets, first.
GROWING = dict.fromkeys(("outcome", "tau", "succ", "prob", "weight", "link", "next_state"), -1)
GROWING["transitions"] = -1  # what a network has to learn from
GROWING["keys"] = -2

Arrays = dict[str, NDArray[Any]]


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Write a session into a file, whole or not at all."""
    write_whole(path, to_bytes(session))


def to_bytes(session: Session) -> bytes:
    """What `save` writes."""
    from safetensors.numpy import save as serialize

    arrays = {f"agent.{name}": array for name, array in session.agent.snapshot().items()}
    described = _describe(session)
    arrays |= {f"problem.{name}": array for name, array in problem_arrays(session.task).items()}
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(described, default=_plain)
    header = {"qrmax": text, "sha256": _checksum(text, arrays)}
    return serialize(arrays, metadata=header)


def problem_arrays(task: Problem | ContinuousProblem | EnvPlayer) -> Arrays:
    """A problem is stored whole; an environment cannot be."""
    if isinstance(task, Problem):
        names = ("succ", "prob", "reward", "terminal", "start")
        split = {} if task.origin is None else {"origin": task.origin}
        return {"label": task.label, **{name: getattr(task.mdp, name) for name in names}, **split}
    if isinstance(task, ContinuousProblem):
        plane = {name: getattr(task.plane, name) for name in PLANE}
        return {"label": task.label, "terminal": task.terminal, **plane}
    return {}


def load(path: str | os.PathLike[str], env: Any = None) -> Run:
    """The run in a file that `run.save` wrote.

    A run on an environment needs it again to be resumed or watched: `qrmax.load(path, env=...)`.
    Without it the run can act (`run.act`), be looked at (`run.policy`, `run.curve`) and exported.
    """
    return Run(from_bytes(read_run_file(path), str(path), env, acting_only=env is None))


def load_session(path: str | os.PathLike[str], env: Any = None) -> Session:
    """The session in a file, to be gone on with."""
    return from_bytes(read_run_file(path), str(path), env)


def from_bytes(data: bytes, path: str, env: Any = None, *, acting_only: bool = False) -> Session:
    """The session that `to_bytes` made bytes of; errors name the `path` they are from.

    With `acting_only` a run on an environment does without it.
    """
    described, arrays = _take_apart(data, path)
    try:
        if acting_only and described["kind"] == ENVIRONMENT:
            env = _absent(described["task"])
        return _restore(described, arrays, env)
    except MissingExtraError:
        raise  # nothing is wrong with the file
    except PluginError as error:
        raise PluginError(f"{path}: {error}") from error
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except QRMaxError as error:
        if isinstance(error, ParameterError) and env is not None and not acting_only:
            raise  # about the environment, not about the file
        raise CheckpointError(f"{path}: holds no sensible run: {error}") from error
    except MemoryError as error:
        raise CheckpointError(f"{path}: there is not enough memory for it: {error}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise CheckpointError(f"{path}: a part is missing or makes no sense: {error!r}") from error


def _describe(session: Session) -> dict[str, Any]:
    """All but the arrays."""
    training, source = session.training, agent_source(type(session.agent))
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": __version__,
        "agent": agent_reference(type(session.agent)),
        "source": None if source is None else source.as_data(),
        "config": asdict(session.agent.config),
        "training": {
            "seed": training.seed,
            "max_steps": training.max_steps,
            "max_episodes": training.max_episodes,
            "evaluate_every": training.evaluate_every,
            "compiled": training.compiled,
            **rule_as_data(training.stop),
        },
        "progress": asdict(session.progress),
        "curve": session.curve,
        "streams": {name: stream.position() for name, stream in session.streams.items()},
        "kind": _kind(session.task),
        "task": _describe_task(session),
    }


def _kind(task: Problem | ContinuousProblem | EnvPlayer) -> str:
    if isinstance(task, EnvPlayer):
        return ENVIRONMENT
    return TABULAR if isinstance(task, Problem) else CONTINUOUS


def _describe_task(session: Session) -> dict[str, Any]:
    """What is played, but for its arrays, and where the game stands."""
    task, player = session.task, session.player
    described: dict[str, Any] = {
        "name": task.name,
        "machine": format_task(task.machine),
        "labels": [sorted(label) for label in task.labels],
    }
    if isinstance(task, EnvPlayer):
        described |= {"sizes": task.sizes, "observations": _fingerprint(task)}
        described["spaces"] = _spaces(task)
        return {**described, "episodes": task.episodes}
    assert isinstance(player, AnySimulator)  # it plays a problem
    described |= {"max_episode_steps": task.max_episode_steps, "state": player.state.tolist()}
    if isinstance(task.world, GridMap):
        described["map"] = {"name": task.world.name, "text": format_map(task.world)}
    if isinstance(player, PlaneSimulator):
        described["position"] = player.position.tolist()
        described["columns"] = player.problem.plane.columns
        described["start"] = player.problem.start
    return described


def _spaces(task: EnvPlayer) -> dict[str, Any]:
    """What acting without the environment takes."""
    from qrmax.worlds.spaces import describe  # loads gymnasium, which is there already

    return {
        "state": describe(task.layer.observation_space["state"]),
        "action": describe(task.env.action_space),
        "labels_steps": task.labels_steps,
    }


def _absent(task: Mapping[str, Any]) -> AbsentEnv:
    """The place of an environment that is not given."""
    if "spaces" not in task:
        _needed(None, task)  # written before files had them
    machine = parse_task(Source(f"the task of {task['name']}", task["machine"]))
    return AbsentEnv(task["name"], machine, task["spaces"])


def _plain(number: np.generic) -> Any:
    """A number of NumPy's as one of Python's."""
    return number.item()


def _restore(described: Mapping[str, Any], arrays: Arrays, env: Any) -> Session:
    task = described["task"]
    kind = class_in_file(described["agent"], described["source"])
    config = make_config(kind, described["config"])
    rule = dict(described["training"])
    options = {key: rule.pop(key) for key in TRAINING}
    training = TrainingConfig(**options, stop=as_rule(**rule))
    streams = {name: stream_at(described["streams"][name]) for name in STREAMS}
    if described["kind"] in PROBLEMS:
        problem = PROBLEMS[described["kind"]](task, arrays)
        session = Session(kind, config, problem, training, streams)
    else:
        player = EnvPlayer(_needed(env, task), config.gamma, streams["world"], kind)
        player.know_labels([frozenset(label) for label in task["labels"]])
        player.episodes = task["episodes"]
        _check_environment(player, task)
        session = Session(kind, config, player, training, streams)
    session.agent.make_room_for(_under("agent.", arrays))
    if not is_outside(kind):  # whose tables may have any shape: no compiled code trusts them
        _check_arrays(session.agent.snapshot(), arrays)
    session.agent.restore(_under("agent.", arrays))
    if isinstance(session.player, AnySimulator):
        _restore_player(session.player, task, session.agent)
    if session.agent.episode_over and not session.player.over:
        raise CheckpointError("the episode goes on, and the agent has ended it")
    session.progress = _progress(described["progress"], training.stop.name)
    if session.agent.samples > session.progress.step:
        raise CheckpointError(
            f"the agent has counted {session.agent.samples:,} steps, and there were "
            f"{session.progress.step:,}"
        )
    session.curve = [_point(row) for row in described["curve"]]
    return session


def _check_environment(player: EnvPlayer, task: Mapping[str, Any]) -> None:
    """Refuse an environment that is not the one trained on, as far as that can be seen."""
    differs = {
        "another task": format_task(player.machine) != task["machine"],
        "other sizes": list(player.sizes) != list(task["sizes"]),
        "other observations": _fingerprint(player) != task["observations"],
    }
    for what, does in differs.items():
        if does:
            raise ParameterError(
                f"this environment is not the one that was trained on, {task['name']!r}: it has "
                f"{what}"
            )


def _fingerprint(player: EnvPlayer) -> str | None:
    """What tells the bounds of real observations apart; there may be thousands."""
    box = player.observations
    if box is None:
        return None
    return hashlib.sha256(box.low.tobytes() + box.high.tobytes()).hexdigest()


def _progress(data: Mapping[str, Any], rule: str) -> Progress:
    progress = Progress(**data)
    counts = (progress.step, progress.streak, progress.first, progress.first_episode)
    fits = all(type(count) is int and 0 <= count <= MOST for count in counts)
    known = progress.reason in ("", rule) and isinstance(progress.seconds, int | float)
    if not fits or not known or not 0.0 <= progress.seconds < math.inf:
        raise CheckpointError(f"it has come as far as {dict(data)}, which cannot be")
    if progress.first > progress.step:
        raise CheckpointError(f"it has come as far as {dict(data)}, which cannot be")
    return progress


def _point(row: list[Any]) -> Point:
    point = Point(*row)
    if type(point.step) is not int or not all(isinstance(x, int | float | None) for x in point):
        raise CheckpointError(f"the learning curve has a row {row}, which cannot be")
    return point


def _map(task: Mapping[str, Any], states: int) -> GridMap | None:
    """The map that the problem was made of, to look at; none where it was made of none."""
    if "map" not in task:
        return None
    grid = parse_map(Source(f"{task['map']['name']}.txt", task["map"]["text"]))
    if grid.n_states != states:
        raise CheckpointError(f"a map of {grid.n_states} cells, and {states} states")
    return grid


def _problem(task: Mapping[str, Any], arrays: Arrays) -> Problem:
    parts = _under("problem.", arrays)
    return Problem(
        TabularMDP(
            parts["succ"],
            parts["prob"],
            parts["reward"],
            terminal=parts["terminal"],
            start=parts["start"],
        ),
        parse_task(Source(f"the task of {task['name']}", task["machine"])),
        task["labels"],
        parts["label"],
        max_episode_steps=task["max_episode_steps"],
        name=task["name"],
        world=_map(task, len(parts["succ"])),
        origin=parts.get("origin"),
    )


def _continuous_problem(task: Mapping[str, Any], arrays: Arrays) -> ContinuousProblem:
    parts = _under("problem.", arrays)
    return ContinuousProblem(
        Plane(columns=task["columns"], **{name: parts[name] for name in PLANE}),
        parse_task(Source(f"the task of {task['name']}", task["machine"])),
        task["labels"],
        parts["label"],
        terminal=parts["terminal"],
        start=task["start"],
        max_episode_steps=task["max_episode_steps"],
        name=task["name"],
        world=_map(task, len(parts["label"])),
    )


PROBLEMS: dict[str, Callable[..., Any]] = {TABULAR: _problem, CONTINUOUS: _continuous_problem}


def _restore_player(player: AnySimulator, task: Mapping[str, Any], agent: Agent) -> None:
    state: list[int] = task["state"]
    s, q, age, over, episodes = state
    world = player.world
    if isinstance(player, PlaneSimulator):
        player.stand(task["position"])
    fits = (
        all(type(number) is int for number in state)
        and 0 <= s < (len(world.done) if isinstance(player, Simulator) else MOST)
        and 0 <= q < len(world.terminal)
        and 0 <= age <= (world.limit or MOST)
        and over in (0, 1)
        and (not over) <= episodes <= MOST
    )
    if fits:
        player.state[:] = state
        fits = bool(over) or (age != world.limit and not world.done[player.place, q])
    if fits and not over:
        known = len(agent.buckets) if isinstance(agent, InBuckets) else MOST
        seen = player.look()
        fits = not isinstance(seen, int) or seen == s < known  # where one stands is nothing new
    if not fits:
        raise CheckpointError(f"the episode under way is {state}, which cannot be")


def _check_arrays(expected: Arrays, arrays: Arrays) -> None:
    """Refuse arrays that an agent of this kind and size cannot have: compiled code trusts them."""
    found = _under("agent.", arrays)
    for name, array in expected.items():
        if name not in found:
            raise CheckpointError(f"the table {name!r} is missing")
        other = found[name]
        grows = GROWING.get(name.rpartition(".")[2])
        same = array.ndim == other.ndim and all(
            ours == theirs or axis - array.ndim == grows
            for axis, (ours, theirs) in enumerate(zip(array.shape, other.shape, strict=True))
        )
        if array.dtype != other.dtype or not same:
            raise CheckpointError(
                f"the table {name!r} holds {other.dtype} of shape {other.shape}; "
                f"needed: {array.dtype} like {array.shape}"
            )


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _needed(env: Any, task: Mapping[str, Any]) -> Any:
    if env is None:
        raise CheckpointError(
            f"was trained on the environment {task['name']!r}, which a file cannot hold; "
            "give it in Python: qrmax.load(path, env=...)"
        )
    return env


def _take_apart(data: bytes, path: str) -> tuple[dict[str, Any], Arrays]:
    """What a file holds, as far as it is one of ours and whole."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialize

    try:
        arrays = deserialize(data)
        length = int.from_bytes(data[:8], "little")  # how safetensors begins: its header's length
        header = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except (SafetensorError, ValueError, TypeError, LookupError) as error:
        raise CheckpointError(
            f"{path}: is damaged, or no file that run.save(...) wrote ({error})"
        ) from error
    text = header.get("qrmax")
    if text is None:
        raise CheckpointError(f"{path}: is a safetensors file, but no run of qrmax")
    described = _parse(path, text)
    if header.get("sha256") != _checksum(text, arrays):
        raise CheckpointError(f"{path}: is damaged: its checksum does not fit its contents")
    return described, arrays


def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is damaged: its description is no JSON") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is no run of qrmax")
    schema = described.get("schema")
    if schema != SCHEMA:
        later = not isinstance(schema, int) or schema > SCHEMA
        raise CheckpointError(
            f"{path}: was written by qrmax {described.get('version')} in schema {schema}; "
            f"this is qrmax {__version__}, which reads schema {SCHEMA}: "
            f"{'update qrmax' if later else 'train it again'}"
        )
    return described


def _checksum(text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
