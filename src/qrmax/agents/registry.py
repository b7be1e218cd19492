"""The agents by name: built in, registered, or offered by an installed distribution.

    agent_class("qrmax-rm")        by name; nothing heavy is imported before an agent is asked for
    agent_class("mine:Sarsa")      by reference; imports the module
    agent_class(Sarsa)             the class itself
    agent_class(Sarsa.Config())    the class that a config belongs to

A name of a file is resolved by `class_in_file`, which imports no module.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from qrmax.agents.outside import (
    SCRIPT,
    agent_source,
    imported_alike,
    instantiate,
    is_outside,
)
from qrmax.errors import AgentError, ParameterError, PluginError, UnknownNameError, shown, warn
from qrmax.plugins import EntryPoints, import_object, imported_object, is_reference
from qrmax.setting_types import check_types

if TYPE_CHECKING:
    from qrmax.agents.base import Agent, AgentConfig, Sizes
    from qrmax.agents.experience import Task
    from qrmax.planning.arrays import FloatArray
    from qrmax.problems.observations import Observations
    from qrmax.seeding import Stream

AgentLike: TypeAlias = "str | type[Agent] | AgentConfig"
"""An agent by name, as `module:Class`, as a class, or as an instance of its config."""

AnyAgent = TypeVar("AnyAgent", bound="type[Agent]")

AUTO = "auto"
"""The setting of a horizon that is found from the problem."""

GROUP = "qrmax.agents"
"""The group of entry points that makes the agents of a distribution known."""

_HOME = {  # in the paper's order
    "q-learning": "q_learning.QLearning",
    "qrm": "qrm.QRM",
    "rmax": "rmax.RMax",
    "rmax-rm": "rmax_rm.RMaxRM",
    "qrmax": "qrmax.QRMax",
    "qrmax-rm": "qrmax_rm.QRMaxRM",
    "rmax-published": "published.PublishedRMax",
    "rmax-rm-published": "published.PublishedRMaxRM",
    "qrmax-published": "published.PublishedQRMax",
    "qrmax-rm-published": "published.PublishedQRMaxRM",
    "ucbvi-sb": "episodic.ucbvi.UCBVISB",
    "ucbvi-b": "episodic.ucbvi.UCBVIB",
    "ucbvi-h": "episodic.ucbvi.UCBVIH",
    "ucbvi-b-rm": "episodic.ucbvi.UCBVIBRM",
    "psrl": "episodic.psrl.PSRL",
    "psrl-rm": "episodic.psrl.PSRLRM",
    "opsrl": "episodic.opsrl.OPSRL",
    "ucbvi-ch": "episodic.ucbvi_azar.UCBVICH",
    "ucbvi-bf": "episodic.ucbvi_azar.UCBVIBF",
    "ucbvi-prm": "episodic.ucbvi_prm.UCBVIPRM",
    "psrl-exact": "episodic.psrl_exact.PSRLExact",
    "opsrl-exact": "episodic.opsrl_exact.OPSRLExact",
    "ucbvi-sb-published": "episodic.published_baselines.PublishedUCBVISB",
    "ucbvi-b-published": "episodic.published_baselines.PublishedUCBVIB",
    "ucbvi-h-published": "episodic.published_baselines.PublishedUCBVIH",
    "opsrl-published": "episodic.published_baselines.PublishedOPSRL",
    "qr-ucb": "revising.qr_ucb.QRUCB",
    "qr-ucb-rm": "revising.qr_ucb.QRUCBRM",
    "qr-eb": "revising.qr_eb.QREB",
    "qr-eb-rm": "revising.qr_eb.QREBRM",
    "qr-psrl": "revising.qr_psrl.QRPSRL",
    "qr-psrl-rm": "revising.qr_psrl.QRPSRLRM",
    "qr-effects": "revising.qr_effects.QREffects",
    "qr-effects-rm": "revising.qr_effects.QREffectsRM",
    "mbie-eb": "revising.mbie_eb.MBIEEB",
    "qr-mbie-eb": "revising.mbie_eb.QRMBIEEB",
    "qr-mbie-eb-rm": "revising.mbie_eb.QRMBIEEBRM",
    "mbie": "revising.mbie.MBIE",
    "qr-mbie": "revising.mbie.QRMBIE",
    "qr-mbie-rm": "revising.mbie.QRMBIERM",
    "ucrl2-rm-l": "revising.ucrl2_rm.UCRL2RML",
    "ucrl2-rm-b": "revising.ucrl2_rm.UCRL2RMB",
    "bucket-qrmax": "buckets.bucket_qrmax.BucketQRMax",
    "bucket-qrmax-rm": "buckets.bucket_qrmax.BucketQRMaxRM",
    "bucket-rmax": "buckets.bucket_rmax.BucketRMax",
    "effects-qrmax": "continuous.effects_qrmax.EffectsQRMax",
    "effects-qrmax-rm": "continuous.effects_qrmax.EffectsQRMaxRM",
    "dqn": "dqn.DQN",
    "dqn-rm": "dqn.DQNRM",
}
_registered: dict[str, type[Agent]] = {}
_installed = EntryPoints(GROUP)


# --- names


def built_in_names() -> list[str]:
    """The names of the agents that come with this library."""
    return list(_HOME)


def agent_names() -> list[str]:
    """The names of all agents: built in, installed and registered."""
    return list(dict.fromkeys([*_HOME, *_installed, *_registered]))


def check_agent_name(name: str) -> None:
    """Raise an error that suggests the nearest name unless there is such an agent.

    A reference `module:Class` passes; whether there is such a class shows when it is imported.
    """
    if not is_reference(name) and name not in agent_names():
        raise UnknownNameError(
            "agent", str(name), agent_names(), hint="or module:Class, for an agent of your own"
        )


def names_class(name: str, cls: type[Agent]) -> bool:
    """Whether a name is known to mean this very class; loads nothing."""
    home = _home(cls)
    if name in _HOME:
        return f"{__package__}.{_HOME[name]}" == home.replace(":", ".")
    return _registered.get(name) is cls or _installed.offers(name) == [home]


def register_agent(cls: AnyAgent) -> AnyAgent:
    """Make a class known by its name: to `train`, to studies and on the command line.

    It can be used as a decorator. Registering a class once more changes nothing; one that was
    edited and defined again, as in a notebook, takes the place of the former one. Another class
    under the same name is an error.

    Args:
        cls: a subclass of `qrmax.Agent`, whose `name` is the name.

    Returns the class itself.
    """
    from qrmax.agents.declaration import check_declared

    check_declared(cls)
    other = _taken_by(cls.name)
    home = _home(cls)
    if other is not None and other != home:
        raise AgentError(
            f"{home}: the name {cls.name!r} is that of another agent, {other}; "
            f"give the class a name of its own: name = ..."
        )
    _registered[cls.name] = cls
    return cls


def broken_agents() -> dict[str, str]:
    """The entry points that cannot be used, and why; loads every one of them."""
    broken: dict[str, str] = {}
    for name in _installed:
        try:
            _load_installed(name)
        except (PluginError, AgentError) as error:
            broken[name] = str(error)
    return broken


def _taken_by(name: str) -> str | None:
    """The class that a name stands for, as `module:Class`; None for a new name."""
    if name in _HOME:
        module, _, attribute = _HOME[name].rpartition(".")
        return f"{__package__}.{module}:{attribute}"
    if name in _registered:
        return _home(_registered[name])
    return next(iter(_installed.offers(name)), None)


# --- classes


def agent_class(agent: AgentLike) -> type[Agent]:
    """Return the class of an agent.

    Args:
        agent: a name, a reference `module:Class` (whose module is imported), a class, or an
            instance of an agent's config.
    """
    from qrmax.agents.base import AgentConfig
    from qrmax.agents.declaration import check_declared

    if isinstance(agent, str):
        return _class_named(agent)
    if isinstance(agent, AgentConfig):
        agent = agent.agent
    if not isinstance(agent, type):
        raise ParameterError(
            f"agent is {shown(agent)}; allowed: a name such as 'qrmax', 'module:Class', a "
            "subclass of qrmax.Agent, or an instance of its Config"
        )
    check_declared(agent)
    return agent


def class_in_file(reference: str, source: Mapping[str, Any] | None) -> type[Agent]:
    """Return the class that a file names, without importing any module.

    Args:
        reference: the result of `agent_reference`.
        source: the result of `agent_source`, as data; None for a built-in agent.

    Raises a `PluginError` that says what to import unless the caller has imported the module,
    registered the class, or installed it with an entry point. Warns if the class was edited.
    """
    from qrmax.agents.declaration import check_declared

    if source is None:
        if reference in _HOME:
            return _class_named(reference)
        raise UnknownNameError("agent", str(reference), _HOME)
    wanted = f"{source['module']}:{source['class']}"
    found = _registered.get(reference)
    if found is None and reference in _installed:
        found = _load_installed(reference)
    if found is None and is_reference(wanted):
        found = imported_object(wanted)
    if found is not None:
        check_declared(found)
    if found is None or _home(found) != wanted:
        alike = imported_alike(source)
        if alike is None:
            raise PluginError(_no_such_class(reference, source, found))
        found = alike
    ours = agent_source(found)
    assert ours is not None  # it is not one of the library's
    if not ours.code.items() <= source.items():
        warn(f"agent {wanted} has changed since this was written: a resumed run may differ")
    return found


def _home(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _no_such_class(reference: str, source: Mapping[str, Any], other: type | None) -> str:
    """The error about a class in a file that is not imported, or of which there is another."""
    name, module = source["class"], source["module"]
    if other is not None:
        return (
            f"its agent {reference!r} is {module}:{name}, and the agent of that name here is "
            f"{_home(other)}; import the right one"
        )
    if module == SCRIPT:
        return (
            f"its agent is the class {name} of a script; loading a file imports no module: import "
            "the script as a module first, as in import SCRIPT for SCRIPT.py; on the command line, "
            f"give --agent SCRIPT:{name}"
        )
    return (
        f"its agent {reference!r} is the class {name} of the module {module!r}, which is not "
        f"imported here; loading a file imports no module: import {module} first, or the module "
        f"that has the class now; on the command line, give --agent {module}:{name}"
    )


def _class_named(name: str) -> type[Agent]:
    from qrmax.agents.declaration import check_declared

    if name in _HOME:
        module, attribute = _HOME[name].rsplit(".", 1)
        found: type[Agent] = getattr(importlib.import_module(f"{__package__}.{module}"), attribute)
        return found
    if name in _registered:
        return _registered[name]
    if name in _installed:
        return _load_installed(name)
    check_agent_name(name)
    made: type[Agent] = import_object(name)
    check_declared(made, repr(name))
    return made


def _load_installed(name: str) -> type[Agent]:
    """The class of an entry point; an error that names the entry point if it is none."""
    from qrmax.agents.declaration import check_declared

    if name in _HOME:
        raise PluginError(
            f"entry point {name!r} of group {GROUP!r} ({_installed.origin(name)}) is broken: a "
            "built-in agent has that name"
        )
    found: type[Agent] = _installed.load(name)
    try:
        check_declared(found)
    except AgentError as error:
        raise PluginError(
            f"entry point {name!r} of group {GROUP!r} ({_installed.origin(name)}) is broken: "
            f"{error}"
        ) from error
    if found.name != name:
        raise PluginError(
            f"entry point {name!r} of group {GROUP!r} ({_installed.origin(name)}) is broken: its "
            f"class calls itself {found.name!r}; both names must be the same"
        )
    return found


# --- settings


def default_settings(agent: AgentLike) -> dict[str, Any]:
    """The settings of an agent and their defaults.

    >>> default_settings("qrm")
    {'gamma': 0.9, 'alpha': 0.1, 'epsilon': 0.1, 'q0': 2.0}
    """
    return {field.name: field.default for field in dataclasses.fields(agent_class(agent).Config)}


def given_settings(agent: AgentLike) -> dict[str, Any]:
    """The settings that come with an agent: all of them for a config, none otherwise."""
    if isinstance(agent, str | type):
        return {}
    return {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent)}


def known_settings(agent: AgentLike, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without a horizon that is "auto": that is known only once the problem is.

    >>> known_settings("psrl", {"horizon": "auto", "gamma": 0.9})
    {'gamma': 0.9}
    """
    is_auto = agent_class(agent).has_horizon and settings.get("horizon") == AUTO
    return {key: x for key, x in settings.items() if key != "horizon" or not is_auto}


def make_config(agent: AgentLike, settings: Mapping[str, Any]) -> AgentConfig:
    """The config of an agent; an unknown setting suggests the nearest.

    >>> make_config("qrmax", {"t_env": 20}).t_env
    20
    """
    kind = agent_class(agent)
    known = {field.name for field in dataclasses.fields(kind.Config)}
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {kind.name}", str(setting), known)
    # NumPy scalars become Python numbers: single precision in a setting would spread
    plain = {key: x.item() if hasattr(x, "item") else x for key, x in settings.items()}
    if is_outside(kind.Config):  # the built-in ones check their own
        check_types(kind.Config, plain)
    return kind.Config(**given_settings(agent) | plain)


def make_agent(
    agent: AgentLike,
    sizes: Sizes,
    config: AgentConfig,
    rng: Stream,
    task: Task,
    observations: Observations | None = None,
    coordinates: FloatArray | None = None,
) -> Agent:
    """An agent that has learned nothing yet. Only agents that know the machine get to see it.

    `observations` are given if states are not numbered, `coordinates` if states have them.
    """
    from qrmax.agents.experience import Counterfactual, Observed

    kind = agent_class(agent)
    if kind.perceives != (observations is not None):
        raise ParameterError(_misfit(kind))
    experience = Counterfactual(task) if kind.knows_machine else Observed()
    seen = () if observations is None else (observations,)
    if not kind.needs_coordinates:
        return instantiate(kind, sizes, config, rng, experience, *seen)
    if coordinates is None:
        raise ParameterError(
            f"agent {kind.name!r} needs coordinates of states, and there are none here; give them: "
            "qrmax.TabularMDP(..., coordinates=[[x, y], ...]), or, on an environment, "
            "qrmax.TaskWrapper(..., coordinates=lambda observation: ...)"
        )
    return instantiate(kind, sizes, config, rng, experience, *seen, coordinates=coordinates)


def _misfit(kind: type[Agent]) -> str:
    others = [other for other in _HOME if agent_class(other).perceives != kind.perceives]
    if kind.perceives:
        return (
            f"agent {kind.name!r} is for worlds with real-valued observations, such as "
            f"continuous/frozen-lake/abc; for discrete states there are: {', '.join(others)}"
        )
    return (
        f"agent {kind.name!r} is for worlds with discrete states, such as office/map1/exp5; for "
        f"real-valued observations there are: {', '.join(others)}"
    )
