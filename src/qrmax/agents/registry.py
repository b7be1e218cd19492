"""The agents by name. Nothing heavy is imported before an agent is asked for."""

from __future__ import annotations

import dataclasses
import importlib
from typing import TYPE_CHECKING, Any

from qrmax.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    from qrmax.agents.base import Agent, AgentConfig, Sizes
    from qrmax.agents.experience import Task
    from qrmax.problems.observations import Observations
    from qrmax.seeding import Stream

_HOME = {  # in the paper's order
    "q-learning": "q_learning.QLearning",
    "qrm": "qrm.QRM",
    "rmax": "rmax.RMax",
    "rmax-rm": "rmax_rm.RMaxRM",
    "qrmax": "qrmax.QRMax",
    "qrmax-rm": "qrmax_rm.QRMaxRM",
    "ucbvi-sb": "episodic.ucbvi.UCBVISB",
    "ucbvi-b": "episodic.ucbvi.UCBVIB",
    "ucbvi-h": "episodic.ucbvi.UCBVIH",
    "ucbvi-b-rm": "episodic.ucbvi.UCBVIBRM",
    "psrl": "episodic.psrl.PSRL",
    "psrl-rm": "episodic.psrl.PSRLRM",
    "opsrl": "episodic.opsrl.OPSRL",
    "bucket-qrmax": "buckets.bucket_qrmax.BucketQRMax",
    "bucket-qrmax-rm": "buckets.bucket_qrmax.BucketQRMaxRM",
    "bucket-rmax": "buckets.bucket_rmax.BucketRMax",
    "dqn": "dqn.DQN",
    "dqn-rm": "dqn.DQNRM",
}
_PUBLISHED = {
    "rmax": "published.PublishedRMax",
    "rmax-rm": "published.PublishedRMaxRM",
    "qrmax": "published.PublishedQRMax",
    "qrmax-rm": "published.PublishedQRMaxRM",
}


def agent_names() -> list[str]:
    """The names of all agents."""
    return list(_HOME)


def check_agent(name: str) -> None:
    """Raise an error that suggests the nearest name unless there is such an agent."""
    if name not in _HOME:
        raise UnknownNameError("agent", str(name), _HOME)


def agent_class(name: str, *, published: bool = False) -> type[Agent]:
    """The agent of that name; where it has rules of the published code, those if so wished."""
    check_agent(name)
    home = _PUBLISHED.get(name, _HOME[name]) if published else _HOME[name]
    module, attribute = home.rsplit(".", 1)
    found: type[Agent] = getattr(importlib.import_module(f"qrmax.agents.{module}"), attribute)
    return found


def default_settings(name: str) -> dict[str, Any]:
    """What an agent can be told, and what it takes where it is not.

    >>> default_settings("qrm")
    {'gamma': 0.9, 'alpha': 0.1, 'epsilon': 0.1, 'q0': 2.0}
    """
    return {field.name: field.default for field in dataclasses.fields(agent_class(name).Config)}


def make_config(name: str, settings: dict[str, Any]) -> AgentConfig:
    """The settings of an agent; an unknown one suggests the nearest.

    >>> make_config("qrmax", {"t_env": 20}).t_env
    20
    """
    known = default_settings(name)
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", str(setting), known)
    # numbers of NumPy's become Python's: single precision in a setting would spread
    plain = {key: x.item() if hasattr(x, "item") else x for key, x in settings.items()}
    return agent_class(name).Config(**plain)


def make_agent(
    name: str,
    sizes: Sizes,
    config: AgentConfig,
    rng: Stream,
    task: Task,
    observations: Observations | None = None,
) -> Agent:
    """An agent that has learned nothing yet. Only agents that know the machine get to see it.

    `observations` are given where states are not numbered.
    """
    from qrmax.agents.experience import Counterfactual, Observed

    kind = agent_class(name, published=getattr(config, "published", False))
    if kind.perceives != (observations is not None):
        raise ParameterError(_misfit(name, perceives=kind.perceives))
    experience = Counterfactual(task) if kind.knows_machine else Observed()
    shown = () if observations is None else (observations,)
    return kind(sizes, config, rng, experience, *shown)


def _misfit(name: str, *, perceives: bool) -> str:
    others = [other for other in _HOME if agent_class(other).perceives != perceives]
    if perceives:
        return (
            f"agent {name!r} is for worlds with real observations, such as "
            f"continuous/frozen-lake/abc; for numbered states there are: {', '.join(others)}"
        )
    return (
        f"agent {name!r} is for worlds with numbered states, such as office/map1/exp5; for real "
        f"observations there are: {', '.join(others)}"
    )
