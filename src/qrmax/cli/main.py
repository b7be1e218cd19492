"""The command `qrmax`: its verbs, its errors, its exit codes.

0 success, 1 a check or a run failed, 2 bad input, 130 interrupted. Results go to stdout, everything
else to stderr. Heavy imports are deferred until a verb needs them, so that `qrmax --help` is quick.
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import Any

import click

from qrmax._version import __version__
from qrmax.cli.check_command import check
from qrmax.cli.completion_command import completion
from qrmax.cli.convert_command import convert
from qrmax.cli.curves_command import curves
from qrmax.cli.doctor_command import doctor
from qrmax.cli.export_command import export
from qrmax.cli.list_command import list_names
from qrmax.cli.output import examples, print_message
from qrmax.cli.phrasing import in_options
from qrmax.cli.plan_command import plan
from qrmax.cli.plot_command import plot
from qrmax.cli.results_command import results
from qrmax.cli.run_command import run
from qrmax.cli.show_command import show
from qrmax.cli.solve_command import solve
from qrmax.cli.status_command import status
from qrmax.cli.sweep_command import sweep
from qrmax.cli.table_command import table
from qrmax.cli.verbs import Verbs
from qrmax.errors import ParameterError, QRMaxError, QRMaxWarning
from qrmax.outside_errors import raised_outside

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
REFUSE_VALUES = ("settings", "options")  # code of the user's that checks what is given


@click.group(
    name="qrmax",
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "qrmax run office/map1/exp5 --agent qrmax-rm",
        "qrmax solve office/map1/exp5",
        "qrmax sweep smoke",
    ),
)
@click.version_option(__version__, prog_name="qrmax")
def cli() -> None:
    """Reinforcement learning with non-Markovian rewards.

    A problem is an environment (a world) with a labelling function, and a reward machine (a task).
    """


for _verb in (
    list_names,
    show,
    check,
    convert,
    export,
    solve,
    run,
    export,
    plan,
    sweep,
    status,
    results,
    table,
    plot,
    curves,
    doctor,
    completion,
):
    cli.add_command(_verb)


def main() -> None:
    """Run the command line and exit with its code."""
    warnings.showwarning = _show_warning
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(file=shown)
        _fail(shown.getvalue(), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", INTERRUPTED)
    except SystemExit as error:
        if (raised := raised_outside(error)) is not None:  # the user's code, not a verb
            _fail(f"error: {raised}", BAD_INPUT)
        raise
    except Exception as error:
        _explain(error)
        raise


def _explain(error: Exception) -> None:
    """Exit with a message, unless it is a bug of ours, whose traceback is needed."""
    raised, on_purpose = raised_outside(error), isinstance(error, QRMaxError)
    if raised is not None and not (on_purpose and raised.kind in REFUSE_VALUES):
        _fail(f"error: {raised}", BAD_INPUT)
    if isinstance(error, ParameterError):
        _fail(f"error: {in_options(str(error), cli.current)}", BAD_INPUT)
    if on_purpose:
        _fail(f"error: {error}", BAD_INPUT)
    if isinstance(error, OSError):  # such as a full disk under stdout
        _fail(f"error: {error}", FAILED)


def _fail(message: str, code: int) -> None:
    print_message(message)
    sys.exit(code)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = str(message)
    if isinstance(message, QRMaxWarning):
        text = in_options(text, cli.current)
    print_message(f"warning: {text}")
