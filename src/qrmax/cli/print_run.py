"""Results of a run, printed as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrmax.cli.output import NO_SUCCESS, nominal_text, percent, print_facts, print_json

if TYPE_CHECKING:
    from qrmax.agents.buckets.buckets import Buckets
    from qrmax.planning.policy_evaluation import Evaluation
    from qrmax.training.evaluator import Best
    from qrmax.training.run import Run
    from qrmax.training.trainer import TrainingConfig


def print_run(
    outcome: Run, training: TrainingConfig, as_json: bool, files: dict[str, Path | None]
) -> None:
    """Print the results of a run, as text or as JSON."""
    on_problem = outcome.problem is not None
    if as_json:
        print_json(_problem_data(outcome, training) if on_problem else _env_data(outcome, training))
        return
    facts = _problem_facts(outcome, training) if on_problem else _env_facts(outcome, training)
    facts |= {what: str(file) for what, file in files.items() if file is not None}
    print_facts(facts)


def _problem_data(outcome: Run, training: TrainingConfig) -> dict[str, Any]:
    problem, evaluation, gap, best = _evaluated(outcome)
    stage_0 = outcome.stationary_evaluation
    return {
        "agent": outcome.agent.name,
        "problem": problem.name,
        **_training_data(outcome, training),
        "start_value": evaluation.start_value,
        "gap": gap,
        "best_start_value": best.start_value,
        "success": evaluation.success,
        "best_success": best.success,
        "mean_length": evaluation.mean_length,
        "nominal_length": evaluation.nominal_length,
        "seconds": outcome.seconds,
        "settings": asdict(outcome.agent.config),
        "stage_0": None if stage_0 is None else asdict(stage_0),
        "own_gap": outcome.own_gap,
        "own_steps": outcome.own_steps,
    }


def _problem_facts(outcome: Run, training: TrainingConfig) -> dict[str, str]:
    problem, evaluation, gap, best = _evaluated(outcome)
    buckets, sampled = _buckets(outcome), outcome.agent.perceives
    facts = {
        "agent": outcome.agent.name,
        "problem": problem.name,
        **_training_facts(outcome, training),
        "gap": f"{percent(gap)} to the optimum"
        + (f": {evaluation.start_value:.4g} of {best.start_value:.4g}" if sampled else ""),
        **(_success(outcome, evaluation) if problem.machine.success else {"success": NO_SUCCESS}),
        **({"buckets": f"{len(buckets):,}"} if buckets is not None else {}),
        **_learning_facts(outcome),
    }
    if (stage_0 := outcome.stationary_evaluation) is not None:
        facts["evaluated"] = _evaluated_by(outcome, training)
        alone = f"{percent(stage_0.success)} success"
        if not problem.machine.success:
            alone = f"start value {stage_0.start_value:.6g}"
        facts["stage 0 alone"] = f"{alone}, as a stationary policy"
    if (own := outcome.own_gap) is not None:
        facts["own objective"] = f"{percent(own)} gap, {_own_objective(outcome)}"
    return facts


def _evaluated_by(outcome: Run, training: TrainingConfig) -> str:
    """The evaluation of a policy with stages."""
    config, yardstick = outcome.agent.config, training.stop.gamma
    if yardstick is None:
        return f"with its policy of {config.episode_horizon} stages, gamma {config.gamma:g}"
    return (
        f"gamma {yardstick:g}, the problem's own episodes; its policy of {config.episode_horizon} "
        "stages restarts after the last"
    )


def _own_objective(outcome: Run) -> str:
    """The objective of the agent, and whether it met the stopping rule."""
    config, steps = outcome.agent.config, outcome.own_steps
    horizon = f", {config.episode_horizon} steps" if config.episode_horizon else ""
    met = "" if steps is None else f"; the rule was met at step {steps:,}"
    return f"gamma {config.gamma:g}{horizon}{met}"


def _env_data(outcome: Run, training: TrainingConfig) -> dict[str, Any]:
    made_from = outcome.environment or {}
    return {
        "agent": outcome.agent.name,
        "env": outcome.task_name,
        "task": outcome.machine.name,
        "labelling": made_from.get("labels") or made_from.get("transition_labels"),
        "wrappers": made_from.get("wrappers", []),
        "options": made_from.get("options", {}),
        **_training_data(outcome, training),
        "last_check": outcome.curve[-1]._asdict() if outcome.curve else {},
        "seconds": outcome.seconds,
        "settings": asdict(outcome.agent.config),
    }


def _env_facts(outcome: Run, training: TrainingConfig) -> dict[str, str]:
    last = outcome.curve[-1]._asdict() if outcome.curve else {}
    success = {"success": _interval(last, "success", percent)}
    if not outcome.machine.success:
        success = {"success": NO_SUCCESS}
    buckets = _buckets(outcome)
    facts = {
        "agent": outcome.agent.name,
        "environment": outcome.task_name,
        "task": outcome.machine.name,
        **_training_facts(outcome, training),
        **success,
        "return": _interval(last, "episode_return", _number),
        "length": _interval(last, "length", _number),
        **({"buckets": f"{len(buckets):,}"} if buckets is not None else {}),
        **_learning_facts(outcome),
    }
    return {name: text for name, text in facts.items() if text}


def _interval(last: dict[str, Any], name: str, number: Callable[[float], str]) -> str:
    """A mean of the last check with its confidence interval; empty if there is none."""
    value, low, high = (last.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return ""
    if low is None or high is None or low == high:
        return number(value)
    return f"{number(value)}  [{number(low)} to {number(high)}]"


def _number(value: float) -> str:
    """A return or a length, with thousands separators.

    >>> _number(1000.0), _number(-13.25), _number(0.98765)
    ('1,000.0', '-13.2', '0.988')
    """
    return f"{value:,.1f}" if abs(value) >= 10.0 else f"{value:.3g}"


def _training_data(outcome: Run, training: TrainingConfig) -> dict[str, Any]:
    """The seed, steps and episodes, and what ended training, as plain data."""
    return {
        "seed": outcome.seed,
        "steps": outcome.steps,
        "evaluate_every": training.evaluate_every,
        "episodes": outcome.episodes,
        "reason": outcome.reason,
        "trained": outcome.trained,
    }


def _training_facts(outcome: Run, training: TrainingConfig) -> dict[str, str]:
    """The seed, steps and episodes, and what ended training."""
    rule, steps = training.stop.name, f"{outcome.steps:,}"
    if outcome.reason != "budget":
        end = f", and on to the end at {outcome.trained:,}" if training.stop.takes_budget else ""
        steps += f"{end}  (checked every {training.evaluate_every:,})"
    else:
        steps += ", the budget" + ("" if rule == "budget" else f": the rule {rule!r} was not met")
    return {
        "seed": str(outcome.seed),
        "steps": steps,
        "episodes": f"{outcome.episodes:,}",
        "stopped by": outcome.reason,
    }


def _learning_facts(outcome: Run) -> dict[str, str]:
    """The coverage of the model, and the training time."""
    known = outcome.agent.known()
    return {
        "known": f"{known.pairs:,} of {known.of:,} visited" if known else "no model",
        "seconds": f"{outcome.seconds:.3f}  of training ({_rate(outcome)} steps/s)",
    }


def _evaluated(outcome: Run) -> tuple[Any, Evaluation, float, Best]:
    """The problem of a run, the evaluation of its policy, the gap and the optimum."""
    problem, evaluation, gap, best = outcome.problem, outcome.evaluation, outcome.gap, outcome.best
    assert problem is not None
    assert evaluation is not None
    assert gap is not None
    assert best is not None
    return problem, evaluation, gap, best


def _buckets(outcome: Run) -> Buckets | None:
    from qrmax.agents.buckets.in_buckets import InBuckets

    return outcome.agent.buckets if isinstance(outcome.agent, InBuckets) else None


def _success(outcome: Run, evaluation: Evaluation) -> dict[str, str]:
    """The success rate, and the length of successful episodes."""
    share = percent(evaluation.success)
    if outcome.agent.perceives:
        length, best = evaluation.mean_length, outcome.best
        assert best is not None
        return {
            "success": f"{share}, sampled; the optimum has {percent(best.success)}",
            "mean length": "none: no success"
            if length is None
            else f"{length:.1f} steps, of successful episodes",
        }
    return {"success": share, "nominal length": nominal_text(evaluation.nominal_length)}


def _rate(outcome: Run) -> str:
    return f"{outcome.trained / max(outcome.seconds, 1e-9):,.0f}"
