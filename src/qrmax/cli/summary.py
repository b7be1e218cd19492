"""The summary of a results folder for a terminal: a row for each problem and agent."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from qrmax.cli.output import NO_SUCCESS, percent, wrapped

if TYPE_CHECKING:
    import polars

ABSENT = "—"
HEADS = ("agent", "runs", "reached", "median", "mean", "success", "gap")
COLOURS = {
    "all": "green",
    "some": "yellow",
    "none": "red",
}  # by how many runs met the stopping rule


class Line(NamedTuple):
    """A summary of the runs of an agent on a problem, as text."""

    problem: str
    label: str
    runs: str
    reached: str
    median: str  # of the steps, with right-censored runs as slowest
    mean: str  # of the steps of uncensored runs
    success: str  # mean over the last policies
    gap: str
    state: str  # "all", "some" or "none": runs that met the stopping rule


def lines(frame: polars.DataFrame) -> Iterator[Line]:
    """A line for each problem and agent, in the order of the results."""
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in frame.iter_rows(named=True):
        groups[row["problem"], row["label"]].append(row)
    for (problem, label), rows in groups.items():
        yield _line(problem, label, rows)


def _line(problem: str, label: str, rows: Sequence[dict[str, Any]]) -> Line:
    from qrmax.studies.statistics import Steps, summarize

    done = [row for row in rows if row["status"] == "done"]
    failed = len(rows) - len(done)
    runs = f"{len(rows)}" if not failed else f"{len(rows)}, {failed} failed"
    if not done:
        return Line(problem, label, runs, "", "", "", "", "", "none")
    reached = tuple(row["steps"] for row in done if row["reached"])
    budget = max(row["max_steps"] for row in done)
    found = summarize(Steps(reached, len(done) - len(reached), budget))
    median = found.median.value
    state = "all" if len(reached) == len(rows) else "some" if reached else "none"
    return Line(
        problem,
        label,
        runs,
        f"{len(reached)}",
        f">= {budget:,}" if math.isinf(median) else f"{median:,.0f}",
        "" if found.mean is None else f"{found.mean:,.0f}",
        _mean_percent([row["success"] for row in done]) or ABSENT,
        _mean_percent([row["gap"] for row in done]),
        state,
    )


def _mean_percent(shares: Sequence[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return percent(sum(known) / len(known), 1) if known else ""


def notes(frame: polars.DataFrame, folder: Path) -> Iterator[tuple[str, int]]:
    """Explanations of the columns and commands for more, each with its indentation."""
    checks = sorted({int(every) for every in frame["evaluate_every"]})
    apart = " or ".join(f"{every:,}" for every in checks)
    yield (
        f"Steps until the stopping rule was met, checked every {apart}: median over all runs, mean "
        "of those that met it. Success and gap: means over the final policies.",
        0,
    )
    if frame.drop_nulls("start_value")["success"].null_count():
        yield f"{ABSENT}: {NO_SUCCESS}.", 0
    if not bool(frame["in_study"].all()):
        yield "Some runs are of an earlier version of the study.", 0
    yield "", 0
    more = {
        "each run": f"qrmax results {folder} --format csv, or json, md, parquet",
        "with intervals": f"qrmax table {folder}",
        "learning curves": f"qrmax curves {folder} -o curves.svg",
    }
    width = max(map(len, more)) + 2
    for what, command in more.items():
        yield f"{what.ljust(width)}{command}", width


def print_summary(frame: polars.DataFrame, folder: Path) -> None:
    """Print the summary, as wide as the terminal, in colour if it has any."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    if not len(frame):
        click.echo(f"{folder}: no run is complete yet; its progress: qrmax status {folder}")
        return
    found = [*lines(frame)]
    rows = [HEADS, *(line[1 : 1 + len(HEADS)] for line in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    console.print(Text(_aligned(HEADS, widths), style="bold"), no_wrap=True, overflow="ellipsis")
    before = None
    for line, row in zip(found, rows[1:], strict=True):
        if line.problem != before:
            console.print(Text(line.problem), no_wrap=True, overflow="ellipsis")
            before = line.problem
        text = Text(_aligned(row, widths), style=COLOURS[line.state])
        console.print(text, no_wrap=True, overflow="ellipsis")
    click.echo()
    for note, indent in notes(frame, folder):
        click.echo(wrapped(note, indent))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = cells
    right = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
    return "  ".join([f"  {name.ljust(widths[0])}", *right]).rstrip()
