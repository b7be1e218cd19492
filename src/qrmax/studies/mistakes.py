"""What is wrong with the values of a study file: each mistake, and where it is.

The library's own checks are asked about one value at a time, so that no mistake hides another. This
works on a file as it was read, whatever its shape: what has the wrong shape is passed over here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from qrmax.agents.registry import agent_names, check_agent_name, make_config
from qrmax.errors import QRMaxError, StudyError, UnknownNameError, check_count, shown
from qrmax.seeding import check_seed
from qrmax.training.run import MAX_STEPS
from qrmax.training.stopping import as_rule, make_rule
from qrmax.worlds.catalog import kinds_of_options

EVALUATE_EVERY = 1000
LARGEST_SEED = 2**63 - 1  # that a column of numbers can hold


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
    raw: dict[str, Any], protocols: Mapping[str, dict[str, Any]], chosen: str | None
) -> Iterator[Mistake]:
    """What is wrong with the values of a study, those of its protocols included.

    `protocols` are those that are built in; `chosen` is the one asked for, where not by the file.
    """
    yield from _layer_mistakes(raw, "")
    own = _table(raw.get("protocols"))
    for name, layer in own.items():
        yield from _layer_mistakes(_table(layer), f"protocols.{name}.")
    said = raw.get("protocol") if chosen is None else chosen
    wanted = said if isinstance(said, str) else ""
    known = [*protocols, *own]
    if wanted and wanted not in known:
        yield Mistake("protocol", str(UnknownNameError("protocol", wanted, known)))
    layers = [_table(source.get(wanted)) for source in (own, protocols)]
    speaking = [layers[0], raw, layers[1]]  # what counts most comes first
    if not any("agents" in layer for layer in speaking):
        yield Mistake("agents", "is missing; needed: at least one agent")
    yield from _contradictions(speaking)
    yield from _seed_mistakes(raw.get("seeds"))
    if raw.get("problems") == []:
        yield Mistake("problems", "is empty; needed: at least one problem")
    for number, given in enumerate(_list(raw.get("problems"))):
        entry, path = _entry(given, "name"), f"problems[{number}]"
        options = _without(entry, "name", "map", "task", "label")
        yield from _option_mistakes(options, path)


def _seed_mistakes(seeds: Any) -> Iterator[Mistake]:
    if seeds == []:
        yield Mistake("seeds", "is empty; needed: at least one seed")
    seen: set[int] = set()
    for number, seed in enumerate(_list(seeds)):
        if type(seed) is not int:
            continue  # that is a matter of shape
        yield from tried(f"seeds[{number}]", check_seed, seed)
        if seed > LARGEST_SEED:
            yield Mistake(
                f"seeds[{number}]", f"seed is {shown(seed)}; allowed: at most {LARGEST_SEED}"
            )
        if seed in seen:
            yield Mistake(f"seeds[{number}]", f"is {shown(seed)}, which is there twice")
        seen.add(seed)


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
    for key in ("max_steps", "max_episodes", "evaluate_every"):
        if type(value := layer.get(key)) is int:
            yield from tried(f"{prefix}{key}", check_count, key, value)
    if isinstance(value := layer.get("gamma"), int | float) and not isinstance(value, bool):
        # 1 is for agents with a horizon; the others will say so themselves
        yield from tried(f"{prefix}gamma", make_config, "psrl", {"gamma": value})


def _contradictions(speaking: Sequence[dict[str, Any]]) -> Iterator[Mistake]:
    """A rule that can never be met."""

    def said(key: str, default: Any) -> Any:
        return next((layer[key] for layer in speaking if key in layer), default)

    most, every = said("max_steps", MAX_STEPS), said("evaluate_every", EVALUATE_EVERY)
    entry = _entry(said("stop", "exact"), "rule")
    try:
        check_count("max_steps", most)
        check_count("evaluate_every", every)
        rule = make_rule(entry.get("rule", ""), _without(entry, "rule"))
    except QRMaxError:
        return  # that is told elsewhere
    if rule.name != "budget" and most // every < rule.in_a_row:
        yield Mistake(
            "stop",
            f"contradicts max_steps and evaluate_every: the rule {rule.name!r} needs "
            f"{rule.in_a_row} checks in a row, but {most} steps with a check every {every} have "
            f"{most // every}",
        )


def known_agents(raw: dict[str, Any], chosen: str | None) -> list[tuple[str, str]]:
    """The agents that a study would run, as far as they exist, each with its path."""
    wanted = raw.get("protocol") if chosen is None else chosen
    protocols = _table(raw.get("protocols"))
    own = _table(protocols.get(wanted)) if isinstance(wanted, str) else {}
    entries = [_entry(given, "agent") for given in _list(own.get("agents", raw.get("agents")))]
    found = [(f"agents[{number}]", entry.get("agent")) for number, entry in enumerate(entries)]
    return [(path, agent) for path, agent in found if agent in agent_names()]


def on_patterns(raw: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What settings on problems are said to be for, each with its path."""
    protocols = _table(raw.get("protocols")).items()
    for prefix, layer in [("", raw), *((f"protocols.{name}.", own) for name, own in protocols)]:
        for pattern in _table(_table(layer).get("on")):
            yield f"{prefix}on.{pattern}", pattern


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
        unknown = [*tried(path, check_agent_name, agent)]
        yield from unknown or _each(settings, path, lambda one: make_config(agent, one))


def _rule_mistakes(entry: dict[str, Any], path: str) -> Iterator[Mistake]:
    rule = entry.get("rule")
    if isinstance(rule, str):
        unknown = [*tried(path, as_rule, rule)]
        settings = _without(entry, "rule")
        yield from unknown or _each(settings, path, lambda one: make_rule(rule, one))


def _option_mistakes(options: dict[str, Any], path: str) -> Iterator[Mistake]:
    """Options that no kind of world has, or not with this value."""
    return _each(options, path, _check_option)


def _check_option(option: dict[str, Any]) -> None:
    [name] = option
    kinds = [kind for kind in kinds_of_options() if name in kind.names()]
    if not kinds:
        known = {name for kind in kinds_of_options() for name in kind.names()}
        raise UnknownNameError("option", name, known)
    *others, last = kinds
    for kind in others:
        with suppress(QRMaxError):
            kind.of(option)
            return
    last.of(option)  # what no world allows is wrong


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
