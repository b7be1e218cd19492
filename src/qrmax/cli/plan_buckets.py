"""`qrmax plan` with real-valued positions: the bounds of buckets, and an estimate of delta_LSH."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from qrmax.cli.output import percent, print_facts, print_json, print_table, short_number
from qrmax.cli.settings_option import settings_option
from qrmax.theory import Bound, Goal, Sizes, bucket_bound, bucket_diameter

if TYPE_CHECKING:
    from qrmax.analysis.lsh_failure import LSHFailure
    from qrmax.problems.continuous_problem import ContinuousProblem

BUCKET_OPTIONS = ("settings", "diameter", "lipschitz", "partitions", "samples")
GUARANTEED = ("bucket-qrmax", "bucket-qrmax-rm")
SEED = 0  # the same numbers each time

_OPTIONS = (
    settings_option(
        "With continuous positions: a setting of the buckets, such as functions=8; may be repeated."
    ),
    click.option(
        "--diameter",
        type=float,
        help="The largest diameter of a bucket for delta_LSH, in units of observations.  "
        "[default: that of the theory, beta / L]",
    ),
    click.option(
        "--lipschitz",
        type=float,
        help="The Lipschitz constant L of the world.  [default: that of its noise, without walls]",
    ),
    click.option(
        "--partitions",
        type=int,
        default=100,
        show_default=True,
        help="Random partitions into buckets, for delta_LSH.",
    ),
    click.option(
        "--samples",
        type=int,
        default=10_000,
        show_default=True,
        help="Observations in each of them, uniform over the map.",
    ),
)


def bucket_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that concern buckets."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_for_tables() -> None:
    """Reject options for buckets if states are numbered."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in BUCKET_OPTIONS and given:
            raise click.UsageError(
                f"{option.opts[-1]} is for continuous positions, such as continuous/line/ab."
            )


def plan_buckets(
    agent: str,
    problem: ContinuousProblem,
    goal: Goal,
    *,
    settings: Mapping[str, Any],
    diameter: float | None,
    lipschitz: float | None,
    partitions: int,
    samples: int,
    as_json: bool,
) -> None:
    """Print the bounds for sampled buckets, and how often these are too wide."""
    import numpy as np

    from qrmax.agents.buckets.in_buckets import BucketSettings
    from qrmax.agents.registry import make_config
    from qrmax.analysis.lsh_failure import estimate_lsh_failure, lipschitz_constant

    if "gamma" in settings:
        raise click.UsageError("--set gamma=... is --gamma here.")
    config: Any = make_config(agent, {**settings, "gamma": goal.gamma})
    if not isinstance(config, BucketSettings):
        raise click.UsageError(f"{agent} has no buckets; use --agent bucket-qrmax.")
    if lipschitz is None:
        lipschitz = lipschitz_constant(problem)
    allowed = bucket_diameter(goal, lipschitz) if math.isfinite(lipschitz) else 0.0
    found = estimate_lsh_failure(
        problem,
        config,
        allowed if diameter is None else diameter,
        np.random.default_rng(SEED),
        partitions=1 if config.grid is not None else partitions,  # a grid is not random
        samples=samples,
    )
    sizes = Sizes(
        states=found.buckets[1], actions=problem.n_actions, task_states=problem.n_task_states
    )
    made = _BucketPlan(
        agent=agent,
        problem=problem,
        goal=goal,
        config=config,
        sizes=sizes,
        bound=bucket_bound(sizes, goal),
        lipschitz=lipschitz,
        allowed=allowed,
        found=found,
    )
    if as_json:
        _print_as_json(made)
    else:
        _print_for_people(made)


@dataclass(frozen=True, kw_only=True, slots=True)
class _BucketPlan:
    """The bounds of a continuous problem, and the partitions that were sampled."""

    agent: str
    problem: ContinuousProblem
    goal: Goal
    config: Any  # of the agent, with `BucketSettings`
    sizes: Sizes  # with the median number of buckets
    bound: Bound
    lipschitz: float
    allowed: float  # the largest diameter of a bucket, by the theory
    found: LSHFailure

    @property
    def practice(self) -> dict[str, Any]:
        """The settings of thresholds and buckets."""
        encoder = ("functions", "bits", "offset") if self.config.grid is None else ("grid",)
        names = ("t_env", "t_task", *encoder, "event_aware")
        return {name: getattr(self.config, name) for name in names if hasattr(self.config, name)}

    @property
    def known(self) -> int:
        """The samples until all buckets are known in practice."""
        sizes, t_env = self.sizes, int(self.config.t_env)
        if not hasattr(self.config, "t_task"):  # R-Max
            return sizes.triples * t_env
        return sizes.pairs * t_env + sizes.arrivals * int(self.config.t_task)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of delta_LSH; a grid is not random."""
        sure = (self.found.probability, self.found.probability)
        return self.found.interval if self.config.grid is None else sure

    @property
    def guarantee(self) -> str:
        """The guarantee, in words."""
        if self.agent not in GUARANTEED:
            return "none"
        if self.found.diameter > self.allowed:
            return f"none for this diameter: the theory allows {self.allowed:.3g}"
        holds = 1.0 - self.goal.delta - self.found.probability
        if holds <= 0.0:
            return "none: delta + delta_LSH is 1 or more"
        return f"with probability {percent(holds)}, with the thresholds of the theory"


def _print_as_json(made: _BucketPlan) -> None:
    low, high = made.interval
    print_json(
        {
            "problem": made.problem.name,
            "agent": made.agent,
            "guarantee": "Bucket-QR-Max" if made.agent in GUARANTEED else None,
            "practice": made.practice,
            "sizes": asdict(made.sizes),
            "goal": asdict(made.goal),
            "horizon": made.goal.horizon,
            "escape_probability": made.goal.escape_probability,
            "bound": asdict(made.bound),
            "lipschitz": made.lipschitz if math.isfinite(made.lipschitz) else None,
            "allowed_diameter": made.allowed,
            "delta_lsh": {
                **asdict(made.found),
                "probability": made.found.probability,
                "low": low,
                "high": high,
            },
        }
    )


def _print_for_people(made: _BucketPlan) -> None:
    goal, problem, bound = made.goal, made.problem, made.bound
    settings = ", ".join(f"{name} {value}" for name, value in made.practice.items())
    print_facts(
        {
            "problem": problem.name,
            "size": f"{problem.n_actions} actions, {problem.n_task_states} task states, "
            f"{problem.n_cells} cells",
            "goal": f"{goal.epsilon:g}-optimal with probability {percent(1 - goal.delta)}  "
            f"(gamma {goal.gamma:g}, rewards from 0 to {goal.r_max:g})",
            "horizon": f"{goal.horizon} steps; escape probability {goal.escape_probability:.3g}",
            "agent": f"{made.agent}, in practice with {settings}",
            **_measured(made),
            "guarantee": made.guarantee,
        }
    )
    click.echo()
    rows = [
        ("for a known (b, a)", made.config.t_env, bound.t_env),
        ("for a known (q, b')", getattr(made.config, "t_task", None), bound.t_task),
        ("for a known model", made.known, bound.unknown),
        (f"steps not {goal.epsilon:g}-optimal", None, bound.steps),
        ("value error, by Section 4.2", None, bound.value_error),
    ]
    print_table(
        ("Bucket-QR-Max, samples", "in practice", "in theory"),
        [(what, short_number(one), short_number(other)) for what, one, other in rows],
    )


def _measured(made: _BucketPlan) -> dict[str, str]:
    """The sampled partitions, in words."""
    found = made.found
    least, median, most = found.buckets
    narrow, middle, wide = found.widest
    low, high = made.interval
    if made.config.grid is None:
        share = f"{found.violations} of {found.partitions} partitions have a wider bucket"
        buckets = f"{median} in the median ({least} to {most}) of {found.partitions:,} partitions"
        widest = f"{middle:.3g} in the median ({narrow:.3g} to {wide:.3g})"
    else:
        share, buckets, widest = "a grid is not random", f"{median}", f"{middle:.3g}"
    return {
        "buckets": f"{buckets}, with {found.samples:,} uniform observations in each",
        "diameter": f"{widest} of the widest bucket; allowed: {found.diameter:.3g}  "
        f"(L {made.lipschitz:.3g})",
        "delta_LSH": f"{found.probability:.2f} [{low:.2f} to {high:.2f}]: {share}; "
        f"{percent(found.in_wide_buckets)} of the observations are in such buckets",
    }
