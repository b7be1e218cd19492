"""Gymnasium environments from outside the library, made from a description of plain data.

    make_environment("CliffWalking-v1", task="F goal", labels={"47": "goal"})

An environment is a Gymnasium id, or `module:function` that makes one; wrappers and labelling
functions are `module:name`, too. A labelling function may also be a table: the propositions true
for each observation, which is written as `str` writes it, without brackets: `"47"`, `"3, 1"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium

from qrmax.errors import ParameterError, PluginError, QRMaxError, UnknownNameError, shown
from qrmax.logic.guards import as_label
from qrmax.machines.task_files import AnyTask
from qrmax.outside_errors import described, raised_outside
from qrmax.plugins import import_object, is_reference
from qrmax.worlds.task_wrapper import TaskWrapper

_ID = re.compile(r"-v\d+$")  # the end of a Gymnasium id, which may also begin with a module


def make_environment(
    env: str,
    task: AnyTask,
    *,
    labels: str | Mapping[str, Any] | None = None,
    transition_labels: str | None = None,
    options: Mapping[str, Any] | None = None,
    wrappers: Sequence[str | Mapping[str, Any]] = (),
    env_reward: bool = True,
) -> TaskWrapper:
    """Make an environment with a task.

    Args:
        env: an id, or `module:function`.
        task: a formula, the name of a built-in task, or a reward machine.
        labels: the labelling function as `module:function`, or a table of observations.
        transition_labels: a labelling function of whole steps instead.
        options: keyword arguments of `gymnasium.make`, or of the function.
        wrappers: `module:Wrapper`, the innermost first; or mappings with the key `wrapper` and
            keyword arguments.
        env_reward: whether the rewards of the environment itself count.
    """
    made = _make(env, dict(options or {}))
    for wrapper in wrappers:
        made = _wrap(made, wrapper)
    _check_actions(made, env)
    return TaskWrapper(
        made,
        task,
        labels=None if labels is None else _labelling(labels),
        transition_labels=None if transition_labels is None else _function(transition_labels),
        env_reward=env_reward,
    )


def check_environment(env: TaskWrapper) -> None:
    """Take one step, so that invalid labels raise an error before training."""
    try:
        _, info = env.reset(seed=0)
        as_label(info["label"])
        env.action_space.seed(0)
        env.step(env.action_space.sample())
    except QRMaxError:
        raise
    except Exception as error:  # user code may raise anything
        raised = raised_outside(error) or described(error)
        raise PluginError(f"{_name(env)} cannot be stepped: {raised}") from error


def code_of(
    env: str,
    labels: object = None,
    transition_labels: str | None = None,
    wrappers: Iterable[Any] = (),
) -> list[str]:
    """The `module:name` references in the description of an environment.

    Among them are those that nothing can import, such as `module:<lambda>`.
    """
    named = [env, labels, transition_labels, *map(_wrapper_name, wrappers)]
    texts = [text for text in named if isinstance(text, str)]
    return [text for text in texts if is_reference(text) or "<" in text]


class TableLabels:
    """A labelling function that looks observations up in a table.

    >>> TableLabels({"47": ["goal"], "3, 1": "edge"})((3, 1), {})
    ['edge']
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = {
            _key(key): [names] if isinstance(names, str) else [*names]
            for key, names in table.items()
        }

    def __call__(self, observation: Any, info: Any) -> Iterable[str]:  # noqa: ARG002
        """The propositions true for an observation."""
        return self.table.get(_key(observation), ())


def _key(observation: Any) -> str:
    """An observation as text, without brackets: of a number, a tuple or an array."""
    plain = observation.tolist() if hasattr(observation, "tolist") else observation
    return ",".join(re.sub(r"[\[\](){}\s]", "", str(plain)).split(",")).strip(",")


def _make(env: str, options: dict[str, Any]) -> Any:
    if is_reference(env) and not _ID.search(env):
        found = _function(env)
        made = _called(f"{env}(...)", found, **options)
        if not isinstance(made, gymnasium.Env):
            raise PluginError(f"{env!r} makes {shown(made)}; needed: a Gymnasium environment")
        return made
    known = [*gymnasium.registry]
    if ":" not in env and env not in known and not _ID.search(env):
        raise UnknownNameError("environment", env, known, hint="or module:function of your own")
    try:
        return gymnasium.make(env, **options)
    except gymnasium.error.UnregisteredEnv:
        raise UnknownNameError(
            "environment", env, known, hint="or module:function of your own"
        ) from None
    except Exception as error:
        raise PluginError(f"environment {env!r} cannot be made: {described(error)}") from error


def _wrap(env: Any, wrapper: str | Mapping[str, Any]) -> Any:
    name = _wrapper_name(wrapper)
    if not isinstance(name, str):
        raise ParameterError(f"wrapper is {shown(wrapper)}; needed: module:Wrapper")
    options = {} if isinstance(wrapper, str) else {k: wrapper[k] for k in wrapper if k != "wrapper"}
    made = _called(f"{name}(env)", _function(name), env, **options)
    if not isinstance(made, gymnasium.Env):
        raise PluginError(
            f"wrapper {name!r} makes {shown(made)}; needed: an environment, as a subclass of "
            "gymnasium.Wrapper is"
        )
    return made


def _wrapper_name(wrapper: Any) -> Any:
    return wrapper.get("wrapper") if isinstance(wrapper, Mapping) else wrapper


def _labelling(labels: str | Mapping[str, Any]) -> Any:
    return TableLabels(labels) if isinstance(labels, Mapping) else _function(labels)


def _function(reference: str) -> Any:
    found = import_object(reference)
    if not callable(found):
        raise PluginError(f"{reference!r} is {shown(found)}; needed: a function or a class")
    return found


def _called(what: str, function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except Exception as error:  # user code may raise anything
        raise PluginError(f"{what} fails: {described(error)}") from error


def _check_actions(env: Any, name: str) -> None:
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
        raise ParameterError(
            f"environment {name!r} has the actions {str(env.action_space)[:80]}; these agents "
            "need discrete actions: give a wrapper that makes the action space Discrete"
        )


def _name(env: TaskWrapper) -> str:
    return str(env.spec.id) if env.spec is not None else type(env.unwrapped).__name__
