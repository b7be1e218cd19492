"""`qrmax run`: train one agent on one problem."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from qrmax.cli.environments import (
    OF_ENVIRONMENTS,
    EnvironmentOptions,
    environment_options,
    make_environment_of,
)
from qrmax.cli.output import OutputFile, as_json, examples
from qrmax.cli.print_moves import show_moves, show_moves_between
from qrmax.cli.print_run import print_run
from qrmax.cli.problems import (
    agent_option,
    check_agent,
    make_problem,
    problem_options,
    usual_agent,
)
from qrmax.cli.resume_environment import environment_to_resume, options_to_resume
from qrmax.cli.settings_option import read_value, settings_option
from qrmax.cli.world_options import ProblemCommand
from qrmax.errors import SourceError
from qrmax.plugins import is_reference
from qrmax.source import check_output
from qrmax.studies.interrupt import interruptible

if TYPE_CHECKING:
    from qrmax.training.run import Run
    from qrmax.training.trainer import Session

INTERRUPTED = 130
NO_MAP = "--show is for worlds with a map, not for --env."
MAY_CHANGE = {"max_steps", "max_episodes", "task", *OF_ENVIRONMENTS}  # in a run that is resumed
RULE_NAMES = ("exact", "stays", "nominal", "success", "welch", "reaches", "budget")
RULE_SETTINGS = {  # the names of options, and those of the rules' settings
    **{name: name for name in ("within", "in_a_row", "episodes", "alpha")},
    **{name: name for name in ("success", "episode_return")},
    "evaluation_gamma": "gamma",
}


@click.command(
    cls=ProblemCommand,
    epilog=examples(
        "qrmax run office/map1/exp5 --agent qrmax-rm --seed 7 --set t_env=20",
        "qrmax run office/map1/exp5 --agent rmax --save rmax.run",
        "qrmax run office/map1/exp1 --log runs/exp1 --export policy.json",
        "qrmax run --resume rmax.run --max-steps 5000000",
        "qrmax run office/map0/exp0 --agent ucbvi-b-rm --horizon 50",
        "qrmax run office/map0/exp0 --agent psrl --horizon auto --max-steps 50000",
        "qrmax run continuous/line/ab --agent bucket-qrmax-rm --set grid=20",
        "qrmax run --map my.txt --task my.toml --stop nominal --json",
        "qrmax run --env CliffWalking-v1 --task 'F goal' --labelling mine:labels",
        "qrmax run --env FrozenLake-v1 --env-option is_slippery=false ...",
        "qrmax run --resume cliff.run --labelling mine:labels --max-steps 200000",
    ),
)
@problem_options
@environment_options
@agent_option
@click.option("--seed", type=int, default=0, show_default=True, help="The random seed.")
@settings_option("A hyperparameter of the agent, such as gamma=0.95; may be repeated.")
@click.option("--gamma", type=float, help="The discount factor; the same as --set gamma=...")
@click.option(
    "--horizon",
    callback=lambda _, __, text: None if text is None else read_value(text),
    metavar="STEPS|auto",
    help="The horizon of UCBVI, PSRL and OPSRL, or auto: the mean length of optimal episodes plus "
    "50 %; the same as --set horizon=...",
)
@click.option(
    "--max-steps",
    type=int,
    help="The budget in steps.  [default: 1000000; 100000 for DQN and --env]",
)
@click.option(
    "--max-episodes", type=int, help="The budget in episodes, checked at each evaluation."
)
@click.option(
    "--stop",
    type=click.Choice(RULE_NAMES),
    help="The stopping rule.  [default: exact; with continuous positions: success; with --env: "
    "reaches]",
)
@click.option(
    "--within",
    type=float,
    help="For exact, stays and success: the gap to the optimum.  [default: 0.05]",
)
@click.option(
    "--in-a-row",
    type=int,
    help="Evaluations in a row that must pass.  [default: 3, for stays and welch 1]",
)
@click.option(
    "--episodes",
    type=int,
    help="For welch, success and reaches: episodes per policy.  [default: 10000, for success 1000, "
    "for reaches 100]",
)
@click.option(
    "--evaluation-gamma",
    type=float,
    help="Evaluate policies with this discount factor, in the problem's own episodes.  [default: "
    "by the agent's own gamma and horizon]",
)
@click.option("--success", type=float, help="For reaches: the success rate.  [default: 0.95]")
@click.option("--episode-return", type=float, help="For reaches: the undiscounted return.")
@click.option("--alpha", type=float, help="For welch: the significance level.  [default: 0.1]")
@click.option(
    "--evaluate-every", type=int, default=1000, show_default=True, help="Steps between evaluations."
)
@click.option("--save", type=OutputFile(), help="Save the run to this file.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Resume the run in this file, and save it there.",
)
@click.option(
    "--export",
    type=OutputFile(),
    help="Write the learned policy to this JSON file; see qrmax export --help.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Log the learning curve to this folder: CSV, and for TensorBoard with the "
    "extra 'log'. A name that ends in .csv is a file. --resume appends.",
)
@click.option(
    "--show",
    is_flag=True,
    help="Show the learned policy on the map, one panel per task state.",
)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@as_json
def run(
    *,
    resume: Path | None,
    save: Path | None,
    export: Path | None,
    log: Path | None,
    show: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train an agent on PROBLEM, such as office/map1/exp5, until its policy is good enough.

    The step reported is the first at which it was; a run that used up its budget says so. Ctrl-C
    ends a run early, and saves it if --save is given.
    """
    if show and options["env"] is not None:
        raise click.UsageError(NO_MAP)
    if show and as_json:
        raise click.UsageError("--show and --json exclude each other: give one of them.")
    if resume is not None:
        session = _resumed(resume, options)
        if save is None:
            check_output(resume)
            save = resume
    else:
        session = _new(options, quiet)
    if show and session.domain.problem is None:
        raise click.UsageError(NO_MAP)
    if save is not None:
        from qrmax.agents.outside import check_savable

        check_savable(session.agent)  # rather than after training
    if export is not None:
        from qrmax.training.policy_export import check_exportable

        check_exportable(session.agent)
    context = click.get_current_context()
    context.call_on_close(session.domain.close)  # an environment was made here
    context.call_on_close(session.evaluator.close)
    begun = session.progress.step
    finished = _train(session, quiet, log)

    from qrmax.training.cautions import warn_of_outcome
    from qrmax.training.run import Run

    if session.progress.step > begun:
        warn_of_outcome(session)
    outcome = Run(session)
    if save is not None:
        try:
            outcome.save(save)
        except SourceError:  # such as a full disk: the result is still printed
            print_run(outcome, session.training, as_json, {})
            raise
    if export is not None:
        outcome.export(export)
    if not finished:
        hint = f"; {_how_to_resume(outcome, save)}" if save else "; --save keeps a run"
        click.echo(f"interrupted at step {outcome.trained:,}{hint}", err=True)
        sys.exit(INTERRUPTED)
    files = {"saved": save, "exported": export, "log": log}
    print_run(outcome, session.training, as_json, files)
    if show:
        _show(outcome)


def _how_to_resume(outcome: Run, saved: Path) -> str:
    """The command that resumes a saved run, with the modules of the user that it needs."""
    from qrmax.agents.outside import agent_source

    source = agent_source(type(outcome.agent))
    agent = "" if source is None else f" --agent {source.reference}"
    return f"resume with: qrmax run --resume {saved}{agent}{options_to_resume(outcome.environment)}"


def _show(outcome: Run) -> None:
    if outcome.agent.perceives:
        show_moves_between(outcome.problem, outcome.recommendation.action)
        return
    if outcome.recommendation.ndim == 3:
        click.echo("\nthe policy of stage 0")
    show_moves(outcome.problem, outcome.policy)


def _new(options: dict[str, Any], quiet: bool) -> Session:
    agent, settings = options.pop("agent"), options.pop("settings")
    agent = agent or usual_agent(options["problem"])
    rule = {setting: options.pop(name) for name, setting in RULE_SETTINGS.items()}
    stop = options.pop("stop")
    limits = {key: options.pop(key) for key in ("seed", "max_steps", "max_episodes")}
    every = options.pop("evaluate_every")
    for name in ("gamma", "horizon"):
        value = options.pop(name)
        if value is not None and name in settings:
            raise click.UsageError(f"--{name} and --set {name}=... are the same: give one of them.")
        settings |= {} if value is None else {name: value}
    check_agent(agent)
    given_env = EnvironmentOptions(**{name: options.pop(name) for name in OF_ENVIRONMENTS})
    env = make_environment_of(given_env, options, read_value)
    problem = make_problem(**options) if env is None else env

    from qrmax.agents.outside import is_outside
    from qrmax.planning.compile_notice import compile_notice
    from qrmax.training.domains.domain_kinds import domain_kind
    from qrmax.training.run import make_session  # all this takes a second to import
    from qrmax.training.stopping import as_rule
    from qrmax.training.warm_up import warm_up

    given = {key: value for key, value in rule.items() if value is not None}
    if stop is None:
        stop = domain_kind(problem).default_rule(problem.machine)
    _check_rule(stop, given)
    session = make_session(
        agent,
        problem,
        **limits,
        stop=as_rule(stop, **given),
        evaluate_every=every,
        **settings,
    )
    if env is None and not is_outside(type(session.agent)):
        with compile_notice(not quiet):
            warm_up(agent)
    return session


def _check_rule(stop: str, given: dict[str, Any]) -> None:
    from qrmax.training.stopping import RULES

    settings = {rule: {field.name for field in fields(kind)} for rule, kind in RULES.items()}
    for name in given.keys() - settings[stop]:
        owner = next(rule for rule in settings if name in settings[rule])
        hint = "; the learning rate is --set alpha=..." if name == "alpha" else ""
        raise click.UsageError(f"--{name.replace('_', '-')} is for --stop {owner}{hint}.")


def _resumed(path: Path, options: dict[str, Any]) -> Session:
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name == "agent" and is_reference(options["agent"] or ""):
            continue  # loading a file imports no module: this is how to say which one it needs
        if given and option.name in options.keys() - MAY_CHANGE:
            what = option.opts[0] if isinstance(option, click.Option) else "PROBLEM"
            raise click.UsageError(f"--resume takes the settings of the run: leave {what} out.")
    if options["agent"] is not None:
        check_agent(options["agent"])
    given_env = EnvironmentOptions(**{name: options.pop(name) for name in OF_ENVIRONMENTS})

    from qrmax.agents.registry import agent_class
    from qrmax.training.checkpoint import load_session

    again = environment_to_resume(path, given_env, options, read_value)
    session = load_session(path, again.env)
    if options["agent"] is not None and agent_class(options["agent"]) is not type(session.agent):
        raise click.UsageError(
            f"{path} is a run of {session.agent.name}, not of --agent {options['agent']}."
        )
    session.extend(options["max_steps"], options["max_episodes"])
    if session.progress.reason:
        click.echo(f"{path}: has met its stopping rule; there is nothing to resume", err=True)
    elif again.notice:
        click.echo(f"{path}: {again.notice}", err=True)
    return session


def _train(session: Session, quiet: bool, log: Path | None) -> bool:
    """Train until the run stops, or until Ctrl-C; return whether it was not interrupted."""
    from qrmax.training.log import logged
    from qrmax.training.run_line import follow_run

    events = logged(session, log)  # refused before the first step if it is another run's
    with follow_run(session, not quiet) as show, interruptible() as interrupted:
        for event in events:
            show(event)
            if interrupted:
                break
    return not interrupted
