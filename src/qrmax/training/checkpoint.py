"""A run as a file: safetensors for the tables, JSON for the rest. Loading it never runs code.

The file is a safetensors file. Its header has two texts: "qrmax", which is JSON (the agent, the
problem, the configuration, the progress and the states of the random streams), and "sha256", the
checksum of that JSON and of all arrays. A tabular problem is stored whole, so that a run can be
resumed anywhere; an environment cannot be stored, and is passed again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from qrmax._version import __version__
from qrmax.agents.outside import (
    agent_reference,
    agent_source,
    is_outside,
    restore_agent,
    saved_arrays,
)
from qrmax.agents.registry import class_in_file, make_config
from qrmax.errors import (
    MOST,
    CheckpointError,
    MissingExtraError,
    ParameterError,
    PluginError,
    QRMaxError,
)
from qrmax.seeding import stream_at
from qrmax.source import write_whole
from qrmax.training.domains.domain import Arrays, Learner
from qrmax.training.domains.domain_kinds import stored_kind
from qrmax.training.domains.environment_domain import EnvironmentDomain, check_description
from qrmax.training.matching_env import evaluate_in
from qrmax.training.point import Point
from qrmax.training.run import Run
from qrmax.training.run_file import read_run_file
from qrmax.training.stopping import StoppingRule, as_rule, rule_as_data
from qrmax.training.trainer import STREAMS, Progress, Session, TrainingConfig

FORMAT = "qrmax run"
TRAINING = ("seed", "max_steps", "max_episodes", "evaluate_every", "compiled")
SCHEMA = 2
# Axes of tables that may have any length: the last of observed outcomes, the first of bucket keys.
GROWING = dict.fromkeys(("outcome", "tau", "succ", "prob", "weight", "link", "next_state"), -1)
GROWING["transitions"] = -1  # the replay buffer of a network
GROWING["keys"] = -2


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Write a session into a file, whole or not at all."""
    write_whole(path, to_bytes(session))


def to_bytes(session: Session) -> bytes:
    """The bytes that `save` writes."""
    from safetensors.numpy import save as serialize

    arrays = {f"agent.{name}": array for name, array in saved_arrays(session.agent).items()}
    described = _describe(session)
    arrays |= {f"problem.{name}": array for name, array in session.domain.arrays().items()}
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(described, default=_plain)
    header = {"qrmax": text, "sha256": _checksum(text, arrays)}
    return serialize(arrays, metadata=header)


def load(path: str | os.PathLike[str], env: Any = None, *, evaluation_env: Any = None) -> Run:
    """Load a run from a file that `run.save` wrote.

    Args:
        path: the path of the file.
        env: the environment that the run was trained on, to resume the run or to roll out its
            policy. Without it the run can act (`run.act`), be inspected (`run.policy`,
            `run.curve`) and exported. Runs on problems need none.
        evaluation_env: a second instance of it, as in `train`.
    """
    session = from_bytes(read_run_file(path), str(path), env, acting_only=env is None)
    if evaluation_env is not None:
        agent = session.agent
        learner = Learner(type(agent), agent.config.gamma)
        evaluate_in(session.domain, learner, evaluation_env)
    return Run(session)


class StoredEnvironment(NamedTuple):
    """The environment of a run, as its file describes it."""

    name: str
    made_from: Mapping[str, Any] | None  # from which it can be made again; None if made in Python
    mid_episode: bool  # whether the run was saved in the middle of an episode


def stored_environment(path: str | os.PathLike[str]) -> StoredEnvironment | None:
    """The environment of the run in a file; None for a run on a problem. Imports nothing."""
    described, _ = _take_apart(read_run_file(path), str(path))
    try:
        if described["kind"] != EnvironmentDomain.kind:
            return None
        task = described["task"]
        made_from = task.get("made_from")
        if made_from is not None:
            check_description(made_from)
        return StoredEnvironment(str(task["name"]), made_from, bool(task.get("mid_episode")))
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"{path}: a part is missing or inconsistent: {error!r}") from error


def load_session(path: str | os.PathLike[str], env: Any = None) -> Session:
    """Load a session from a file, to resume it."""
    return from_bytes(read_run_file(path), str(path), env)


def from_bytes(data: bytes, path: str, env: Any = None, *, acting_only: bool = False) -> Session:
    """The session that `to_bytes` serialised; errors name the `path` it was read from.

    With `acting_only` a run on an environment is restored without it.
    """
    described, arrays = _take_apart(data, path)
    try:
        if acting_only:
            env = stored_kind(described["kind"]).absent(described["task"])
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
        raise CheckpointError(f"{path}: holds an inconsistent run: {error}") from error
    except MemoryError as error:
        raise CheckpointError(f"{path}: there is not enough memory for it: {error}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise CheckpointError(f"{path}: a part is missing or inconsistent: {error!r}") from error


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
            **({} if (dense := training.dense_checks) is None else {"dense_checks": dense}),
            **rule_as_data(training.stop),
        },
        "progress": asdict(session.progress),
        "curve": session.curve,
        "streams": {name: stream.position() for name, stream in session.streams.items()},
        "kind": session.domain.kind,
        "task": session.domain.describe(session.player),
    }


def _plain(number: np.generic) -> Any:
    """A number of NumPy's as one of Python's."""
    return number.item()


def _restore(described: Mapping[str, Any], arrays: Arrays, env: Any) -> Session:
    task = described["task"]
    kind = class_in_file(described["agent"], described["source"])
    config = make_config(kind, described["config"])
    rule = dict(described["training"])
    options = {key: rule.pop(key) for key in TRAINING} | {
        "dense_checks": rule.pop("dense_checks", None)  # newer than some files
    }
    training = TrainingConfig(**options, stop=as_rule(**rule))
    streams = {name: stream_at(described["streams"][name]) for name in STREAMS}
    learner = Learner(kind, config.gamma)
    domain_kind, parts = stored_kind(described["kind"]), _under("problem.", arrays)
    domain = domain_kind.restore(task, parts, learner, streams["world"], env)
    session = Session(kind, config, domain, training, streams)
    session.agent.make_room_for(_under("agent.", arrays))
    if not is_outside(kind):  # whose tables may have any shape: no compiled code trusts them
        _check_arrays(session.agent.snapshot(), arrays)
    restore_agent(session.agent, _under("agent.", arrays))
    domain.restore_player(session.player, task, session.agent)
    if session.agent.episode_over and not session.player.over:
        raise CheckpointError("inconsistent episode record: only the agent has ended it")
    session.progress = _progress(described["progress"], training.stop)
    if session.agent.samples > session.progress.step:
        raise CheckpointError(
            f"inconsistent step counts: {session.agent.samples:,} of the agent, "
            f"{session.progress.step:,} of the run"
        )
    session.curve = [_point(row) for row in described["curve"]]
    return session


def _progress(data: Mapping[str, Any], rule: StoppingRule) -> Progress:
    progress = Progress(**data)
    rule.check_memory(progress.memory)
    counts = [progress.step, progress.streak, progress.first, progress.first_episode]
    counts += [progress.own_streak, progress.own_first]
    fits = all(type(count) is int and 0 <= count <= MOST for count in counts)
    known = progress.reason in ("", rule.name) and isinstance(progress.seconds, int | float)
    in_order = fits and max(progress.first, progress.own_first) <= progress.step
    if not in_order or not known or not 0.0 <= progress.seconds < math.inf:
        raise CheckpointError(f"inconsistent progress record: {dict(data)}")
    return progress


def _point(row: list[Any]) -> Point:
    point = Point(*row)
    if type(point.step) is not int or not all(isinstance(x, int | float | None) for x in point):
        raise CheckpointError(f"the learning curve has an impossible row {row}")
    return point


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


def _take_apart(data: bytes, path: str) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file, if it is one of ours and whole."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialize

    try:
        arrays = deserialize(data)
        length = int.from_bytes(data[:8], "little")  # how safetensors begins: its header's length
        header = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    except (SafetensorError, ValueError, TypeError, LookupError) as error:
        raise CheckpointError(
            f"{path}: is damaged, or was not written by run.save(...) ({error})"
        ) from error
    text = header.get("qrmax")
    if text is None:
        raise CheckpointError(f"{path}: is a safetensors file, but not a run of qrmax")
    described = _parse(path, text)
    if header.get("sha256") != _checksum(text, arrays):
        raise CheckpointError(f"{path}: is damaged: its checksum does not fit its contents")
    return described, arrays


def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is damaged: its description is not JSON") from error
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is not a run of qrmax")
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
