"""The shape of a study file: which keys there are, and what kind of value each has.

A bare name stands for an entry that says nothing else: `"qrmax"` for `{ agent = "qrmax" }`. Whether
there is such an agent, and whether a value is in its range, is not a matter of shape: see
`mistakes.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from qrmax.errors import ParameterError, UnknownNameError, shown
from qrmax.studies.mistakes import Mistake

MOST_SEEDS = 100_000

_ENTRY = ConfigDict(extra="allow", strict=True)  # other keys are options or settings
_CLOSED = ConfigDict(extra="forbid", strict=True)
_KINDS = {  # what pydantic misses, in our words
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a name or a table",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}


class ProblemEntry(BaseModel):
    """A problem, or all that fit a pattern; other keys are options of the world."""

    model_config = _ENTRY
    name: str | None = None
    map: str | None = None
    task: str | None = None
    label: str | None = None


class AgentEntry(BaseModel):
    """An agent; other keys are its settings."""

    model_config = _ENTRY
    agent: str
    label: str | None = None


class StopEntry(BaseModel):
    """A stopping rule; other keys are its settings."""

    model_config = _ENTRY
    rule: str


def _entry(key: str) -> BeforeValidator:
    return BeforeValidator(lambda given: {key: given} if isinstance(given, str) else given)


def _seeds(given: object) -> object:
    """A count, or a list of seeds."""
    if isinstance(given, list):
        return given
    if type(given) is not int or not 1 <= given <= MOST_SEEDS:
        raise ParameterError(
            f"the number of seeds is {shown(given)}; allowed: whole numbers from 1 to {MOST_SEEDS}"
        )
    return list(range(given))


class Layer(BaseModel):
    """What a protocol can say, and a study, too."""

    model_config = _CLOSED
    about: str | None = None
    comparable: bool | None = None  # whether the reference was made in the same way
    agents: list[Annotated[AgentEntry, _entry("agent")]] | None = None
    settings: dict[str, dict[str, Any]] = {}  # by agent
    on: dict[str, dict[str, dict[str, Any]]] = {}  # by problem, or pattern, and agent
    world: dict[str, Any] = {}
    gamma: float | None = None
    stop: Annotated[StopEntry, _entry("rule")] | None = None
    max_steps: int | None = None
    max_episodes: int | None = None  # then episodes are what is counted
    evaluate_every: int | None = None


class StudyFile(Layer):
    """What only a study can say."""

    title: str = ""
    problems: list[Annotated[ProblemEntry, _entry("name")]]
    seeds: Annotated[list[int], BeforeValidator(_seeds)]
    protocol: str | None = None
    protocols: dict[str, Layer] = {}
    reference: str | None = None


def as_problem(given: Any) -> ProblemEntry | None:
    """An entry of `problems`, unless it has not the shape of one."""
    try:
        return ProblemEntry.model_validate({"name": given} if isinstance(given, str) else given)
    except ValidationError:
        return None


def shape_mistakes(raw: dict[str, Any]) -> Iterator[Mistake]:
    """Keys that a study does not have, or that it needs, and values of the wrong kind."""
    try:
        StudyFile.model_validate(raw)
    except ValidationError as error:
        for found in error.errors(include_url=False):
            yield Mistake(_path(found["loc"]), _message(found))


def _path(place: tuple[str | int, ...]) -> str:
    """A place in a file, as people write it.

    >>> _path(("agents", 1, "t_env"))
    'agents[1].t_env'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".")


def _message(found: Any) -> str:
    kind, place = found["type"], found["loc"]
    if kind == "extra_forbidden":
        model = Layer if place[0] == "protocols" else StudyFile
        return str(UnknownNameError("key", str(place[-1]), model.model_fields))
    if kind == "missing":
        return "is missing"
    if kind == "model_type" and place[0] == "protocols" and len(place) == 2:
        return f"is {shown(found['input'])}; needed: a table"
    if kind == "value_error":
        return str(found["ctx"]["error"])
    return f"is {shown(found['input'])}; needed: {_KINDS.get(kind, found['msg'])}"
