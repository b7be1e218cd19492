"""Execute one run, a stretch at a time, from plain data to plain data.

A stretch begins with the run's configuration and, if the run is resumed, a checkpoint; it ends with
the outcome or, when its time is up, with the next checkpoint. It depends on nothing else and has no
side effects. So any worker can resume any run, without changing its result.
"""

from __future__ import annotations

import io
import json
import math
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple

from qrmax.agents.base import Agent
from qrmax.agents.registry import agent_class, make_config
from qrmax.errors import CheckpointError, QRMaxWarning
from qrmax.outside_errors import raised_outside
from qrmax.seeding import stream
from qrmax.studies.outside_code import agent_origin, check_origin, use_folders
from qrmax.studies.plain_settings import as_data, rule_data
from qrmax.studies.problem_specs import spec_of
from qrmax.studies.provenance import made_by
from qrmax.studies.study import LIMITS, canonical
from qrmax.training.cautions import oddity
from qrmax.training.checkpoint import from_bytes, to_bytes
from qrmax.training.domains.domain import Domain, Learner
from qrmax.training.domains.domain_kinds import domain_of
from qrmax.training.evaluator import Evaluator
from qrmax.training.point import Point
from qrmax.training.run import Run, make_session
from qrmax.training.stopping import Objective, StoppingRule, as_rule, own_objective
from qrmax.training.trainer import Session

ROLLED_OUT = (
    *("episode_return", "episode_return_low", "episode_return_high"),
    *("success_low", "success_high"),
)
"""The columns of results that only rollouts on an environment have."""

Kind = Literal["done", "unfinished", "interrupted", "failed", "damaged", "lost", "displaced"]


class Assignment(NamedTuple):
    """A stretch of a run to execute."""

    config: Mapping[str, Any]  # of the run
    checkpoint: bytes  # empty: start from scratch
    seconds: float  # after which to return a checkpoint
    folders: Sequence[str] = ()  # of modules from outside the library


class Report(NamedTuple):
    """Result of an assignment.

    `data` is the outcome of a run that is done, the number of steps of an unfinished one, or the
    error of a failed one. `blob` is the learning curve as Parquet, or the checkpoint. A checkpoint
    is `damaged` if it cannot be resumed; a run is `lost` if its worker died, `displaced` if the
    whole node did, and `interrupted` if it must start again, as its environment cannot be restored.
    """

    kind: Kind
    data: dict[str, Any]
    blob: bytes = b""
    seconds: float = 0.0  # duration
    cpu_seconds: float = 0.0  # CPU time of the worker meanwhile, of all its threads


def never() -> bool:
    """Never stop: the default of `advance`."""
    return False


def advance(assignment: Assignment, stop: Callable[[], bool] = never) -> Report:
    """Execute a run until it ends, the time is up, or `stop` returns true."""
    began, cpu_began = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # the driver has shown them already
        try:
            report = _advance(assignment, began + assignment.seconds, stop)
        except CheckpointError as error:
            report = Report("damaged", {"error": str(error)})
        except Exception as error:  # no error of a run may end the other runs
            report = Report("failed", {"error": _reason(error)})
    return report._replace(
        seconds=time.perf_counter() - began, cpu_seconds=time.process_time() - cpu_began
    )


def _reason(error: Exception) -> str:
    """The traceback of a failed run; at its end, whose code raised, if it is not the library's."""
    raised = raised_outside(error)
    return traceback.format_exc() + ("" if raised is None else f"\n{raised}\n")


def _advance(assignment: Assignment, until: float, stop: Callable[[], bool]) -> Report:
    session = _session(assignment)
    try:
        return _advance_session(session, until, stop)
    finally:
        session.evaluator.close()
        session.domain.close()


def _advance_session(session: Session, until: float, stop: Callable[[], bool]) -> Report:
    # the state of an environment cannot be saved: such runs have no checkpoints
    resumable = session.domain.problem is not None
    for _ in session.events():
        if stop() or (resumable and time.perf_counter() >= until):
            break
    trained = {"trained": session.progress.step}
    if session.is_over:
        return Report("done", outcome(session), curve_as_parquet(session.curve))
    if not resumable:
        return Report("interrupted", trained)
    return Report("unfinished", trained, to_bytes(session))


def outcome(session: Session) -> dict[str, Any]:
    """The outcome of a run as plain data."""
    run, known = Run(session), session.agent.known()
    found = _evaluated(run) if session.domain.problem is not None else _rolled_out(run)
    if not run.machine.success:  # without success states there is no success rate, not one of 0
        found |= {name: None for name in found if name.startswith("success")}
    return {
        "steps": run.steps,
        "episodes": run.episodes,
        "reached": run.reason == session.training.stop.name != "budget",
        "reason": run.reason,
        "trained": run.trained,
        **found,
        "own_gap": _finite(run.own_gap),
        "own_steps": run.own_steps,
        "known": None if known is None else known.pairs,
        "oddity": oddity(session),
        "learning_seconds": run.seconds,
        "made_by": made_by(),
    }


def _evaluated(run: Run) -> dict[str, Any]:
    """Exact evaluation of the policy of a run on a problem, and the optimum."""
    found, gap = run.evaluation, run.gap
    assert found is not None  # runs on a problem have an evaluation
    return {
        "start_value": found.start_value,
        "gap": _finite(gap),
        "success": found.success,
        "mean_length": found.mean_length,
        "nominal_length": found.nominal_length,
    }


def _finite(gap: float | None) -> float | None:
    """A gap that JSON can hold."""
    return gap if gap is not None and math.isfinite(gap) else None


def _rolled_out(run: Run) -> dict[str, Any]:
    """Evaluation of the final policy of a run on an environment, by rollouts.

    Without a second instance of the environment it is the last row of the curve.
    """
    found, last = run.evaluation, run.final_point
    row = {} if last is None else last._asdict()
    names = ("start_value", "gap", "success", "nominal_length", *ROLLED_OUT)
    length = None if found is None else found.mean_length
    return {**{name: row.get(name) for name in names}, "mean_length": length}


def curve_as_parquet(curve: Sequence[Point]) -> bytes:
    """A learning curve as a Parquet file."""
    import polars  # takes 0.2 s to import

    schema: dict[str, Any] = dict.fromkeys(Point._fields, polars.Float64)
    schema |= dict.fromkeys(("step", "nominal_length", "episodes"), polars.Int64)
    file = io.BytesIO()
    polars.DataFrame(curve, schema=schema, orient="row").write_parquet(file)
    return file.getvalue()


def _session(assignment: Assignment) -> Session:
    config = assignment.config
    use_folders(assignment.folders)
    if "source" in config:
        check_origin(agent_origin(config["agent"]), config["source"])
    if assignment.checkpoint:
        return _resumed(assignment)
    limits, rule = _training(config)
    if "env" in config["problem"]:
        problem, evaluators = spec_of(config["problem"]).make(), {}
    else:
        evaluators = _evaluators_of(config)
        problem = evaluators["evaluator"].problem
    return make_session(
        config["agent"], problem, stop=rule, **evaluators, **limits, **config["settings"]
    )


def _training(config: Mapping[str, Any]) -> tuple[dict[str, Any], StoppingRule]:
    """The limits and the seed of a run, and its stopping rule."""
    training = dict(config["training"])
    limits = {key: training.pop(key) for key in ("seed", *LIMITS) if key in training}
    return limits, as_rule(**training)


def _resumed(assignment: Assignment) -> Session:
    """Resume the session of a checkpoint; raise if it belongs to another run."""
    config = assignment.config
    kind = agent_class(config["agent"])
    session = from_bytes(assignment.checkpoint, "the checkpoint")
    training = session.training
    limits = [key for key in ("seed", *LIMITS) if key in config["training"]]
    found = {
        "agent": config["agent"] if type(session.agent) is kind else session.agent.name,
        "settings": as_data(session.agent.config),
        "training": {
            **rule_data(training.stop),
            **{key: getattr(training, key) for key in limits},
        },
    }
    posed = _posed(_evaluators_of(config)["evaluator"].problem, training.seed)
    differs = any(config[key] != value for key, value in found.items())
    if differs or not session.domain.same_as(posed):
        raise CheckpointError("the checkpoint: is of another run")
    return session


def _evaluators_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluators of a run, by the names under which `make_session` takes them."""
    settings, spec = make_config(config["agent"], config["settings"]), canonical(config["problem"])
    judged, own = _training(config)[1].objective(settings), own_objective(settings)
    evaluator_for = _evaluators(spec)
    return {"evaluator": evaluator_for(judged), "own_evaluator": evaluator_for(own)}


@lru_cache(maxsize=16)
def _evaluators(spec: bytes) -> Callable[[Objective], Evaluator]:
    """The evaluators of a problem, with their optima, cached for all runs on it."""
    domain = _posed(spec_of(json.loads(spec)).make(), 0)
    return cache(lambda objective: domain.evaluator(*objective))


def _posed(problem: Any, seed: int) -> Domain:
    """A problem as a domain, which is the same for all agents."""
    nobody = Learner(Agent, gamma=1.0)  # type: ignore[type-abstract]  # makes no agent
    return domain_of(problem, nobody, stream(seed, "environment"))
