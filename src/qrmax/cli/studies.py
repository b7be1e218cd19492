"""The arguments and options that select a study and its results folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from qrmax.studies.study import Study


def early_ends(study: Study) -> str:
    """The settings by which the first seeds of a cell may be enough.

    >>> import qrmax
    >>> early_ends(qrmax.load_study("paper/table6", "as-published"))
    'give_up_after = 3, agree_within = 0.2'
    """
    values = {key: getattr(study, key) for key in ("give_up_after", "agree_within")}
    return ", ".join(f"{key} = {value:g}" for key, value in values.items() if value)


def _complete_study(_: Any, __: Any, incomplete: str) -> list[str | CompletionItem]:
    """The built-in studies and the user's own files, for the shell."""
    from qrmax.cli.problems import names_or_files
    from qrmax.studies.library import study_names

    return names_or_files(study_names(), incomplete)


def _read_only(_: Any, __: Any, texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Parse KEY=PATTERN pairs."""
    only: dict[str, list[str]] = {}
    for text in texts:
        key, equals, pattern = text.partition("=")
        if not equals or not key or not pattern:
            raise click.BadParameter(f"{text!r} is not of the form KEY=PATTERN, as in agent=qrmax.")
        only.setdefault(key, []).append(pattern)
    return only


study_argument = click.argument("study", shell_complete=_complete_study)
protocol_option = click.option(
    "--protocol", help="exact, stays, as-described, as-published, or one of the study's own."
)
only_option = click.option(
    "--only",
    multiple=True,
    callback=_read_only,
    metavar="KEY=PATTERN",
    help="Only runs whose problem, agent or seed matches; may be repeated.",
)
folder_option = click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The results folder.  [default: results/STUDY or results/STUDY-PROTOCOL]",
)
results_option = click.option(
    "--results",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="The results folder, such as that of a larger study which has the same runs.  "
    "[default: results/STUDY or results/STUDY-PROTOCOL]",
)
workers_option = click.option(
    "--workers", type=int, help="Parallel runs.  [default: one for each core]"
)
folder_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False)
)


def find_results(name: str, protocol: str | None, folder: Path | None = None) -> tuple[Study, Path]:
    """The study and its results folder, given by the folder or by the study's name."""
    from qrmax.errors import StoreError, UnknownNameError
    from qrmax.studies.expand import load_study
    from qrmax.studies.library import study_names
    from qrmax.studies.store import Store
    from qrmax.studies.sweep import default_folder

    if Path(name).is_dir():
        if folder is not None:
            raise click.UsageError(f"--results is for the name of a study; {name} is a folder.")
        return Store(name).study(), Path(name)
    if name not in study_names() and not Path(name).is_file():
        hint = "or give the folder of its results, or the path of a study of your own"
        raise UnknownNameError("study", name, study_names(), hint=hint)
    study = load_study(name, protocol)
    if folder is not None:
        _check_same_runs(study, folder)
        return study, folder
    folder = default_folder(study)
    if not folder.is_dir():
        command = f"qrmax sweep {name}" + (f" --protocol {protocol}" if protocol else "")
        raise StoreError(f"{folder}: there are no results of {name} yet; get them with: {command}")
    return study, folder


def _check_same_runs(study: Study, folder: Path) -> None:
    """Raise a `StoreError` if runs in a folder look like those of a study, and are others."""
    from qrmax.errors import StoreError
    from qrmax.studies.results import results

    own = {run.id for run in study.runs()}
    found = results(folder)
    alike = found.filter(
        found["problem"].is_in([*study.problems]) & found["label"].is_in([*study.agents])
    )
    others = [run for run in alike["id"] if run not in own]
    if others or not len(alike):
        raise StoreError(
            f"{folder}: {len(others) or 'none'} of its runs on the problems of {study.name} "
            f"{'have other settings' if others else 'are there'}; give the folder of a sweep with "
            "the same protocol"
        )
