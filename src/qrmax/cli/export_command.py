"""`qrmax export`: a problem for model checkers, or a policy for use without qrmax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from qrmax.cli.output import OutputFile, examples
from qrmax.cli.problems import is_continuous, make_problem, problem_options
from qrmax.cli.world_options import ProblemCommand
from qrmax.source import write_whole


@click.command(
    cls=ProblemCommand,
    epilog=examples(
        "qrmax export office/map1/exp5 -o exp5.drn",
        "qrmax export office/map1/exp5 --slip 0.1 --world-only -o map1.drn",
        "qrmax export --map my.txt --task my.toml -o my.drn",
        "qrmax export some.run -o policy.json --reader policy_reader.py",
    ),
)
@problem_options
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    help="The file to write: FILE.drn, the explicit format of Storm, or FILE.json, a policy.",
)
@click.option(
    "--world-only",
    is_flag=True,
    help="The MDP and its labels without the task.  [default: the product of both]",
)
@click.option(
    "--reader",
    type=OutputFile(),
    help="Also write the policy reader to this file: plain Python, without qrmax or NumPy.",
)
def export(output: Path, world_only: bool, reader: Path | None, **options: Any) -> None:
    """Write PROBLEM as an explicit MDP, with labels and names of states, for model checkers.

    It is the product of MDP and task, with the label `success` in states in which the task has
    succeeded and `terminal` in those that end episodes. It has no limit on the length of episodes.
    Storm computes the optimal discounted value by the property R{"reward"}max=? [ Cdiscount=0.9 ],
    the largest probability of success by Pmax=? [ F "success" ].

    Model files are read by `qrmax solve` and `qrmax run`, too, in place of PROBLEM.

    With -o FILE.json, PROBLEM is the file of a run (`qrmax run --save`, run.save), and its policy
    is written, with the task and the names of the labels, in one small file. The reader tracks the
    state of the task and acts: see its docstring. The environment that the run was trained on is
    not needed.
    """
    if output.suffix.lower() == ".json":
        _export_policy(output, reader)
        return
    if reader is not None:
        raise click.UsageError("--reader is for policies: qrmax export SOME.run -o FILE.json.")
    from qrmax.problems.labelled import world_of
    from qrmax.problems.model_files import check_format, save_model

    check_format(output)
    if _is_run(options["problem"]):
        raise click.UsageError(
            f"{options['problem']} is the file of a run, whose policy goes into FILE.json: "
            f"qrmax export {options['problem']} -o {output.with_suffix('.json')}"
        )
    if is_continuous(options["problem"]):
        raise click.UsageError(
            "A continuous world has no explicit MDP: export one with discrete states."
        )
    problem = make_problem(**options)
    save_model(world_of(problem) if world_only else problem, output)
    click.echo(f"written to {output}", err=True)


def _is_run(name: str | None) -> bool:
    """Whether this is the name of a run file, by its suffix."""
    return name is not None and Path(name).suffix == ".run" and Path(name).is_file()


def _export_policy(output: Path, reader: Path | None) -> None:
    """Write the policy of a saved run."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in ("problem", "output", "reader"):
            raise click.UsageError(
                f"A policy is exported as it was trained: leave {option.opts[0]} out."
            )
    run = context.params["problem"]
    if run is None:
        raise click.UsageError("Which run? As in qrmax export SOME.run -o FILE.json.")

    from qrmax.worlds.catalog import is_world

    if is_world(run) and not Path(run).exists():
        raise click.UsageError(
            f"{run} is a problem, which goes into FILE.drn; FILE.json is for runs: "
            f"qrmax export {run} -o {output.with_suffix('.drn')}"
        )

    from qrmax import policy_reader
    from qrmax.training.checkpoint import load  # takes a second to import

    load(run).export(output)
    click.echo(f"written to {output}", err=True)
    if reader is not None:
        write_whole(reader, Path(policy_reader.__file__).read_bytes())
        click.echo(f"written to {reader}", err=True)
