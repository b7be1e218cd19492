"""The learning curves in a results folder: `qrmax.curves`, a row for each point of each run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from qrmax.errors import StoreError
from qrmax.studies.results import results
from qrmax.studies.store import CURVE, Store

if TYPE_CHECKING:
    import polars

OF_THE_RUN = ("problem", "agent", "label", "seed", "reached")


def curves(path: str | os.PathLike[str]) -> polars.DataFrame:
    """The learning curves of all complete runs of the study in a results folder.

    `problem`, `agent`, `label`, `seed` and `reached` are those of the run, as in `qrmax.results`;
    `step`, `episodes`, `start_value`, `gap`, `success` and `nominal_length` are those of the point.
    What cannot be known there is null.
    """
    import polars

    store = Store(path)
    of_runs = []
    for run in results(path).filter(status="done").iter_rows(named=True):
        points = polars.read_parquet(store.runs / run["id"] / CURVE)
        of_runs.append(points.select(*(_constant(run[name], name) for name in OF_THE_RUN), "*"))
    if not of_runs:
        raise StoreError(
            f"{path}: has no complete runs yet; `qrmax status {path}` says how far it is"
        )
    # earlier versions counted no episodes
    return polars.concat(of_runs, how="diagonal")


def _constant(value: str | int | bool, name: str) -> polars.Expr:
    import polars

    return polars.lit(value).alias(name)
