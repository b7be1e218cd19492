"""`qrmax completion`: shell completion of names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from qrmax.cli.output import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=examples('eval "$(qrmax completion bash)"'))
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; evaluate it in your shell's start file."""
    make_script = get_completion_class(shell)
    if make_script is None:
        raise click.UsageError(f"no completion for {shell}")
    script = make_script(ctx.find_root().command, {}, "qrmax", "_QRMAX_COMPLETE")
    click.echo(script.source())
