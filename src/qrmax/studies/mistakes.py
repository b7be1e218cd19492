"""What is wrong with the values of a study file: each mistake, and where it is.

The library's own checks are asked about one value at a time, so that no mistake hides another. This
works on a file as it was read, whatever its shape: what has the wrong shape is passed over here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from qrmax.agents.registry import check_agent, make_config
from qrmax.errors import QRMaxError, StudyError, UnknownNameError, check_count
from qrmax.training.stopping import as_rule, make_rule
from qrmax.worlds.office import OfficeOptions


class Mistake(NamedTuple):
    """What is wrong, and where."""

    path: str  # such as agents[1].t_env
    message: str


def refuse(name: str, mistakes: Iterable[Mistake]) -> None:
    """Raise an error that lists the mistakes, where there are any."""
    lines = dict.fromkeys(f"{name}, {path}: {message}" for path, message in mistakes)
    if lines:
        raise StudyError("\n".join(lines))


def tried(path: str, check: Callable[..., object], *arguments: Any) -> Iterator[Mistake]:
    """The mistake that a check finds, if it does."""
    try:
        check(*arguments)
    except QRMaxError as error:
        yield Mistake(path, str(error))


def value_mistakes(
    raw: dict[str, Any], protocols: Sequence[str], chosen: str | None
) -> Iterator[Mistake]:
    """What is wrong with the values of a study, those of its protocols included.

    `protocols` are those that are built in; `chosen` is the one asked for, where not by the file.
    """
    yield from _layer_mistakes(raw, "")
    own = _table(raw.get("protocols"))
    for name, layer in own.items():
        yield from _layer_mistakes(_table(layer), f"protocols.{name}.")
    wanted = raw.get("protocol") if chosen is None else chosen
    known = [*protocols, *own]
    if isinstance(wanted, str) and wanted not in known:
        yield Mistake("protocol", str(UnknownNameError("protocol", wanted, known)))
    speaking = [raw, *(_table(own[name]) for name in own if name == wanted)]
    if not any("agents" in layer for layer in speaking):  # no built-in protocol names any
        yield Mistake("agents", "is missing; needed: at least one agent")
    if raw.get("problems") == []:
        yield Mistake("problems", "is empty; needed: at least one problem")
    for number, given in enumerate(_list(raw.get("problems"))):
        entry, path = _entry(given, "name"), f"problems[{number}]"
        options = _without(entry, "name", "map", "task", "label")
        yield from _option_mistakes(options, path)


def _layer_mistakes(layer: dict[str, Any], prefix: str) -> Iterator[Mistake]:
    """What is wrong with what a study or a protocol says."""
    if layer.get("agents") == []:
        yield Mistake(f"{prefix}agents", "is empty; needed: at least one agent")
    for number, given in enumerate(_list(layer.get("agents"))):
        entry, path = _entry(given, "agent"), f"{prefix}agents[{number}]"
        yield from _agent_mistakes(entry.get("agent"), _without(entry, "agent", "label"), path)
    yield from _twice(_list(layer.get("agents")), prefix)
    yield from _settings_mistakes(layer.get("settings"), f"{prefix}settings")
    for problem, settings in _table(layer.get("on")).items():
        yield from _settings_mistakes(settings, f"{prefix}on.{problem}")
    yield from _option_mistakes(_table(layer.get("world")), f"{prefix}world")
    yield from _rule_mistakes(_entry(layer.get("stop"), "rule"), f"{prefix}stop")
    for key in ("max_steps", "evaluate_every"):
        if type(value := layer.get(key)) is int:
            yield from tried(f"{prefix}{key}", check_count, key, value)
    if isinstance(value := layer.get("gamma"), int | float) and not isinstance(value, bool):
        yield from tried(f"{prefix}gamma", make_config, "q-learning", {"gamma": value})


def _twice(agents: list[Any], prefix: str) -> Iterator[Mistake]:
    """Agents that could not be told apart in a table."""
    entries = [_entry(given, "agent") for given in agents]
    labels = [entry.get("label") or entry.get("agent") for entry in entries]
    for number, label in enumerate(labels):
        if isinstance(label, str) and label in labels[:number]:
            message = f"there are two agents {label!r}; give one of them a label of its own"
            yield Mistake(f"{prefix}agents[{number}]", message)


def _settings_mistakes(by_agent: Any, path: str) -> Iterator[Mistake]:
    for agent, settings in _table(by_agent).items():
        yield from _agent_mistakes(agent, _table(settings), f"{path}.{agent}")


def _agent_mistakes(agent: Any, settings: dict[str, Any], path: str) -> Iterator[Mistake]:
    if isinstance(agent, str):
        unknown = [*tried(path, check_agent, agent)]
        yield from unknown or _each(settings, path, lambda one: make_config(agent, one))


def _rule_mistakes(entry: dict[str, Any], path: str) -> Iterator[Mistake]:
    rule = entry.get("rule")
    if isinstance(rule, str):
        unknown = [*tried(path, as_rule, rule)]
        settings = _without(entry, "rule")
        yield from unknown or _each(settings, path, lambda one: make_rule(rule, one))


def _option_mistakes(options: dict[str, Any], path: str) -> Iterator[Mistake]:
    return _each(options, path, OfficeOptions.of)


def _each(
    values: dict[str, Any], path: str, check: Callable[[dict[str, Any]], object]
) -> Iterator[Mistake]:
    for key, value in values.items():
        yield from tried(f"{path}.{key}", check, {key: value})


def _entry(given: Any, key: str) -> dict[str, Any]:
    return {key: given} if isinstance(given, str) else _table(given)


def _without(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _table(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}
