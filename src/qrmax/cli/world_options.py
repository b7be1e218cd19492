"""The options of all worlds on the command line, each with the default of every world.

They are derived from the descriptions of the worlds, once a command with a PROBLEM is used: an
installed or referenced world (`qrmax run my_module:POND/fetch --depth 3`) has its options, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from qrmax.source import HERE

if TYPE_CHECKING:
    from qrmax.worlds.options import Option
    from qrmax.worlds.world import AnyProblem, World

    Owner = tuple[World[AnyProblem], Option]

AFTER = "reward"  # the option that those of the worlds follow in the help
NONE = "none"
NOUNS = {int: "a whole number", float: "a number", str: "text"}
METAVARS = {int: "INTEGER", float: "FLOAT", str: "TEXT"}


class ProblemCommand(click.Command):
    """A command whose options include those of all worlds."""

    _params: list[click.Parameter]  # one list for good: click appends to it, and pops
    _of_worlds: Sequence[click.Parameter] = ()

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters of the command, those of the worlds among them."""
        if not self._of_worlds:
            self._take(_all_worlds())
        return self._params

    @params.setter
    def params(self, params: list[click.Parameter]) -> None:
        self._params = params

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; the options are first of all those of the world of PROBLEM."""
        world = self._world_in(ctx, args)
        self._take([*([] if world is None else [world]), *_all_worlds()])
        return super().parse_args(ctx, args)

    def _take(self, worlds: Iterable[World[AnyProblem]]) -> None:
        """Have the options of these worlds."""
        own = [param for param in self._params if param not in self._of_worlds]
        place = [param.name for param in own].index(AFTER) + 1
        self._of_worlds = _options_of(worlds)
        self._params[:] = [*own[:place], *self._of_worlds, *own[place:]]

    def _world_in(self, ctx: click.Context, args: list[str]) -> World[AnyProblem] | None:
        """The world of the PROBLEM among these arguments, whose options are not known yet."""
        from qrmax.plugins import is_reference, make_importable
        from qrmax.worlds.catalog import parse_name

        parser = self.make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            values, rest, _ = parser.parse_args([*args])
        except click.UsageError:  # it will be told again
            return None
        for word in (str(values.get("problem")), *rest):
            if is_reference(word.partition("/")[0]):
                make_importable(HERE)
            if (parsed := parse_name(word)) is not None:
                return parsed.world
        return None


def _all_worlds() -> list[World[AnyProblem]]:
    from qrmax.worlds.world_registry import worlds

    return worlds()


def _options_of(worlds: Iterable[World[AnyProblem]]) -> list[click.Parameter]:
    """One option for each name; the first world that has it says of which type it is."""
    owners: dict[str, list[Owner]] = {}
    for world in dict.fromkeys(worlds):
        for option in world.declared:
            owners.setdefault(option.name, []).append((world, option))
    return [_click_option(each) for each in owners.values()]


def _click_option(owners: list[Owner]) -> click.Option:
    option = owners[0][1]
    flag = f"--{option.name.replace('_', '-')}"
    text = _help(owners)
    if option.kind is bool:
        return click.Option([f"{flag}/--no-{flag[2:]}"], default=None, help=text)
    if option.choices:
        return click.Option([flag], type=click.Choice(option.choices), help=text)
    if option.optional and option.default is not None:
        read = partial(_read_or_none, option.kind)
        return click.Option(
            [flag], callback=read, metavar=f"{METAVARS[option.kind]}|none", help=text
        )
    return click.Option([flag], type=option.kind, help=text)


def _read_or_none(kind: type, ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Read a value, or the word none."""
    if value is None or value == NONE:
        return None
    try:
        return click.types.convert_type(kind).convert(value, param, ctx)
    except click.BadParameter:
        raise click.BadParameter(f"{value!r} is neither {NOUNS[kind]} nor {NONE!r}.") from None


def _help(owners: list[Owner]) -> str:
    """The worlds that have an option, what it means there, and its default in each."""
    from qrmax.worlds.world_registry import by_family

    everywhere = len(owners) == len(_all_worlds())
    by_text: dict[str, list[str]] = {}
    by_default: dict[str, list[str]] = {}
    for world, option in owners:
        by_text.setdefault(option.help or option.name.replace("_", " "), []).append(world.name)
        default = _shown(world.defaults[option.name])
        by_default.setdefault(default, []).append(world.name)
    meanings = [
        text if everywhere and len(by_text) == 1 else f"{', '.join(by_family(worlds))}: {text}"
        for text, worlds in by_text.items()
    ]
    usual, *others = sorted(by_default.items(), key=lambda item: -len(item[1]))
    defaults = [usual[0], *(f"{', '.join(by_family(worlds))}: {value}" for value, worlds in others)]
    text = "; ".join(meanings)
    return f"{text[0].upper()}{text[1:]}.  [default: {'; '.join(defaults)}]"


def _shown(value: object) -> str:
    words = {True: "yes", False: "no", None: NONE}
    return words[value] if isinstance(value, bool | None) else f"{value}"
