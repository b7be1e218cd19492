"""A stand-in for the environment of a run that was loaded without it: enough to act."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from qrmax.errors import ParameterError
from qrmax.machines.reward_machine import RewardMachine


class AbsentSpec(NamedTuple):
    """The name of an absent environment."""

    id: str


class AbsentEnv:
    """A stand-in for the environment that a run was trained on, with its spaces and its task."""

    def __init__(self, name: str, machine: RewardMachine, spaces: Mapping[str, Any]) -> None:
        from qrmax.worlds.spaces import as_space  # loads gymnasium

        self.spec = AbsentSpec(name)
        self.made_from: Mapping[str, Any] | None = None  # kept if the run is saved again
        self.machine = machine
        self.coordinates = None  # the file has those of a run that needs them
        self.labels_steps = bool(spaces["labels_steps"])
        self.observation_space = {"state": as_space(spaces["state"])}
        self.action_space = as_space(spaces["action"])

    def reset(self, *, seed: int | None = None) -> NoReturn:  # noqa: ARG002 (as environments do)
        """Raise a `ParameterError` that says how to pass the environment."""
        raise ParameterError(
            f"this run was loaded without the environment that it was trained on, "
            f"{self.spec.id!r}: it can act, and be inspected and exported, but not be trained or "
            "rolled out; give the environment: qrmax.load(path, env=...), or run.watch(env), "
            "run.evaluate(episodes, env=...)"
        )
