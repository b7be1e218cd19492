"""PAC bounds beside measured steps, for each problem and learner of a study.

The bound limits the steps on which the policy is not epsilon-optimal; what is measured are the
steps until the stopping rule is met, with thresholds far below those of the theory. See
`qrmax.theory`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from qrmax.agents.experience import COUNTERFACTUAL
from qrmax.agents.qrmax_rm import QRMaxRMConfig
from qrmax.agents.registry import agent_class, make_config
from qrmax.errors import ParameterError
from qrmax.problems.problem import Problem
from qrmax.report.findings import Cell as Measured
from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.study_table import study_table
from qrmax.report.wording import ABSENT, made_by, mean_text, resolution_text
from qrmax.studies.problem_specs import Environment, ProblemSpec
from qrmax.studies.study import Cell, Study, numbers_as_text
from qrmax.theory import BOUND_OF, CONCENTRATIONS, Bound, Goal, Sizes, qrmax_bound, rmax_bound
from qrmax.training.domains.tabular_domain import TabularDomain


class BoundCell(NamedTuple):
    """The bounds of a learner on a problem, beside its steps."""

    problem: str
    label: str
    measured: Measured
    known: int | None  # samples until the whole model is known, with the thresholds used
    bounds: tuple[Bound, ...]  # one for each concentration inequality; none without a guarantee
    holds: bool  # whether rewards are as the theory assumes

    @property
    def times(self) -> int | None:
        """The larger bound as a multiple of the mean steps; None if either is unknown."""
        mean = self.measured.mean
        return None if not mean or not self.bounds else int(self.bounds[-1].steps / Fraction(mean))


def bound_table(
    study: Study, folder: str | os.PathLike[str], *, epsilon: float = 0.1, delta: float = 0.05
) -> PlainTable:
    """The table of bounds and measured steps."""
    if study.max_episodes is not None:
        raise ParameterError(
            f"measure is 'bound', but {study.name!r} counts episodes (max_episodes); allowed: "
            "studies that count steps"
        )
    findings = study_table(study, folder).findings
    layout = findings.layout
    specs = {cell.problem.label: cell.problem for cell in study.cells}
    problems = {label: _tabular(spec) for label, spec in specs.items()}
    cells = []
    for cell in study.cells:
        measured = findings.cells[cell.problem.label, cell.label]
        cells.append(_bound_cell(cell, problems[cell.problem.label], measured, epsilon, delta))
    made = made_by(layout.command, findings.versions, findings.commits)
    return PlainTable(
        title=f"{layout.title}: PAC bounds",
        notes=(
            layout.about,
            f"{made}; seeds {numbers_as_text(layout.seeds)}. {resolution_text(findings)}".strip(),
            _note(cells, epsilon, delta),
        ),
        head=("problem", "learner", "steps", "known model", *_heads(), "bound / steps"),
        rows=tuple((layout.short_name(cell.problem), cell.label, *_texts(cell)) for cell in cells),
        records=tuple(_record(cell) for cell in cells),
        left=2,
    )


def _heads() -> tuple[str, ...]:
    return tuple(f"bound, {name.capitalize()}" for name in CONCENTRATIONS)


def _bound_cell(
    cell: Cell, problem: Problem | None, measured: Measured, epsilon: float, delta: float
) -> BoundCell:
    learner = BOUND_OF.get(cell.agent)
    if learner is None or problem is None:
        return BoundCell(cell.problem.label, cell.label, measured, None, (), holds=True)
    least, most = problem.reward_range()
    goal = Goal(epsilon=epsilon, delta=delta, gamma=cell.settings["gamma"], r_max=most)
    sizes = Sizes(
        states=problem.n_states, actions=problem.n_actions, task_states=problem.n_task_states
    )
    known = known_after(cell, sizes)
    certain = not problem.machine.is_stochastic
    bounds = tuple(
        qrmax_bound(sizes, goal, concentration=name, deterministic=certain)
        if learner == "QR-Max"
        else rmax_bound(sizes, goal, concentration=name)
        for name in CONCENTRATIONS
    )
    return BoundCell(cell.problem.label, cell.label, measured, known, bounds, holds=least >= 0.0)


def known_after(cell: Cell, sizes: Sizes) -> int:
    """The samples after which all is known; one serves every state of a machine that is given."""
    t_env: int = cell.settings["t_env"]
    kind, config = agent_class(cell.agent), make_config(cell.agent, cell.settings)
    if isinstance(config, QRMaxRMConfig) and config.count == COUNTERFACTUAL:
        t_env = -(-t_env // sizes.task_states)
    if not kind.factored:
        return (sizes.pairs if kind.knows_machine else sizes.triples) * t_env
    arrivals = sizes.states if kind.knows_machine else sizes.arrivals
    t_task: int = cell.settings["t_task"]
    return sizes.pairs * t_env + arrivals * t_task


def _tabular(spec: ProblemSpec) -> Problem | None:
    """The problem, if its states are numbered and its model is known."""
    made = None if isinstance(spec, Environment) else spec.make()
    return made if TabularDomain.takes(made) else None


def _note(cells: Sequence[BoundCell], epsilon: float, delta: float) -> str:
    return " ".join(_notes(cells, epsilon, delta))


def _notes(cells: Sequence[BoundCell], epsilon: float, delta: float) -> Iterator[str]:
    yield (
        f"A bound limits the steps on which the policy is not {epsilon:g}-optimal, with "
        f"probability {1 - delta:g}, for learners with the thresholds of the theory; constants in "
        "O(.) are taken as 1. Steps are those to the stopping rule, with the thresholds of the "
        "study; `known model`: the samples after which these call the whole model known. "
        "Hoeffding: the threshold that the paper prints; Weissman: the one that its proof needs, "
        "which the last column compares with the steps."
    )
    if any(not cell.bounds for cell in cells):
        yield f"{ABSENT}: the paper has no bound for the learner, or on this kind of problem."
    if negative := sorted({cell.problem for cell in cells if not cell.holds}):
        yield (
            f"The theory assumes rewards from 0 to R_max; with the negative ones of "
            f"{', '.join(negative)} the bounds do not hold."
        )


def _texts(cell: BoundCell) -> tuple[str, ...]:
    if not cell.bounds or cell.known is None:
        return (mean_text(cell.measured), *[ABSENT] * (2 + len(CONCENTRATIONS)))
    steps = (_short(bound.steps) for bound in cell.bounds)
    times = ABSENT if cell.times is None else _short(cell.times)
    return (mean_text(cell.measured), f"{cell.known:,}", *steps, times)


def _record(cell: BoundCell) -> dict[str, Field]:
    found = cell.measured.summary
    steps = {name: bound.steps for name, bound in zip(CONCENTRATIONS, cell.bounds, strict=False)}
    return {
        "problem": cell.problem,
        "label": cell.label,
        "n": cell.measured.n,
        "censored": found.censored if found else 0,
        "mean": found.mean if found else None,
        "std": found.std if found else None,
        "known_model": cell.known,
        **{f"bound_{name}": steps.get(name) for name in CONCENTRATIONS},
        "bound_over_steps": cell.times,
        "bound_holds": int(cell.holds and bool(cell.bounds)),
    }


def _short(number: int) -> str:
    return f"{Decimal(number):.3g}"
