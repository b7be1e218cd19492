"""The exceptions and warnings of qrmax.

    QRMaxError
    ├── ParameterError    (ValueError)    an argument outside its allowed range
    ├── UnknownNameError  (LookupError)   no such world, map, task; the nearest name is suggested
    ├── SourceError       (OSError)       a file that cannot be read as text
    ├── GuardError        (ValueError)    a guard that does not parse; the column is shown
    ├── FormulaError      (ValueError)    a formula that does not parse; the column is shown
    ├── SizeError         (RuntimeError)  an automaton that outgrows its limit
    ├── TaskError         (ValueError)    an invalid reward machine, or its file
    ├── MapError          (ValueError)    an invalid map file
    ├── ModelError        (ValueError)    arrays that do not form an MDP
    ├── ObservationError  (ValueError)    an invalid observation or reward from an environment
    ├── CheckpointError   (ValueError)    a file that holds no run, or a damaged one
    ├── StudyError        (ValueError)    an invalid study; every mistake is listed
    ├── StoreError        (RuntimeError)  a results folder that is in use or invalid
    ├── ClusterError      (ConnectionError)  a cluster that no longer responds
    ├── MissingExtraError (ImportError)   an optional dependency that is not installed
    ├── PluginError       (ImportError)   a module or an entry point of yours that cannot be used
    ├── AgentError        (TypeError)     a class that breaks the contract of agents
    └── ConvergenceError  (RuntimeError)  an iteration that did not converge

    QRMaxWarning          (UserWarning)   legal, but almost certainly unintended

Each also inherits from the expected builtin, so `except ValueError` works. Every message
says what failed, where, what was given and what is allowed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

MOST = 10**9
"""The largest sensible count, such as of steps in an episode."""

_FEW = 20  # names that a message lists in full


class QRMaxError(Exception):
    """Any error that qrmax raises on purpose."""


class ParameterError(QRMaxError, ValueError):
    """An argument is outside its allowed range."""


class UnknownNameError(QRMaxError, LookupError):
    """A name that is not registered."""

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
    """An invalid reward machine, or its file."""


class MapError(QRMaxError, ValueError):
    """An invalid map file."""


class ModelError(QRMaxError, ValueError):
    """Arrays that do not form an MDP."""


class ObservationError(QRMaxError, ValueError):
    """An invalid observation or reward: NaN, infinite, or of the wrong shape."""


class CheckpointError(QRMaxError, ValueError):
    """A file that holds no run, or a damaged one."""


class StudyError(QRMaxError, ValueError):
    """An invalid study."""


class StoreError(QRMaxError, RuntimeError):
    """A results folder that cannot be used."""


class ClusterError(QRMaxError, ConnectionError):
    """A cluster that no longer responds."""


class MissingExtraError(QRMaxError, ImportError):
    """An optional dependency that is not installed."""


class PluginError(QRMaxError, ImportError):
    """A module, an attribute of it or an entry point from outside that cannot be used."""


class AgentError(QRMaxError, TypeError):
    """A class that breaks the contract of agents."""


class ConvergenceError(QRMaxError, RuntimeError):
    """An iteration that did not converge within its limit."""


class QRMaxWarning(UserWarning):
    """A legal but almost certainly unintended setting."""


def warn(message: str) -> None:
    """Issue a `QRMaxWarning` attributed to the caller's code, not to qrmax."""
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


def check_count(name: str, value: Any, *, at_least: int = 1, at_most: int = MOST) -> None:
    """Raise a `ParameterError` that names the parameter unless it is an integer in this range."""
    if not (_is_a(Integral, value) and at_least <= value <= at_most):
        raise ParameterError(
            f"{name} is {shown(value)}; allowed: whole numbers from {at_least} to {at_most}"
        )


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
    """The repr of a value, shortened for messages."""
    try:
        return repr(value)[:80]
    except ValueError:  # a number of 5000 digits
        return "a very long number"


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """The suggestion for a misspelt name; empty if no name is close.

    >>> did_you_mean("cofee", ["coffee", "mail"])
    "did you mean 'coffee'?"
    >>> did_you_mean("tea", ["coffee", "mail"])
    ''
    """
    return "".join(f"did you mean {name!r}?" for name in nearest(given, names, 1))


def nearest(given: str, names: Iterable[str], most: int) -> list[str]:
    """The names closest in spelling to the one given, best first."""
    from difflib import get_close_matches  # only needed for errors

    plain = {name.lower(): name for name in names}
    return [plain[match] for match in get_close_matches(given[:80].lower(), plain, n=most)]


def _is_a(kind: type, value: Any) -> bool:
    """Whether a value is a number of this kind, Python's or NumPy's; Booleans are not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _some(given: str, names: Sequence[str]) -> str:
    """All names; of many, only those closest to the one given."""
    if len(names) <= _FEW:
        return ", ".join(names)
    closest = nearest(given, names, 5) or names[:5]
    return f"{', '.join(closest)}, ... ({len(names)} in all)"
