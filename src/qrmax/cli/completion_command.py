"""`qrmax completion`: shell completion of names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from qrmax.cli.output import examples

SHELLS = ("bash", "zsh", "fish")

_CLICK_CALL = 'response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD '
_OUR_CALL = 'response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) '
_CLICK_REPLY = "COMPREPLY+=($value)"
_OUR_REPLY = 'COMPREPLY+=("${value#"$prefix"}")'
_JOINED = """\
local words=() word join="" prefix=""
    for word in "${COMP_WORDS[@]:0:COMP_CWORD + 1}"; do
        if ((${#words[@]})) && [[ $join || $word == : ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word == : ]] && join=yes || join=""
    done
    [[ ${words[-1]} == *:* ]] && prefix=${words[-1]%"${words[-1]##*:}"}
    """


@click.command(epilog=examples('eval "$(qrmax completion bash)"'))
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; evaluate it in your shell's start file."""
    make_script = get_completion_class(shell)
    if make_script is None:
        raise click.UsageError(f"no completion for {shell}")
    script = make_script(ctx.find_root().command, {}, "qrmax", "_QRMAX_COMPLETE")
    click.echo(_with_colons(script.source()) if shell == "bash" else script.source())


def _with_colons(source: str) -> str:
    """The script for bash, which splits words such as mine:Sarsa at their colons: join them."""
    for theirs, ours in ((_CLICK_CALL, _JOINED + _OUR_CALL), (_CLICK_REPLY, _OUR_REPLY)):
        if theirs not in source:
            return source  # of another version of click
        source = source.replace(theirs, ours)
    return source
