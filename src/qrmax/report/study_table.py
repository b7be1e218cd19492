"""The table of a study, from its results folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from qrmax.agents.registry import make_config
from qrmax.errors import StoreError
from qrmax.planning.auto_horizon import HARDLY_EVER
from qrmax.planning.policy_evaluation import evaluate
from qrmax.planning.value_iteration import solve
from qrmax.report.layout import Layout
from qrmax.report.tables import Table, make_table
from qrmax.report.wording import counted
from qrmax.studies.other_runs import first_reached, is_judged
from qrmax.studies.problem_specs import CatalogProblem, Environment, ProblemSpec, PythonProblem
from qrmax.studies.results import results
from qrmax.studies.study import Study
from qrmax.training.stopping import RULES

if TYPE_CHECKING:
    import polars as pl

# The columns of a reference that belong to the optimal policy, not to an agent.
LENGTH, SUCCESS = "optimum: mean length", "optimum: success %"

EVALUATED = {  # by the kind of problem
    "environment": "by 100 rollouts on environments",
    "tabular": "exactly on tabular problems",
    "continuous": "in sampled episodes on continuous problems",
}


def study_table(study: Study, folder: str | os.PathLike[str]) -> Table:
    """The table of a study, beside published reference values."""
    import polars

    ours = own_results(study, folder)
    layout, most = study_layout(study), study.max_episodes
    theirs = _others(study)
    if most is None:
        return make_table(polars.concat([ours, theirs], how="diagonal_relaxed"), layout)
    every = study.training["evaluate_every"]
    checks = f"Policies were evaluated every {every:,} steps; episodes are counted then."
    layout = replace(layout, about=f"{layout.about} {checks}".lstrip())
    whole = ours.filter((polars.col("status") != "done") | ~_ran_out_of_steps(most))
    if out := len(ours) - len(whole):
        short = (
            f"{counted(out, 'run')} took all {study.max_steps:,} steps before {most:,} episodes: "
            "right-censored, and counted as missing; raise max_steps"
        )
        if not len(whole):
            raise StoreError(f"{folder}: {short}")
        layout = replace(layout, about=f"{layout.about} {short}.".lstrip())
    return make_table(
        polars.concat([_in_episodes(whole, most), theirs], how="diagonal_relaxed"), layout
    )


def own_results(study: Study, folder: str | os.PathLike[str]) -> pl.DataFrame:
    """The results of a study, without those of its earlier versions."""
    import polars

    found = results(folder, earlier=True)
    ours = found.filter(polars.col("id").is_in([run.id for run in study.runs()]))
    if not len(ours):
        raise StoreError(
            f"{folder}: has no results of this version of {study.name}, but {len(found)} of "
            "others; sweep it again"
        )
    return ours


def _others(study: Study) -> pl.DataFrame:
    """The runs of other tools as rows of results, with steps to the threshold of `reaches`."""
    import polars

    rows = []
    for other in study.others:
        for run in other.runs:
            rule = study.stops[other.problem]
            judged = study.max_episodes is None and is_judged(run, rule)
            first = first_reached(run, rule) if judged else None
            last = run.curve[-1]
            rows.append(
                {
                    "problem": other.problem,
                    "label": other.marked,
                    "seed": run.seed,
                    "status": "done",
                    "reached": first is not None if judged else None,
                    "steps": study.max_steps if first is None else first,
                    "max_steps": study.max_steps,
                    "success": last.success,
                    "episode_return": last.episode_return,
                }
            )
    kinds: dict[str, Any] = dict.fromkeys(("problem", "label", "status"), polars.String)
    kinds |= dict.fromkeys(("seed", "steps", "max_steps"), polars.Int64)
    kinds |= {
        "reached": polars.Boolean,
        "success": polars.Float64,
        "episode_return": polars.Float64,
    }
    return polars.DataFrame(rows, schema=kinds, orient="row")


def _ran_out_of_steps(most: int) -> pl.Expr:
    """An expression: the run ended before its stopping rule was met and before n episodes."""
    import polars

    return ~polars.col("reached") & (polars.col("episodes") < most)


def _in_episodes(runs: pl.DataFrame, most: int) -> pl.DataFrame:
    """The results with episodes in place of steps."""
    import polars

    count = polars.min_horizontal(polars.col("episodes"), polars.lit(most))
    unknown = polars.lit(None, dtype=polars.Int64)  # the number of episodes between two evaluations
    return runs.with_columns(steps=count, max_steps=polars.lit(most), evaluate_every=unknown)


def study_layout(study: Study) -> Layout:
    """The layout of the table of a study."""
    title = study.title or study.name
    published = {
        problem: (row[LENGTH], row[SUCCESS] / 100.0)
        for problem, row in study.reference.items()
        if LENGTH in row and SUCCESS in row and problem in study.problems
    }
    specs = {cell.problem.label: cell.problem for cell in study.cells}
    others = tuple(dict.fromkeys(other.marked for other in study.others))
    thresholds = tuple(p for p, rule in study.stops.items() if rule["stop"] != "budget")
    counts_steps = bool(thresholds or study.reference)
    return Layout(
        title=f"{title}, {study.protocol}" if study.protocol else title,
        about=" ".join(filter(None, _about(study))),
        command=_command(study),
        seeds=study.seeds,
        give_up_after=study.give_up_after,
        agree_within=study.agree_within,
        unit="steps" if study.max_episodes is None else "episodes",
        problems=study.problems,
        labels=study.agents,
        reference_name="paper" if study.name.startswith("paper/") else "reference",
        reference={
            (problem, label): row[label]
            for problem, row in study.reference.items()
            for label in study.agents
            if label in row and problem in study.problems
        },
        optimum={
            problem: optimum(spec, in_default_world=_is_judged_without_slips(study, problem))
            for problem in published
            if not isinstance(spec := specs[problem], Environment)
        },
        optimum_reference=published,
        compare=study.comparable,
        shows_success=any(rule["stop"] == "success" for rule in study.stops.values()),
        shows_final=bool(others)
        or not counts_steps
        or any(isinstance(spec, Environment) for spec in specs.values()),
        evaluated=_evaluated(specs.values()),
        counts_steps=counts_steps,
        tests_samples=any(RULES[rule["stop"]].sampled for rule in study.stops.values()),
        others=others,
        thresholds=thresholds,
        information=information(study),
    )


def information(study: Study) -> dict[str, str]:
    """The information on the task of each learner, by its label; not of agents from outside.

    >>> import qrmax
    >>> information(qrmax.load_study("smoke"))["qrmax-rm"]
    'machine known'
    """
    levels: dict[str, list[str]] = {}
    for cell in study.cells:
        if cell.source is None:
            levels.setdefault(cell.label, []).append(
                make_config(cell.agent, cell.settings).information
            )
    return {label: " or ".join(dict.fromkeys(found)) for label, found in levels.items()}


def _evaluated(specs: Iterable[ProblemSpec]) -> str:
    """The evaluation of last policies, for each kind of problem."""
    kinds = {_kind(spec) for spec in specs}
    return ", ".join(how for kind, how in EVALUATED.items() if kind in kinds)


def _kind(spec: ProblemSpec) -> str:
    if isinstance(spec, Environment):
        return "environment"
    name = spec.name if isinstance(spec, CatalogProblem) else None
    return "continuous" if (name or "").startswith("continuous/") else "tabular"


def _command(study: Study) -> str:
    """The command that sweeps a study; the call, if it was made in Python."""
    if study.file is None:
        protocol = f", protocol={study.protocol!r}" if study.protocol else ""
        return f"qrmax.sweep(qrmax.Study(..., name={study.name!r}{protocol}))"
    return f"qrmax sweep {study.file}" + (f" --protocol {study.protocol}" if study.protocol else "")


def evaluation_criteria(study: Study) -> str:
    """The evaluation criteria of the learners, if they are not the same for all.

    >>> import qrmax
    >>> evaluation_criteria(qrmax.load_study("paper/table4"))
    ''
    """
    gammas = {rule.get("gamma") for rule in study.stops.values()}
    if gammas == {None}:
        return _own_criteria(study)
    [gamma] = gammas  # problems have different rules only by default, without a gamma
    own = _own_criteria(study, "Their own objectives:")
    if not own:
        return ""
    return (
        f"All learners are evaluated by one yardstick: gamma {gamma:g}, in the problem's own "
        "episodes, relative to the optimal policy for that. The policy of a learner that plans for "
        f"H steps restarts with its first stage after H steps. {own}"
    )


def _own_criteria(
    study: Study,
    begin: str = "Each learner is evaluated by its own objective, relative to the optimal policy "
    "for it:",
) -> str:
    """The objectives of the learners, if they are not the same for all."""
    labels: dict[tuple[float, bool], list[str]] = {}  # by gamma, and whether there is a horizon
    horizons: dict[int, list[str]] = {}
    for cell in study.cells:
        gamma, horizon = cell.settings["gamma"], cell.settings.get("horizon")
        labels.setdefault((gamma, horizon is not None), []).append(cell.label)
        if horizon is not None:
            horizons.setdefault(horizon, []).append(cell.problem.label)
    if len(labels) == 1 and len(horizons) <= 1:
        return ""
    parts = [
        f"{_listed(names)} at gamma {gamma:g}{' in episodes of H steps' if staged else ''}"
        for (gamma, staged), names in labels.items()
    ]
    steps = "; ".join(f"{horizon} on {_listed(names)}" for horizon, names in horizons.items())
    lengths = f" H is {steps}." if horizons else ""
    return f"{begin} {'; '.join(parts)}.{lengths}"


def _stand_ins(study: Study) -> str:
    """The agents behind labels that do not name them, as a protocol may replace an agent.

    >>> import qrmax
    >>> _stand_ins(qrmax.load_study("smoke", "as-published").only(agent=["qrm", "rmax"]))
    'Agents that were run under other names: rmax is `rmax-published`.'
    """
    problems: dict[str, list[str]] = {}  # by label
    others: dict[tuple[str, str], list[str]] = {}  # by label and agent
    for cell in study.cells:
        problems.setdefault(cell.label, []).append(cell.problem.label)
        if cell.source is None and not f"{cell.label},".startswith(f"{cell.agent},"):
            others.setdefault((cell.label, cell.agent), []).append(cell.problem.label)
    named = ", ".join(
        f"{label} is `{agent}`{_share(some, problems[label])}"
        for (label, agent), some in others.items()
    )
    return f"Agents that were run under other names: {named}." if named else ""


def _share(some: list[str], problems: list[str]) -> str:
    """Some of the problems, or all but a few, in as few names as possible."""
    left = [problem for problem in problems if problem not in some]
    if not left:
        return ""
    return f" on {_listed(some)}" if len(some) <= len(left) else f" but on {_listed(left)}"


def resigned(study: Study) -> str:
    """The tabular problems whose optimal policy does not try to succeed, which makes a rule void.

    >>> import qrmax
    >>> resigned(qrmax.load_study("paper/table4", "exact"))
    ''
    """
    specs = {cell.problem.label: cell for cell in study.cells if _is_tabular(cell.problem)}
    found = []
    for label, cell in specs.items():
        gamma = study.stops[label].get("gamma", cell.settings["gamma"])
        problem = cell.problem.make().unshaped
        if gamma == 1.0 or not problem.machine.success:
            continue
        best = evaluate(problem, solve(problem, gamma).policy, gamma)
        if best.success < HARDLY_EVER:
            found.append(
                f"{label} (success {100 * best.success:.2g} %, value {best.start_value:.2g})"
            )
    if not found:
        return ""
    return (
        f"On {'; '.join(found)} the optimal policy stays at home: a penalty outweighs the "
        "discounted reward, and a policy that never succeeds, such as one that has learned nothing "
        "but to keep away, is as good. Steps there do not measure how soon the task is learned."
    )


def _is_tabular(spec: ProblemSpec) -> bool:
    return not isinstance(spec, Environment) and _kind(spec) == "tabular"


def _about(study: Study) -> Iterator[str]:
    """The sentences above the table of a study."""
    yield study.about
    yield _stand_ins(study)
    yield evaluation_criteria(study)
    yield _rules(study)
    yield resigned(study)
    yield _world_of_optimum(study)
    gaps = {rule["within"] for rule in study.stops.values() if rule["stop"] == "stays"}
    if gaps:
        within = " or ".join(f"{100 * gap:g} %" for gap in sorted(gaps))
        yield (
            f"Steps are those to the threshold for good: from there on a policy is within {within} "
            "of the optimum at every check, to the end of the budget."
        )


def _rules(study: Study) -> str:
    """The stopping rules, if they are not the same for all problems."""
    problems: dict[str, list[str]] = {}
    for problem, rule in study.stops.items():
        problems.setdefault(rule["stop"], []).append(problem)
    if len(problems) == 1:
        return ""
    parts = [f"{name} on {_listed(labels)}" for name, labels in problems.items()]
    return f"Stopping rules: {'; '.join(parts)}."


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))


class Optimum(NamedTuple):
    """The performance of the optimal policy."""

    mean_length: float | None  # of successful episodes; None if there are none
    success: float  # probability


def optimum(spec: CatalogProblem | PythonProblem, *, in_default_world: bool = False) -> Optimum:
    """The performance of the optimal policy for gamma 0.9, in the world of the runs or its default.

    >>> import qrmax
    >>> study = qrmax.Study(["office/map1/exp1"], ["qrmax"], world={"slip": 0.0})
    >>> optimum(study.cells[0].problem)
    Optimum(mean_length=15.0, success=1.0)
    >>> optimum(study.cells[0].problem, in_default_world=True).success < 0.67
    True
    """
    problem = (spec.plain() if in_default_world else spec.make()).unshaped
    found = evaluate(problem, solve(problem).policy)
    return Optimum(found.mean_length, found.success)


def _is_judged_without_slips(study: Study, problem: str) -> bool:
    """Whether only the most likely outcomes count, so that an optimum with slips is another's."""
    return bool(study.stops[problem]["stop"] == "nominal")


def _world_of_optimum(study: Study) -> str:
    """The world that the columns VI belong to, if they are shown."""
    if not any(
        LENGTH in row and problem in study.problems for problem, row in study.reference.items()
    ):
        return ""
    text = "VI: the optimal policy for gamma 0.9 in the world of the runs"
    if any(_is_judged_without_slips(study, problem) for problem in study.problems):
        text = (
            "VI: the optimal policy for gamma 0.9 in the world with its default options, which has "
            "slips, as the published one does; the runs are evaluated without"
        )
    return f"{text}."
