"""Contents of a results folder: `qrmax.results`, a row for each run, and its completion status."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from qrmax.errors import warn
from qrmax.studies.futility import Futility
from qrmax.studies.store import Owner, Record, Store
from qrmax.studies.study import RunSpec, Study
from qrmax.studies.work import ROLLED_OUT

if TYPE_CHECKING:
    import polars

_OUTCOME = {  # the columns of outcomes, and their types
    "reached": "Boolean",
    "steps": "Int64",
    "episodes": "Int64",
    "trained": "Int64",
    "reason": "String",
    "gap": "Float64",
    "start_value": "Float64",
    "success": "Float64",
    "mean_length": "Float64",
    "nominal_length": "Int64",
    "own_gap": "Float64",
    "own_steps": "Int64",
    "known": "Int64",
    **dict.fromkeys(ROLLED_OUT, "Float64"),
}
_COLUMNS = {
    "problem": "String",
    "agent": "String",
    "label": "String",
    "seed": "Int64",
    "status": "String",
    **_OUTCOME,
    "max_steps": "Int64",
    "max_episodes": "Int64",
    "evaluate_every": "Int64",
    "dense_checks": "Int64",
    "stop": "String",
    "settings": "String",
    "options": "String",
    "learning_seconds": "Float64",
    "total_seconds": "Float64",
    "cpu_seconds": "Float64",
    "version": "String",
    "commit": "String",
    "error": "String",
    "in_study": "Boolean",
    "id": "String",
}


def results(path: str | os.PathLike[str], *, earlier: bool = False) -> polars.DataFrame:
    """The runs in a results folder, one row for each, in the order of the study.

    `reached` is whether the stopping rule was met at `steps`; if it was not, the run is
    right-censored by its budget. If the rule has a gamma, `own_gap` is the final gap by the
    learner's own objective, and `own_steps` the step at which it met the rule by that. `settings`
    and `options` are JSON. A damaged run is left out with a warning.

    Args:
        path: the results folder.
        earlier: whether runs of earlier versions of the study are included; their `in_study` is
            false.
    """
    import polars

    store = Store(path)
    runs = {run.id: run for run in store.study().runs()}
    order = {run_id: number for number, run_id in enumerate(runs)}
    rows = []
    for record in store.records():
        if record.state == "damaged":
            warn(f"{store.runs / record.id}: {record.reason}; the next sweep runs it again")
        elif record.data and (earlier or record.id in runs):
            rows.append(_row(record, runs.get(record.id)))
    rows.sort(key=lambda row: (order.get(row["id"], len(order)), row["id"]))
    schema = {name: getattr(polars, kind) for name, kind in _COLUMNS.items()}
    return polars.DataFrame(rows, schema=schema, orient="row")


def _row(record: Record, run: RunSpec | None) -> dict[str, Any]:
    data: Mapping[str, Any] = record.data
    config, made_by = data["config"], data["made_by"]
    training = dict(config["training"])
    outcome = data.get("outcome", {})
    return {
        # labels may have been changed since the run
        "problem": data["problem"] if run is None else run.cell.problem.label,
        "agent": config["agent"],
        "label": data["label"] if run is None else run.cell.label,
        "seed": training.pop("seed"),
        "status": data["status"],
        **{name: outcome.get(name) for name in _OUTCOME},
        "max_steps": training.pop("max_steps"),
        "max_episodes": training.pop("max_episodes", None),
        "evaluate_every": training.pop("evaluate_every"),
        "dense_checks": training.pop("dense_checks", None),
        "stop": json.dumps(training),
        "settings": json.dumps(config["settings"]),
        "options": json.dumps(config["problem"]["options"]),
        "learning_seconds": data["timing"].get("learning"),
        "total_seconds": data["timing"].get("total"),
        "cpu_seconds": data["timing"].get("cpu"),
        "version": made_by["qrmax"],
        "commit": made_by["commit"],
        "error": data.get("error"),
        "in_study": run is not None,
        "id": record.id,
    }


class CellStatus(NamedTuple):
    """Completion status of an agent on a problem."""

    problem: str
    label: str
    done: int
    failed: int
    left: int
    begun: int  # of the remaining runs, those with a checkpoint
    given_up: int = 0  # not run, as the first seeds are enough


@dataclass(frozen=True, slots=True)
class Status:
    """Completion status of a study."""

    study: Study
    cells: tuple[CellStatus, ...]
    damaged: tuple[Record, ...]  # counted as remaining
    others: int  # runs in the folder that do not belong to this study
    owner: Owner | str | None  # the process that is sweeping it

    @property
    def done(self) -> int:
        """The number of complete runs."""
        return sum(cell.done for cell in self.cells)

    @property
    def failed(self) -> int:
        """The number of failed runs."""
        return sum(cell.failed for cell in self.cells)

    @property
    def left(self) -> int:
        """The number of remaining runs."""
        return sum(cell.left for cell in self.cells)

    @property
    def given_up(self) -> int:
        """The number of runs that are not run, as the first seeds of their cells are enough."""
        return sum(cell.given_up for cell in self.cells)


def status(path: str | os.PathLike[str], study: Study | None = None) -> Status:
    """Return the completion status of the study in a results folder, or of another one there."""
    store = Store(path)
    study = store.study() if study is None else study
    records = {record.id: record for record in store.records()}
    states: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    damaged = []
    futility = Futility(study)
    for run in study.runs():
        record = records.pop(run.id, Record(run.id, "absent", {}))
        counts = states[run.cell.problem.label, run.cell.label]
        if record.state == "done":
            futility.note(run, record.data["outcome"])
        elif futility.verdict(run) == "leave out":
            counts["given up"] += 1
            continue
        counts[record.state] += 1
        if record.state == "damaged":
            damaged.append(record)
    cells = (_cell_status(*names, counts) for names, counts in states.items())
    return Status(study, tuple(cells), tuple(damaged), len(records), store.owner())


def _cell_status(problem: str, label: str, counts: Counter[str]) -> CellStatus:
    done, failed, given_up = counts["done"], counts["failed"], counts["given up"]
    left = counts.total() - done - failed - given_up
    return CellStatus(problem, label, done, failed, left, counts["unfinished"], given_up)
