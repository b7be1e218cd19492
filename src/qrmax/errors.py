"""Everything that qrmax raises or warns of on purpose.

    QRMaxError
    ├── ParameterError    (ValueError)    an argument outside its allowed range
    ├── UnknownNameError  (LookupError)   no such world, map, task; the nearest name is suggested
    ├── SourceError       (OSError)       a file that cannot be read as text
    ├── GuardError        (ValueError)    a guard that does not parse; the column is shown
    ├── FormulaError      (ValueError)    a formula that does not parse; the column is shown
    ├── SizeError         (RuntimeError)  an automaton that outgrows its limit
    ├── TaskError         (ValueError)    a reward machine that makes no sense, or its file
    ├── MapError          (ValueError)    a map file that makes no sense
    ├── ModelError        (ValueError)    arrays that are no decision process
    ├── ObservationError  (ValueError)    what an environment gave is no observation, or no reward
    ├── CheckpointError   (ValueError)    a file that holds no run, or not all of it
    ├── StudyError        (ValueError)    a study that makes no sense; every mistake is listed
    ├── StoreError        (RuntimeError)  a results folder that is in use, or is none
    ├── ClusterError      (ConnectionError)  a cluster that does not answer any more
    ├── MissingExtraError (ImportError)   something that has to be installed first
    ├── PluginError       (ImportError)   a module or an entry point of yours that cannot be used
    ├── AgentError        (TypeError)     a class that breaks the contract of agents
    └── ConvergenceError  (RuntimeError)  an iteration that did not settle

    QRMaxWarning          (UserWarning)   legal, but almost surely not what was meant

Each also inherits the builtin people expect, so `except ValueError` keeps working. Every message
says what failed, where, what was given and what is allowed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

MOST = 10**9
"""The largest count that makes sense: of steps in an episode, say."""

_FEW = 20  # names that a message can list


class QRMaxError(Exception):
    """Any error that qrmax raises on purpose."""


class ParameterError(QRMaxError, ValueError):
    """An argument is outside its allowed range."""


class UnknownNameError(QRMaxError, LookupError):
    """A name that nothing is registered under."""

    def __init__(self, kind: str, given: str, known: Iterable[str], *, hint: str = "") -> None:
        names = sorted(known)
        lines = [f"unknown {kind} {given[:80]!r}", did_you_mean(given, names)]
        lines += [f"known: {_some(given, names)}", hint]
        super().__init__("\n  ".join(filter(None, lines)))


class SourceError(QRMaxError, OSError):
    """A file that cannot be read as text."""


class GuardError(QRMaxError, ValueError):
    """A guard that does not parse."""


class FormulaError(QRMaxError, ValueError):
    """A formula that does not parse."""


class SizeError(QRMaxError, RuntimeError):
    """An automaton that outgrows its limit."""


class TaskError(QRMaxError, ValueError):
    """A reward machine, or its file, that makes no sense."""


class MapError(QRMaxError, ValueError):
    """A map file that makes no sense."""


class ModelError(QRMaxError, ValueError):
    """Arrays that do not form a decision process."""


class ObservationError(QRMaxError, ValueError):
    """An observation or a reward that cannot be one: NaN, infinite, of another shape."""


class CheckpointError(QRMaxError, ValueError):
    """A file that holds no run, or not all of it."""


class StudyError(QRMaxError, ValueError):
    """A study that makes no sense."""


class StoreError(QRMaxError, RuntimeError):
    """A results folder that cannot be used."""


class ClusterError(QRMaxError, ConnectionError):
    """A cluster that does not answer any more."""


class MissingExtraError(QRMaxError, ImportError):
    """Something is needed that is not installed."""


class PluginError(QRMaxError, ImportError):
    """A module, an attribute of it or an entry point from outside that cannot be used."""


class AgentError(QRMaxError, TypeError):
    """A class that breaks the contract of agents."""


class ConvergenceError(QRMaxError, RuntimeError):
    """An iteration that did not settle within its limit."""


class QRMaxWarning(UserWarning):
    """Something legal that is almost surely not what was meant."""


def warn(message: str) -> None:
    """Warn with a `QRMaxWarning` that points to the caller's own code, not into ours."""
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").startswith("qrmax."):
        level += 1
    warnings.warn(message, QRMaxWarning, stacklevel=level + 1)


def check_range(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    """Raise a `ParameterError` that names the parameter unless `value` lies in the range.

    >>> check_range("gamma", 1.5, above=0.0, below=1.0)
    Traceback (most recent call last):
    ...
    qrmax.errors.ParameterError: gamma is 1.5; allowed: numbers above 0.0, below 1.0
    """
    fits = (
        _is_a(Real, value)
        and (above is None or value > above)
        and (below is None or value < below)
        and (at_least is None or value >= at_least)
        and (at_most is None or value <= at_most)
    )
    if not fits:
        bounds = {"above": above, "at least": at_least, "below": below, "at most": at_most}
        allowed = ", ".join(
            f"{word} {bound}" for word, bound in bounds.items() if bound is not None
        )
        raise ParameterError(f"{name} is {shown(value)}; allowed: numbers {allowed}".rstrip())


def check_count(name: str, value: Any) -> None:
    """Raise a `ParameterError` that names the parameter unless it is a whole number from 1 on."""
    if not (_is_a(Integral, value) and 1 <= value <= MOST):
        raise ParameterError(f"{name} is {shown(value)}; allowed: whole numbers from 1 to {MOST}")


def check_flag(name: str, value: Any) -> None:
    """Raise a `ParameterError` that names the parameter unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ParameterError(f"{name} is {shown(value)}; allowed: True, False")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a `ParameterError` that names the parameter unless `value` is one of `choices`."""
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} is {shown(value)}; allowed: {allowed}")


def shown(value: object) -> str:
    """A value as a message can show it: not too long, whatever it is."""
    try:
        return repr(value)[:80]
    except ValueError:  # a number of 5000 digits
        return "a very long number"


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """The question that a misspelt name raises; nothing where no name is near.

    >>> did_you_mean("cofee", ["coffee", "mail"])
    "did you mean 'coffee'?"
    >>> did_you_mean("tea", ["coffee", "mail"])
    ''
    """
    return "".join(f"did you mean {name!r}?" for name in nearest(given, names, 1))


def nearest(given: str, names: Iterable[str], most: int) -> list[str]:
    """The names that are spelt most like the one given, the nearest first."""
    from difflib import get_close_matches  # only ever needed to word an error

    plain = {name.lower(): name for name in names}
    return [plain[match] for match in get_close_matches(given[:80].lower(), plain, n=most)]


def _is_a(kind: type, value: Any) -> bool:
    """Whether a value is such a number, Python's or NumPy's; a Boolean is none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _some(given: str, names: Sequence[str]) -> str:
    """The names there are; of many only those nearest to the one given."""
    if len(names) <= _FEW:
        return ", ".join(names)
    shown = nearest(given, names, 5) or names[:5]
    return f"{', '.join(shown)}, ... ({len(names)} in all)"
