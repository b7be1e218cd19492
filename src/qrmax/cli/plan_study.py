"""`qrmax plan STUDY`: the remaining runs, with their estimated time and memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from qrmax.cli.output import print_facts, print_json
from qrmax.cli.studies import folder_option, only_option, protocol_option, workers_option
from qrmax.errors import check_count, warn
from qrmax.live_line import duration

if TYPE_CHECKING:
    from qrmax.studies.study import Study

_OPTIONS = (protocol_option, only_option, workers_option, folder_option)
STUDY_OPTIONS = ("protocol", "only", "workers", "folder")


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a study's runs."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_study(name: str | None) -> bool:
    """Whether this is the name of a study, not of a problem."""
    from qrmax.studies.library import SUFFIX, study_names

    return name is not None and (name in study_names() or name.endswith(SUFFIX))


def check_world(name: str | None) -> None:
    """Suggest a study if the name is that of no problem."""
    from qrmax.studies.library import study_names
    from qrmax.worlds.catalog import is_world, unknown_problem

    if name is not None and not is_world(name):
        raise unknown_problem(name, "problem or study", study_names())


def refuse_options(*, of_studies: bool) -> None:
    """Reject options for studies on a problem, and the other way round."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in ("problem", "as_json") or not given:
            continue
        if (name in STUDY_OPTIONS) == of_studies:
            whose = "studies, such as paper/table4" if of_studies else "problems, not for studies"
            raise click.UsageError(f"{option.opts[-1]} is for {whose}.")


def plan_study(
    name: str,
    *,
    protocol: str | None,
    only: dict[str, list[str]],
    workers: int | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Print the estimated cost of the remaining runs."""
    from qrmax.studies.backends import count_cores
    from qrmax.studies.estimate import estimate
    from qrmax.studies.expand import load_study
    from qrmax.studies.results import status
    from qrmax.studies.store import Store
    from qrmax.studies.study import numbers_as_text
    from qrmax.studies.sweep import default_folder, select

    whole = load_study(name, protocol)
    study, folder = select(whole, only), folder or default_folder(whole)
    if workers is None:
        workers = count_cores()
    check_count("workers", workers)
    found, wanted = status(folder, study), estimate(study, Store(folder), workers)
    _warn_of_few_steps(study)
    if as_json:
        print_json(
            {
                "study": study.name,
                "protocol": study.protocol,
                "folder": str(folder),
                "problems": study.problems,
                "agents": study.agents,
                "seeds": study.seeds,
                "training": study.training,
                "stop": study.stops,
                "runs": len(study),
                "done": found.done,
                "failed": found.failed,
                "left": found.left,
                "given_up": found.given_up,
                "give_up_after": study.give_up_after,
                "agree_within": study.agree_within,
                "workers": workers,
                "seconds": wanted.seconds,
                "at_most": wanted.at_most,
                "worker_bytes": wanted.worker_bytes,
                "table_bytes": wanted.table_bytes,
            }
        )
        return
    at_most = "at most " if wanted.at_most else "about "
    known = "if every run uses its budget" if wanted.at_most else "from the runs done so far"
    print_facts(
        {
            "study": f"{study.name}, {study.protocol}" if study.protocol else study.name,
            "problems": f"{len(study.problems)}: {_short(study.problems)}",
            "agents": f"{len(study.agents)}: {_short(study.agents)}",
            "seeds": numbers_as_text(study.seeds),
            "training": f"up to {study.max_steps:,} steps"
            + (f" or {study.max_episodes:,} episodes" if study.max_episodes else "")
            + ", evaluated every "
            f"{study.training['evaluate_every']:,}",
            "stop": _rules_text(study),
            "runs": f"{len(study):,}: {found.done:,} done, {found.failed:,} failed, "
            f"{found.left:,} left" + (f", {found.given_up:,} not run" if found.given_up else ""),
            **_futility_facts(study),
            "time": f"{at_most}{duration(wanted.seconds)} with {workers} workers, {known}"
            if found.left or found.failed
            else "nothing left to run",
            "memory": f"{workers * wanted.worker_bytes / 1e6:,.0f} MB: {workers} workers of "
            f"{wanted.worker_bytes / 1e6:,.0f} MB; tables of up to "
            f"{wanted.table_bytes / 1e6:,.1f} MB ({wanted.largest.label} on "
            f"{wanted.largest.problem.label})",
            "results": str(folder),
        }
    )


def _futility_facts(study: Study) -> dict[str, str]:
    after = study.give_up_after
    if after is None:
        return {}
    within = study.agree_within
    agree = "" if within is None else f", or all do, with steps within {100 * within:g} %"
    return {
        "give up after": f"{after} seeds of an agent on a problem, if none of them meets the rule"
        + agree
    }


def _warn_of_few_steps(study: Study) -> None:
    """Warn if runs may end before all their episodes, which leaves gaps in the table."""
    if study.max_episodes is None:
        return
    specs = {cell.problem.label: cell.problem for cell in study.cells}
    limits = [getattr(spec.make(), "max_episode_steps", None) for spec in specs.values()]
    needed = study.max_episodes * max(limit or 0 for limit in limits)
    if study.max_steps < needed:
        warn(
            f"{study.max_episodes:,} episodes may take {needed:,} steps, but max_steps is "
            f"{study.max_steps:,}: the table leaves out runs that end before"
        )


def _rules_text(study: Study) -> str:
    """The stopping rules with their settings; with their problems if there are several."""
    problems: dict[str, list[str]] = {}
    for problem, rule in study.stops.items():
        given = {key: value for key, value in rule.items() if value is not None and key != "stop"}
        how = ", ".join(f"{key} {value}" for key, value in given.items())
        text = "budget" if rule["stop"] == "budget" else f"{rule['stop']} ({how})"
        problems.setdefault(text, []).append(problem)
    if len(problems) == 1:
        return next(iter(problems))
    return "; ".join(f"{text} on {_short(tuple(names))}" for text, names in problems.items())


def _short(names: tuple[str, ...]) -> str:
    return "; ".join(names if len(names) <= 6 else (*names[:2], "...", names[-1]))
