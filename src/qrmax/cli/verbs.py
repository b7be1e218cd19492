"""The verbs of the command line, with suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

import click

from qrmax.errors import nearest

TRAIN = "to train an agent: qrmax run office/map1/exp5"
LOOK = (
    "to see the learned policy on the map: qrmax run office/map1/exp5 --show; "
    "the optimal one: qrmax solve office/map1/exp5 --show"
)
JUDGE = "the exact optimum: qrmax solve office/map1/exp5; `qrmax run` evaluates what it has learned"
PLOT = (
    "to draw learning curves: qrmax curves DIR -o curves.svg; an overview of all problems: "
    "qrmax plot DIR -o steps.svg"
)
KEEP = (
    "to keep a run: qrmax run office/map1/exp5 --save my.run; the results of a study: "
    "qrmax results DIR -o results.csv; a task in another format: qrmax convert TASK FILE"
)
MANY = "to run a study: qrmax sweep smoke"
TABLE = "the table of a study: qrmax table DIR"
DRAW = "to see a map or a task: qrmax show map map1, qrmax show task exp5"
CHECK = "to check a task: qrmax check TASK; this installation: qrmax doctor"

TRIED = {
    **dict.fromkeys(("train", "learn", "fit", "start"), TRAIN),
    **dict.fromkeys(("watch", "play", "render", "rollout", "simulate", "demo", "visualize"), LOOK),
    **dict.fromkeys(("eval", "evaluate", "test", "optimum", "optimal", "value"), JUDGE),
    **dict.fromkeys(("graph", "figure", "chart"), PLOT),
    **dict.fromkeys(("save", "dump", "store"), KEEP),
    **dict.fromkeys(("study", "experiment", "benchmark", "grid"), MANY),
    **dict.fromkeys(("report", "latex", "markdown"), TABLE),
    **dict.fromkeys(("draw", "view", "map", "task", "print"), DRAW),
    **dict.fromkeys(("validate", "verify", "lint", "selftest"), CHECK),
    **dict.fromkeys(("resume", "continue", "load"), "to resume a run: qrmax run --resume my.run"),
    **dict.fromkeys(("csv", "data"), "the runs of a study: qrmax results DIR --format csv"),
    **dict.fromkeys(("ls", "names", "envs", "problems"), "all names: qrmax list"),
    **{
        kind: f"all names: qrmax list {kind}"
        for kind in ("worlds", "maps", "tasks", "agents", "studies")
    },
    **dict.fromkeys(("version", "info"), "the version: qrmax --version, qrmax doctor"),
    "progress": "the progress of a study: qrmax status DIR",
    "help": "all commands: qrmax --help, qrmax run --help",
}
"""Suggestions for words that people may try."""


HYPHEN, NO_BREAK = "-", "\N{NON-BREAKING HYPHEN}"


class WholeWords(click.HelpFormatter):
    """A help formatter that never breaks a name such as `bucket-qrmax` or `--max-steps`."""

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write the options with their help."""
        whole = [(first, second.replace(HYPHEN, NO_BREAK)) for first, second in rows]
        super().write_dl(whole, col_max, col_spacing)

    def getvalue(self) -> str:
        """The help, with hyphens as they are typed."""
        return super().getvalue().replace(NO_BREAK, HYPHEN)


class VerbContext(click.Context):
    """The context of a verb."""

    formatter_class = WholeWords


class Verbs(click.Group):
    """The command group; unknown commands get a suggestion."""

    current: click.Command | None = None  # the last one invoked: errors name its options

    context_class = VerbContext

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a verb, with help that keeps names whole."""
        for each in (cmd, *getattr(cmd, "commands", {}).values()):
            each.context_class = VerbContext
        super().add_command(cmd, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of that name, or an error with a suggestion."""
        word = str(args[0])
        command = self.get_command(ctx, word)
        if command is None and not word.startswith("-"):
            hint = TRIED.get(word.lower(), "") or _nearest(word, self.list_commands(ctx))
            raise click.UsageError(f"No such command {word!r}; {hint}", ctx)
        self.current = command
        return super().resolve_command(ctx, args)


def _nearest(word: str, names: list[str]) -> str:
    """The closest command, or word that stands for one, in spelling."""
    for meant in nearest(word, [*TRIED, *names], 1):
        return f"did you mean {meant!r}?" if meant in names else TRIED[meant]
    return "all commands: qrmax --help"
