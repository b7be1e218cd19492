"""Another instance of an environment, whose episodes and random stream are its own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium

from qrmax.errors import ParameterError
from qrmax.worlds.task_wrapper import TaskWrapper

REMEDY = (
    "give another environment like it: run.evaluate(episodes, env=...) or, for training, "
    "qrmax.train(..., evaluation_env=...)"
)


def another(env: Any) -> Any:
    """An environment like this one: made again from its `spec`, or else a deep copy.

    A labelling function that refers to the environment itself would read the first instance; that
    raises an error.
    """
    layers = [*_layers(env)]
    for layer in layers:
        if not isinstance(layer, TaskWrapper):
            continue
        if name := _seen_by(layer.labelling.function, layers):
            raise ParameterError(
                f"the labelling function looks at {name!r}, which is the training environment, "
                f"so it would return the labels of that one; let it use info, or {REMEDY}"
            )
    try:
        made = gymnasium.make(_unseen(env.spec))
    except Exception:  # user code may raise anything; a deep copy is tried next
        made = None
    if made is not None and _kinds(made) == _kinds(env):
        return made
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise ParameterError(
            f"{str(env)[:80]} can neither be made again from its spec nor copied ({error!r:.80}); "
            f"{REMEDY}"
        ) from error


def _unseen(spec: Any) -> Any:
    """The environment's spec without a render mode that would show every rollout."""
    spec = copy.deepcopy(spec)
    if spec.kwargs.get("render_mode") == "human":
        del spec.kwargs["render_mode"]
    return spec


def _layers(env: Any) -> Iterator[Any]:
    """The environment, and those that it wraps, from the outermost on."""
    while env is not None:
        yield env
        env = getattr(env, "env", None)


def _kinds(env: Any) -> list[type]:
    """The classes of an environment's wrappers, without those that only check its use."""
    checks = ("OrderEnforcing", "PassiveEnvChecker")
    return [type(layer) for layer in _layers(env) if type(layer).__name__ not in checks]


def _seen_by(function: Any, layers: list[Any]) -> str | None:
    """The name by which a function refers to one of the layers; None if it does not."""
    while isinstance(function, partial):
        if any(value is layer for value in function.args for layer in layers):
            return "an argument"
        function = function.func
    named: dict[str, Any] = {}
    if inspect.ismethod(function):
        named["self"] = function.__self__
        function = function.__func__
    if inspect.isfunction(function):
        known = inspect.getclosurevars(function)
        named |= {**known.globals, **known.nonlocals}
    elif callable(function):
        named |= getattr(function, "__dict__", {})
    return next((n for n, value in named.items() if any(value is o for o in layers)), None)
