"""Layers of a study: protocols and study files, and the rule of precedence among them.

There is one rule of precedence. From lowest to highest:

    1. the defaults of the library
    2. `gamma`, for all agents
    3. the built-in protocol of the chosen name
    4. the study
    5. the study's own protocol of that name
    6. the entry itself, in `problems` or `agents`

In each of 3 to 5, `[on."problem".agent]` overrides `[settings.agent]`, `[on."problem".agents]`
overrides `[agents]`, which names the agents that replace others, and a name overrides a pattern; of
two patterns the later one wins. An agent from outside the library has two names, the one it
declares and `module:Class`, which overrides the other. Of the settings under a pattern, and the
options under `[world]`, each agent or world takes those that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from qrmax.agents.registry import (
    agent_class,
    default_settings,
    known_settings,
    make_config,
)
from qrmax.errors import QRMaxError, UnknownNameError, check_count, check_range
from qrmax.studies.agent_names import Listed, agents_called, names_of
from qrmax.studies.outside_code import check_agent
from qrmax.studies.reading import Table, as_entry
from qrmax.training.stopping import StoppingRule, as_rule, make_rule
from qrmax.worlds.catalog import kinds_of_options
from qrmax.worlds.options import Options

COUNTS = ("max_steps", "max_episodes", "evaluate_every", "dense_checks", "give_up_after")
PROTOCOL_KEYS = (
    *("about", "comparable", "agents", "settings", "on", "world", "gamma", "stop", "agree_within"),
    *COUNTS,
)
"""The keys of a protocol; a study has them, too."""

Value = TypeVar("Value")
BySettings = Mapping[str, Mapping[str, Any]]  # by agent, or pattern
StandIns = Mapping[str, str]  # agents that replace others
STAND_INS = "agents"  # their key


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent of a study, with the settings of its entry."""

    path: str
    name: str  # as written in the study
    agent: str  # the agent that is run, which `Layers.agent_on` may replace
    label: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """The entries of one protocol or study; None for those that it does not set."""

    path: str
    about: str | None = None
    comparable: bool | None = None  # whether the reference was measured under this protocol
    agents: Sequence[AgentEntry] | None = None
    stand_ins: StandIns = field(default_factory=dict)
    stand_ins_on: Mapping[str, StandIns] = field(default_factory=dict)  # by problem, or pattern
    settings: BySettings = field(default_factory=dict)
    on: Mapping[str, BySettings] = field(default_factory=dict)  # by problem, or pattern
    world: Mapping[str, Any] = field(default_factory=dict)
    gamma: float | None = None
    stop: StoppingRule | None = None
    max_steps: int | None = None
    max_episodes: int | None = None  # if set, tables count episodes
    evaluate_every: int | None = None
    dense_checks: int | None = None  # evaluations before they become rarer
    give_up_after: int | None = None  # seeds
    agree_within: float | None = None  # of their steps


class Layers:
    """The layers of a study, in increasing precedence."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = layers

    def said(self, key: str, default: Any = None) -> Any:
        """The value of a key in the last layer that sets it."""
        values = [getattr(layer, key) for layer in self.layers]
        return next((value for value in reversed(values) if value is not None), default)

    def agent_on(self, entry: AgentEntry, problem: str) -> AgentEntry:
        """The entry with the agent that is run on the problem of this label."""
        agent = entry.name
        for layer in self.layers:
            for stand_ins in (layer.stand_ins, *_fitting(layer.stand_ins_on, [problem])):
                agent = [agent, *_fitting(stand_ins, names_of(entry.name))][-1]
        return replace(entry, agent=agent)

    def settings(self, entry: AgentEntry, problem: str) -> dict[str, Any]:
        """The settings of an agent on the problem of this label."""
        gamma = self.said("gamma")
        settings: dict[str, Any] = {} if gamma is None else {"gamma": gamma}
        for layer in self.layers:
            settings |= _of_agent(layer.settings, entry)
            for by_agent in _fitting(layer.on, [problem]):
                settings |= _of_agent(by_agent, entry)
        return settings | dict(entry.settings)

    def world(self, known: Iterable[str]) -> dict[str, Any]:
        """The options of a world that has options of these names."""
        names = {*known}
        return {
            key: value
            for layer in self.layers
            for key, value in layer.world.items()
            if key in names
        }


def read_layer(table: Table, own: Listed) -> Layer:
    """Read the keys that protocols and studies share; `own` are the agents that the study lists."""
    agents, on = table.raw("agents"), dict(table.tables("on"))
    if not isinstance(agents, dict | list):
        table.items("agents")  # notes a value that is neither
    return Layer(
        path=table.path,
        about=table.text("about"),
        comparable=table.flag("comparable"),
        agents=_read_agents(table) if isinstance(agents, list) else None,
        stand_ins=_read_stand_ins(table, own) if isinstance(agents, dict) else {},
        stand_ins_on={problem: _read_stand_ins(inner, own) for problem, inner in on.items()},
        settings=_read_settings(table.tables("settings"), own),
        on={problem: _read_settings(inner.tables(), own) for problem, inner in on.items()},
        world=table.table("world").checked_rest(check_option),
        gamma=_read_gamma(table),
        stop=_read_rule(table),
        agree_within=_read_agreement(table),
        **{key: _read_count(table, key) for key in COUNTS},
    )


def is_pattern(text: str) -> bool:
    """Whether a text has a wildcard.

    >>> is_pattern("ucbvi-*"), is_pattern("ucbvi-b")
    (True, False)
    """
    return bool({*text} & {*"*?["})


def _of_agent(by_agent: BySettings, entry: AgentEntry) -> dict[str, Any]:
    """Return the settings given under an agent's names, those it replaces, or a pattern."""
    known = default_settings(entry.agent)
    found: dict[str, Any] = {}
    for settings in _fitting(by_agent, [*names_of(entry.name), *names_of(entry.agent)]):
        found |= {key: value for key, value in settings.items() if key in known}
    return found


def _fitting(by_pattern: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """The values whose keys match one of the names: those of patterns first."""
    for pattern, value in by_pattern.items():
        if pattern not in names and any(fnmatchcase(name, pattern) for name in names):
            yield value
    for name in dict.fromkeys(names):
        if name in by_pattern:
            yield by_pattern[name]


def _read_agents(table: Table) -> list[AgentEntry]:
    """The list `agents`; labels are unique."""
    items, mistakes = table.items("agents") or [], table.mistakes
    if not items:
        mistakes.add(table.place("agents"), "is empty; needed: at least one agent")
    entries: list[AgentEntry] = []
    labels: list[str] = []
    for path, value in items:
        inner = as_entry(value, "agent", path, mistakes)
        if inner is None:
            continue
        agent, label = inner.text("agent"), inner.text("label")
        if "agent" not in inner:
            mistakes.add(inner.place("agent"), "is missing")
        settings = None if agent is None else _entry_settings(inner, agent)
        if label is None and agent is not None:
            label = agent if settings is None else agent_class(agent).name
        if label is not None and label in labels:
            mistakes.add(
                path, f"there are two agents {label!r}; give one of them a label of its own"
            )
        labels += [label or ""]
        if agent is not None and label is not None and settings is not None:
            entries.append(AgentEntry(path, agent, agent, label, settings))
    return entries


def _read_stand_ins(table: Table, own: Listed) -> dict[str, str]:
    """The table `[agents]` of a protocol, or of a problem: `qrmax = "qrmax-published"`."""
    inner, found = table.table(STAND_INS), {}
    for name in inner.rest():
        agent = inner.text(name)
        with table.mistakes.at(inner.place(name)):
            agents_called(name, own)
            if agent is not None:
                check_agent(agent)
                found[name] = agent
    return found


def _read_settings(by_agent: Iterable[tuple[str, Table]], own: Listed) -> dict[str, dict[str, Any]]:
    """Settings by agent, or by a pattern of agents."""
    found = {}
    for name, inner in by_agent:
        with inner.mistakes.at(inner.path):
            agents = agents_called(name, own)
            for agent in () if is_pattern(name) else agents:
                check_agent(agent)
            found[name] = inner.checked_rest(partial(_accepted_by_one, agents=agents))
    return found


def _entry_settings(table: Table, agent: str) -> dict[str, Any] | None:
    """The settings in an entry that its agent accepts; None if there is no such agent."""
    if not table.mistakes.pass_at(table.path, partial(check_agent, agent)):
        return None
    return table.checked_rest(partial(_check_settings, agent))


def _accepted_by_one(one: dict[str, Any], agents: Sequence[str]) -> None:
    """Raise an error unless one of the agents accepts a setting."""
    [setting] = one
    having = [agent for agent in agents if setting in default_settings(agent)]
    if not having:
        known = {name for agent in agents for name in default_settings(agent)}
        names = dict.fromkeys(agent_class(agent).name for agent in agents)
        raise UnknownNameError(f"setting of {', '.join(names)}", setting, known)
    _any_of([partial(_check_settings, agent, one) for agent in having])


def _check_settings(agent: str, settings: Mapping[str, Any]) -> None:
    """Raise an error unless an agent accepts these settings."""
    make_config(agent, known_settings(agent, settings))


def check_option(option: dict[str, Any], also: Sequence[type[Options]] = ()) -> None:
    """Raise an error unless some world accepts an option, those with options `also` included."""
    [name] = option
    kinds = [*kinds_of_options(), *also]
    having = [kind for kind in kinds if name in kind.names()]
    if not having:
        known = {name for kind in kinds for name in kind.names()}
        raise UnknownNameError("option", name, known)
    _any_of([partial(kind.of, option) for kind in having])


def _any_of(checks: Sequence[Callable[[], object]]) -> None:
    """Raise the error of the last check unless one of them passes."""
    *others, last = checks
    for check in others:
        with suppress(QRMaxError):
            check()
            return
    last()


def _read_gamma(table: Table) -> float | None:
    gamma = table.number("gamma")
    # gamma 1 is for agents with a horizon; the others refuse it themselves
    return _passing(table, "gamma", gamma, lambda: make_config("psrl", {"gamma": gamma}))


def _read_agreement(table: Table) -> float | None:
    within = table.number("agree_within")
    return _passing(
        table, "agree_within", within, lambda: check_range("agree_within", within, above=0.0)
    )


def _read_rule(table: Table) -> StoppingRule | None:
    if "stop" not in table:
        return None
    inner = as_entry(table.raw("stop"), "rule", table.place("stop"), table.mistakes)
    if inner is None:
        return None
    if "rule" not in inner:
        table.mistakes.add(inner.place("rule"), "is missing")
    if (name := inner.text("rule")) is None:
        return None
    if not table.mistakes.pass_at(inner.path, partial(as_rule, name)):
        return None
    return make_rule(name, inner.checked_rest(lambda one: make_rule(name, one)))


def _read_count(table: Table, key: str) -> int | None:
    count = table.whole(key)
    return _passing(table, key, count, lambda: check_count(key, count))


def _passing(
    table: Table, key: str, value: Value | None, check: Callable[[], object]
) -> Value | None:
    """The value if it passes the check, else None."""
    passes = value is not None and table.mistakes.pass_at(table.place(key), check)
    return value if passes else None
