"""Options of a world: the parameters of its dynamics, as a frozen dataclass.

    @dataclass(frozen=True, kw_only=True)
    class PondOptions(Options):
        size: Annotated[int, "number of cells"] = 5
        slip: Annotated[float, "probability that a move slips"] = 0.1

Each option has a default. The text beside its type is its help on the command line. Types are bool,
int, float, str and `Literal` of strings, each of them also with `| None`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin
from typing import get_type_hints as type_hints

from qrmax.errors import ParameterError, UnknownNameError, shown
from qrmax.setting_types import check_types

PLAIN = (bool, int, float, str)


class Option(NamedTuple):
    """One option of a world, as its dataclass declares it."""

    name: str
    kind: type  # bool, int, float or str
    default: Any
    help: str = ""
    choices: tuple[str, ...] = ()  # the values of a Literal
    optional: bool = False  # whether None is allowed


class Options:
    """Base class of the options of a world; each world has a frozen dataclass of its own.

    Its fields are the options, and their values are checked in `__post_init__`.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    @classmethod
    def of(cls, options: dict[str, Any]) -> Self:
        """Return the options with these values; the error of an unknown name suggests the nearest.

        Args:
            options: values by name; the others have their defaults.
        """
        for name in options:
            if name not in cls.names():
                raise UnknownNameError("option", name, cls.names())
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0]:  # ours check their own
            check_types(cls, options)
        return cls(**options)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoOptions(Options):
    """The options of a world that has none."""


def declared_options(kind: type[Options]) -> tuple[Option, ...]:
    """Return the options that a dataclass declares; a `ParameterError` if it cannot be used.

    >>> declared_options(NoOptions)
    ()
    """
    if not _is_usable(kind):
        raise ParameterError(
            f"options is {shown(kind)}; needed: a frozen dataclass derived from qrmax.Options"
        )
    hints = type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass, as was checked
        where = f"option {field.name!r} of {kind.__name__}"
        if field.default is MISSING:
            raise ParameterError(f"{where} has no default; every option of a world needs one")
        found.append(_option(field.name, field.default, hints[field.name], where))
    return tuple(found)


def _is_usable(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options) and is_dataclass(kind)


def _option(name: str, default: Any, hint: Any, where: str) -> Option:
    text = ""
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        text = next((note for note in notes if isinstance(note, str)), "")
    given, optional = hint, False
    choices: tuple[str, ...] = ()
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        optional, hint = len(members) < len(get_args(hint)), members[0]
        hint = hint if len(members) == 1 else given
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        hint = str if all(isinstance(choice, str) for choice in choices) else given
    if hint not in PLAIN:
        raise ParameterError(
            f"{where} has type {given}; allowed: bool, int, float, str, Literal of strings, and "
            "these with None"
        )
    return Option(name, hint, default, text, choices, optional)
