"""`qrmax plan`: thresholds and sample-complexity bounds, beside the values used in practice.

With real-valued positions, the bounds of buckets: see `plan_buckets.py`. For a study, the remaining
runs and their estimated time: see `plan_study.py`.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import click

from qrmax.agents.registry import agent_class, default_settings
from qrmax.cli.output import (
    as_json,
    examples,
    percent,
    print_facts,
    print_json,
    print_table,
    short_number,
)
from qrmax.cli.plan_buckets import BUCKET_OPTIONS, bucket_options, plan_buckets, refuse_for_tables
from qrmax.cli.plan_study import (
    STUDY_OPTIONS,
    check_world,
    is_study,
    plan_study,
    refuse_options,
    study_options,
)
from qrmax.cli.problems import (
    agent_option,
    check_agent,
    is_continuous,
    make_problem,
    problem_options,
    usual_agent,
)
from qrmax.cli.world_options import ProblemCommand
from qrmax.errors import QRMaxWarning, warn
from qrmax.theory import (
    BOUND_OF,
    CONCENTRATIONS,
    Bound,
    Goal,
    Method,
    Sizes,
    comparison,
    qrmax_bound,
    rmax_bound,
)

PRACTICE = (
    "t_env",
    "t_task",
    "alpha",
    "epsilon",
    "q0",
    "horizon",
    "bonus_scale",
    "prior",
    "samples",
)


@click.command(
    cls=ProblemCommand,
    epilog=examples(
        "qrmax plan office/map3/exp5 --agent rmax --epsilon 0.1 --delta 0.05",
        "qrmax plan --map my.txt --task my.toml --gamma 0.95 --json",
        "qrmax plan continuous/office/map1/exp1 --set functions=8 --diameter 1",
        "qrmax plan paper/table4 --protocol as-published",
    ),
)
@problem_options
@agent_option
@click.option(
    "--epsilon", type=float, default=0.1, show_default=True, help="The accuracy: epsilon-optimal."
)
@click.option(
    "--delta", type=float, default=0.05, show_default=True, help="The failure probability."
)
@click.option("--gamma", type=float, default=0.9, show_default=True, help="The discount factor.")
@click.option("--r-max", type=float, help="The largest reward.  [default: that of the problem]")
@click.option(
    "--horizon",
    type=int,
    help="The horizon in steps, for UCBVI and PSRL.  [default: the problem's step limit]",
)
@bucket_options
@study_options
@as_json
def plan(
    agent: str | None,
    epsilon: float,
    delta: float,
    gamma: float,
    r_max: float | None,
    horizon: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show the sample complexity and memory of learning PROBLEM; or the cost of a study.

    The theory is that of the paper (see `qrmax.theory`): the samples after which a pair counts as
    known, the number of steps on which the policy may not be epsilon-optimal, and the memory of the
    methods. In practice far fewer samples suffice.

    With real-valued positions these are the bounds of Bucket-QR-Max, for the number of buckets of
    sampled partitions, with an estimate of delta_LSH: the probability that SimHash makes a bucket
    that is too wide for the theory.

    For a study, such as paper/table4 or your own TOML file, it shows how many runs there are and
    how many are complete, and estimates time and memory; nothing is run.
    """
    study = {key: options.pop(key) for key in STUDY_OPTIONS}
    of_buckets = {key: options.pop(key) for key in BUCKET_OPTIONS}
    if is_study(options["problem"]):
        refuse_options(of_studies=False)
        plan_study(options["problem"], as_json=as_json, **study)
        return
    refuse_options(of_studies=True)
    check_world(options["problem"])
    agent = agent or usual_agent(options["problem"])
    check_agent(agent)
    problem = make_problem(**options)
    least, most = problem.reward_range()
    goal = Goal(epsilon=epsilon, delta=delta, gamma=gamma, r_max=most if r_max is None else r_max)
    if least < 0.0 or most > goal.r_max:
        warn(
            f"the theory assumes rewards from 0 to {goal.r_max:g}; those of {problem.name!r} range "
            f"from {least:g} to {most:g}, so these bounds do not hold"
        )
    if is_continuous(options["problem"]):
        plan_buckets(agent, problem, goal, as_json=as_json, **of_buckets)
        return
    refuse_for_tables()
    practice = _practice(agent)
    if horizon is not None and agent_class(agent).has_horizon:
        practice["horizon"] = horizon
    if horizon is None:
        horizon = problem.max_episode_steps or goal.horizon
    outlook = _look_ahead(problem, goal, horizon)
    memory = _table_bytes(agent, problem, practice)
    if as_json:
        _print_as_json(agent, outlook, practice, memory)
    else:
        _print_for_people(agent, outlook, practice, memory)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Outlook:
    """The theoretical bounds of a problem."""

    problem: str
    sizes: Sizes
    successors: int  # of a state-action pair, at most
    goal: Goal
    bounds: dict[str, dict[str, Bound]]  # by learner, then by concentration
    episode: int  # steps of one
    methods: tuple[Method, ...]


def _look_ahead(problem: Any, goal: Goal, episode: int) -> _Outlook:
    sizes = Sizes(
        states=problem.n_states, actions=problem.n_actions, task_states=problem.n_task_states
    )
    successors = problem.mdp.succ.shape[2]
    certain = not problem.machine.is_stochastic
    return _Outlook(
        problem=problem.name,
        sizes=sizes,
        successors=successors,
        goal=goal,
        bounds={
            "QR-Max": {
                name: qrmax_bound(sizes, goal, concentration=name, deterministic=certain)
                for name in CONCENTRATIONS
            },
            "R-Max": {name: rmax_bound(sizes, goal, concentration=name) for name in CONCENTRATIONS},
        },
        episode=episode,
        methods=comparison(sizes, horizon=episode, successors=successors),
    )


def _table_bytes(agent: str, problem: Any, settings: dict[str, Any]) -> int:
    """The memory of an agent's tables at the start: they hardly grow."""
    from qrmax.training.run import make_session  # takes a second to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # they come when the agent is trained
        return make_session(agent, problem, **settings).agent.nbytes


def _print_as_json(agent: str, outlook: _Outlook, practice: dict[str, Any], memory: int) -> None:
    goal = outlook.goal
    print_json(
        {
            "problem": outlook.problem,
            "agent": agent,
            "guarantee": BOUND_OF.get(agent),
            "practice": practice,
            "table_bytes": memory,
            "sizes": {**asdict(outlook.sizes), "successors": outlook.successors},
            "goal": asdict(goal),
            "horizon": goal.horizon,
            "escape_probability": goal.escape_probability,
            "bounds": {
                learner: {name: asdict(bound) for name, bound in forms.items()}
                for learner, forms in outlook.bounds.items()
            },
            "episode_horizon": outlook.episode,
            "methods": [asdict(method) for method in outlook.methods],
        }
    )


def _print_for_people(agent: str, outlook: _Outlook, practice: dict[str, Any], memory: int) -> None:
    goal, sizes = outlook.goal, outlook.sizes
    settings = ", ".join(f"{name} {value:g}" for name, value in practice.items())
    print_facts(
        {
            "problem": outlook.problem,
            "size": f"{sizes.states} states, {sizes.actions} actions, "
            f"{sizes.task_states} task states, up to {outlook.successors} successors",
            "goal": f"{goal.epsilon:g}-optimal with probability {percent(1 - goal.delta)}  "
            f"(gamma {goal.gamma:g}, rewards from 0 to {goal.r_max:g})",
            "horizon": f"{goal.horizon} steps; escape probability {goal.escape_probability:.3g}",
            "agent": f"{agent}, in practice with {settings}",
            "memory": f"{memory / 1e6:,.1f} MB of tables",
            "guarantee": f"that of {BOUND_OF[agent]}, with the thresholds of the theory"
            if agent in BOUND_OF
            else "none",
        }
    )
    click.echo()
    head = ("samples", "in practice", *(name.capitalize() for name in CONCENTRATIONS))
    rows = [row for learner in outlook.bounds for row in _bound_rows(learner, outlook)]
    print_table(head, rows)
    click.echo()
    print_table(
        (f"entries, episodes of {outlook.episode}", "in the paper", "in qrmax"),
        [
            (m.name, short_number(m.paper_entries), short_number(m.our_entries))
            for m in outlook.methods
        ],
    )


def _practice(agent: str) -> dict[str, Any]:
    """The default settings of an agent."""
    settings = default_settings(agent)
    return {name: settings[name] for name in PRACTICE if name in settings}


def _bound_rows(learner: str, outlook: _Outlook) -> list[tuple[str, ...]]:
    """The thresholds and the bound of a learner, with the practical values in the first column."""
    learning = next(agent for agent in BOUND_OF if BOUND_OF[agent] == learner)
    sizes, settings = outlook.sizes, _practice(learning)
    bounds = [*outlook.bounds[learner].values()]
    factored = agent_class(learning).factored
    known = (
        sizes.pairs * settings["t_env"] + sizes.arrivals * settings["t_task"]
        if factored
        else sizes.triples * settings["t_env"]
    )

    def row(what: str, practice: float | None, *theory: float | None) -> tuple[str, ...]:
        return (f"{learner}: {what}", *map(short_number, (practice, *theory)))

    pair = "(s, a)" if factored else "(s, q, a)"
    rows = [row(f"for a known {pair}", settings["t_env"], *(b.t_env for b in bounds))]
    if factored:
        rows.append(row("for a known (q, s')", settings["t_task"], *(b.t_task for b in bounds)))
    optimal = f"{outlook.goal.epsilon:g}-optimal"
    return [
        *rows,
        row("for a known model", known, *(b.unknown for b in bounds)),
        row(f"steps not {optimal}", None, *(b.steps for b in bounds)),
        row("value error, by Section 4.2", None, *(b.value_error for b in bounds)),
    ]
