"""Labelling functions: the propositions that are true after a step, as a machine reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from qrmax.errors import GuardError, ParameterError, shown
from qrmax.logic.guards import Label, as_label
from qrmax.machines.label_reader import LabelReader, Reading
from qrmax.machines.reward_machine import RewardMachine
from qrmax.outside_errors import refused_call

Info = dict[str, Any]
LabelsOfObservations = Callable[[Any, Info], Iterable[str]] | Mapping[Any, Iterable[str]]
LabelsOfTransitions = Callable[[Any, Any, Any, Info], Iterable[str]]


class ByObservation:
    """The labelling function of a mapping from observations to labels; empty for others."""

    def __init__(self, labels: Mapping[Any, Iterable[str]]) -> None:
        self.labels = {
            seen: as_label(label, f"labels[{shown(seen)}]") for seen, label in labels.items()
        }

    def __call__(self, observation: Any, info: Info) -> Label:  # noqa: ARG002 (it is enough)
        """The label of an observation."""
        try:
            return self.labels.get(observation, frozenset())
        except TypeError:
            raise ParameterError(
                f"labels are a mapping, and the observation {shown(observation)} cannot be looked "
                "up in one; needed: a function, such as labels=lambda observation, info: ..."
            ) from None


class Labelling:
    """A labelling function of observations, or of whole transitions, read by a machine."""

    def __init__(
        self,
        machine: RewardMachine,
        labels: LabelsOfObservations | None,
        transition_labels: LabelsOfTransitions | None,
    ) -> None:
        if (labels is None) == (transition_labels is None):
            raise ParameterError(
                "a task on an environment needs either labels=... or transition_labels=..."
            )
        if isinstance(labels, Mapping):
            labels = ByObservation(labels)
        given: Any = transition_labels if labels is None else labels
        if not callable(given):
            raise ParameterError(
                f"labels are {shown(given)}; needed: a function, such as "
                "labels=lambda observation, info: names.get(observation, ()), or a mapping of "
                "observations to labels"
            )
        step = ("observation", "action", "next_observation")
        seen = ("observation",) if transition_labels is None else step
        if refused := refused_call(given, *seen, "info"):
            raise ParameterError(f"the labelling function {refused}")
        self.reader = LabelReader(machine)
        self._nothing = self.reader.read(())
        self._by_observation: dict[Any, Reading] | None = None  # of a mapping
        if isinstance(labels, ByObservation):
            self._by_observation = {
                s: self.reader.read(label) for s, label in labels.labels.items()
            }
        self.function = given  # of observations or of transitions
        self.of_observations = labels
        self.of_transitions = transition_labels
        what = "labels" if transition_labels is None else "transition_labels"
        self._where = f"the result of {_name(given) or what}(...)"

    def start(self, observation: Any, info: Info) -> tuple[int, Reading]:
        """The machine state at the start of an episode, and the label read.

        A labelling function of transitions gives no label to the first observation.
        """
        if self.of_observations is None:
            return self.reader.machine.index(self.reader.machine.initial), self.reader.read(())
        reading = self.read(None, None, observation, info)
        return self.reader.first(reading), reading

    def read(self, before: Any, action: Any, observation: Any, info: Info) -> Reading:
        """The label of a transition."""
        if self._by_observation is not None and observation.__class__ is int:
            return self._by_observation.get(observation, self._nothing)
        if self.of_transitions is None:
            returned = self.of_observations(observation, info)  # type: ignore[misc]  # one is there
        else:
            returned = self.of_transitions(before, action, observation, info)
        try:
            return self.reader.read(returned, self._where)
        except GuardError as error:
            raise GuardError(f"{error} (observed: {shown(observation)})") from None


def _name(function: Any) -> str:
    """The name of a function of a module; empty for others, such as a lambda."""
    name: str = getattr(function, "__qualname__", "<none>")
    return "" if "<" in name else f"{function.__module__}.{name}"
