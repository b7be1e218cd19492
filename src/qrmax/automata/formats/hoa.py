"""Tasks as HOA, the format in which automata tools exchange automata (version 1).

    HOA: v1
    name: "exp1"
    States: 2
    Start: 0
    AP: 1 "office"
    acc-name: Buchi
    Acceptance: 1 Inf(0)
    properties: trans-labels explicit-labels state-acc deterministic complete
    rewards: "0.0" "1.0" "0.0"
    failure:
    --BODY--
    State: 0 "start"
    [!0] 0
    [0] 1
    State: 1 "done" {0}
    [t] 1
    --END--

What other tools read here is the language: the traces that end in success, as a deterministic
automaton with accepting states. The guards of a state exclude one another, and staying is an edge,
so what is read back is a machine that does the same, with the same names, but not with the same
edges. `rewards` (of all edges, in order), `failure` (numbers of states), `description` and
`consume-initial` are headers of ours, in lower case, which others are to ignore. HOA knows no
chance: random machines are refused.

Of automata by others, deterministic ones with state-based Büchi acceptance are read. Accepting
states are successes and end the episode, entering one pays 1; rejecting states that cannot be left
are failures; a label that no edge is for is a failure, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from qrmax.automata.edges import EVERYWHERE, Edge
from qrmax.automata.formats.drawn import unused
from qrmax.automata.formats.fields import make_machine
from qrmax.automata.guards import MAX_TOKENS, Guard, is_proposition
from qrmax.automata.reward_machine import RewardMachine
from qrmax.errors import GuardError, TaskError, shown
from qrmax.source import Source

MOST_PROPOSITIONS = 12  # of an automaton whose edges have no labels: it has 2^12 edges a state
MOST_EDGES = 500  # of a state: each is compared with each

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ )
    | (?P<comment> /\* )
    | (?P<string> "(?:[^"\\]|\\.)*" )
    | (?P<mark> --BODY-- | --END-- | --ABORT-- | [\[\]{}()&|!] )
    | (?P<header> [A-Za-z_][\w-]*: )
    | (?P<word> @?[\w-]+ )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_BUCHI = ["1", "Inf", "(", "0", ")"]


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """A task as HOA text; what `parse` makes of it does the same as the machine."""
    if machine.is_random:
        raise TaskError(f"{machine.name}: HOA has no chance in it; write random tasks as TOML")
    propositions = sorted(machine.propositions)
    numbers = {name: str(number) for number, name in enumerate(propositions)}
    rewards: list[str] = []
    body: list[str] = []
    for number, state in enumerate(machine.states):
        accepting = " {0}" if state in machine.success else ""
        body.append(f"State: {number} {_quote(state)}{accepting}")
        for guard, (outcome,) in machine.events(state):
            rewards.append(_quote(repr(outcome.reward)))
            label = tuple(_to_hoa(item, numbers) for item in guard.postfix)
            body.append(f"[{Guard(label)}] {machine.index(outcome.state)}")
    failures = sorted(machine.index(state) for state in machine.failure)
    description = [f"description: {_quote(machine.description)}"] if machine.description else []
    head = [
        "HOA: v1",
        f"name: {_quote(machine.name)}",
        f"States: {len(machine.states)}",
        f"Start: {machine.index(machine.initial)}",
        " ".join([f"AP: {len(propositions)}", *map(_quote, propositions)]),
        "acc-name: Buchi",
        "Acceptance: 1 Inf(0)",
        "properties: trans-labels explicit-labels state-acc deterministic complete",
        *description,
        " ".join(["rewards:", *rewards]),
        " ".join(["failure:", *map(str, failures)]),
        *([] if machine.consume_initial else ["consume-initial: f"]),
    ]
    return "\n".join([*head, "--BODY--", *body, "--END--"]) + "\n"


def parse(source: Source) -> RewardMachine:
    """Read a task from HOA text."""
    return _Reader(source).machine()


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


@dataclass
class _State:
    """A state as the file has it."""

    number: int
    name: str
    accepting: bool
    label: str | None  # of all its edges
    implicit: int = 0  # how many edges have no label: each number stands for one
    edges: list[tuple[Guard, int, int]] = field(default_factory=list)  # guard, target, which edge

    def is_sink(self) -> bool:
        return bool(self.edges) and all(
            target == self.number and guard == EVERYWHERE for guard, target, _ in self.edges
        )


class _Reader:
    """Reads headers, then states."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = _tokens(source)
        self.token = next(self.tokens)
        self.headers: dict[str, list[_Token]] = {}
        self.aliases: dict[str, str] = {}
        self.propositions: list[str] = []
        self.states: dict[int, _State] = {}
        self.n_edges = 0

    def machine(self) -> RewardMachine:
        self._read_headers()
        self._skip("--BODY--")
        while self.token.text == "State:":
            self._read_state()
        self._skip("--END--")
        if not self.states:
            raise self._error("an automaton without states")
        names = self._names()
        success = {state.number for state in self.states.values() if state.accepting}
        failure = self._failures() - success
        inner = [s for s in self.states.values() if s.number not in success | failure]
        complete = all(self._check_deterministic(state) for state in inner)
        rewards = self._rewards(success)
        edges = [
            Edge(names[state.number], guard, self._target(names, target), rewards[which])
            for state in inner
            for guard, target, which in state.edges
        ]
        return make_machine(
            self.source,
            edges,
            initial=self._target(names, self._number("Start")),
            success=[names[number] for number in success],
            failure=[names[number] for number in failure],
            states=[*names.values()],
            undefined="stay" if complete else "fail",
            consume_initial=self._text("consume-initial", "t") != "f",
            name=self._text("name", Path(self.source.name).stem),
            description=self._text("description", ""),
        )

    def _read_headers(self) -> None:
        if self.token.text != "HOA:":
            raise self._error("expected 'HOA: v1'")
        while self.token.kind == "header":
            name = self.token.text[:-1]
            self._next()
            values: list[_Token] = []
            while self.token.kind not in ("header", "end") and self.token.text != "--BODY--":
                values.append(self.token)
                self._next()
            if name == "Alias":
                self._take_alias(values)
            elif name not in self.headers:
                self.headers[name] = values
            elif name in ("Start", "AP", "Acceptance", "States"):
                raise self._error(f"a second header {name!r}: one is enough")
        if [token.text for token in self.headers.get("Acceptance", [])] != _BUCHI:
            raise self._error("read is only 'Acceptance: 1 Inf(0)', on states")
        self.propositions = [token.text for token in self.headers.get("AP", [])[1:]]
        for name in self.propositions:
            if not is_proposition(name):
                raise self._error(f"{shown(name)} is not the name of a proposition")

    def _take_alias(self, values: list[_Token]) -> None:
        if not values or not values[0].text.startswith("@"):
            raise self._error("expected 'Alias: @name label'")
        self.propositions = [token.text for token in self.headers.get("AP", [])[1:]]
        self.aliases[values[0].text] = f"({self._label(values[1:])})"

    def _read_state(self) -> None:
        self._next()
        label = self._label(self._bracketed()) if self.token.text == "[" else None
        number = self._whole()
        name = str(number)
        if self.token.kind == "string":
            name = self.token.text
            self._next()
        if number in self.states:
            raise self._error(f"a second state {number}")
        state = _State(number, name, self._acceptance(), label)
        self.states[number] = state
        while self.token.text not in ("State:", "--END--"):
            self._read_edge(state)

    def _read_edge(self, state: _State) -> None:
        place = self.token
        text = self._label(self._bracketed()) if self.token.text == "[" else state.label
        if text is None:
            text = self._implicit(state.implicit)
            state.implicit += 1
        target = self._whole()
        if self.token.text == "&":
            raise self._error("several successors at once are not read")
        if self._acceptance():
            raise self._error("accepting edges are not read, accepting states are", place)
        state.edges.append((Guard.parse(text), target, self.n_edges))
        self.n_edges += 1

    def _implicit(self, number: int) -> str:
        """The label of the edge of this number, where edges have none: its bits say it."""
        if len(self.propositions) > MOST_PROPOSITIONS or number >= 1 << len(self.propositions):
            raise self._error("an edge without a label, and no label left for it")
        literals = [
            name if number >> bit & 1 else f"!{name}" for bit, name in enumerate(self.propositions)
        ]
        return " & ".join(literals) or "true"

    def _bracketed(self) -> list[_Token]:
        self._skip("[")
        found: list[_Token] = []
        while self.token.text != "]":
            if self.token.kind in ("end", "header"):
                raise self._error("expected ']'")
            found.append(self.token)
            self._next()
        self._next()
        return found

    def _label(self, tokens: list[_Token]) -> str:
        """A label as a guard of ours, checked."""
        text = " ".join(map(self._item, tokens))
        if len(text) > 20 * MAX_TOKENS:
            raise self._error("a label that is too long once its aliases are written out")
        try:
            Guard.parse(text)
        except GuardError as error:
            raise self._error(f"not a label: {error}", tokens[0] if tokens else None) from error
        return text

    def _item(self, token: _Token) -> str:
        if token.text in ("t", "f"):
            return "true" if token.text == "t" else "false"
        if token.text in self.aliases:
            return self.aliases[token.text]
        if token.kind == "mark":
            return token.text
        if _WHOLE.fullmatch(token.text) and int(token.text) < len(self.propositions):
            return self.propositions[int(token.text)]
        raise self._error(f"{shown(token.text)} is no proposition and no alias", token)

    def _acceptance(self) -> bool:
        """Whether `{0}` follows, and past it."""
        if self.token.text != "{" or self.token.kind != "mark":
            return False
        self._next()
        accepting = False
        while self.token.text != "}":
            accepting = self._whole() == 0 or accepting
        self._next()
        return accepting

    def _names(self) -> dict[int, str]:
        """The names of the states, each used once: in HOA they are only remarks."""
        names: dict[int, str] = {}
        taken: set[str] = set()
        for state in self.states.values():
            name = state.name if state.name not in taken else f"{state.name} ({state.number})"
            names[state.number] = unused(name, taken)
            taken.add(names[state.number])
        return names

    def _failures(self) -> set[int]:
        if "failure" in self.headers:
            told = {self._as_whole(token) for token in self.headers["failure"]}
            return told & {*self.states}
        return {s.number for s in self.states.values() if not s.accepting and s.is_sink()}

    def _rewards(self, success: set[int]) -> list[float]:
        """What each edge pays: as told, or 1 for reaching an end."""
        if "rewards" not in self.headers:
            targets = (target for state in self.states.values() for _, target, _ in state.edges)
            return [float(target in success) for target in targets]
        told = self.headers["rewards"]
        if len(told) != self.n_edges:
            raise self._error(f"{len(told)} rewards for {self.n_edges} edges")
        try:
            return [float(token.text) for token in told]
        except ValueError as error:
            raise self._error(f"not a reward: {error}") from error

    def _check_deterministic(self, state: _State) -> bool:
        """Whether some edge holds for every label; an error where two hold for one."""
        if len(state.edges) == 1 and state.edges[0][0] == EVERYWHERE:
            return True
        if state.implicit == len(state.edges):
            return state.implicit == 1 << len(self.propositions)
        if len(state.edges) > MOST_EDGES:
            raise TaskError(
                f"{self.source.name}: state {state.number} has {len(state.edges)} edges; "
                f"the most that are compared are {MOST_EDGES}"
            )
        rest = EVERYWHERE
        try:
            for number, (guard, *_) in enumerate(state.edges):
                for other, *_ in state.edges[:number]:
                    if guard.overlap(other) is not None:
                        raise TaskError(
                            f"{self.source.name}: state {state.number} is not deterministic: "
                            f"{str(guard)[:80]!r} and {str(other)[:80]!r} can hold at once"
                        )
                rest = rest.but_not(guard)
            return rest.example() is None
        except GuardError as error:
            raise TaskError(
                f"{self.source.name}: state {state.number} has labels that are too involved "
                f"to compare: {error}"
            ) from error

    def _target(self, names: dict[int, str], number: int) -> str:
        if number not in names:
            raise self._error(f"there is no state {number}")
        return names[number]

    def _number(self, header: str) -> int:
        values = self.headers.get(header, [])
        if len(values) != 1:
            raise self._error(f"needed: a header {header!r} with one number")
        return self._as_whole(values[0])

    def _text(self, header: str, otherwise: str) -> str:
        values = self.headers.get(header, [])
        return values[0].text if values else otherwise

    def _whole(self) -> int:
        number = self._as_whole(self.token)
        self._next()
        return number

    def _as_whole(self, token: _Token) -> int:
        if not _WHOLE.fullmatch(token.text):
            raise self._error("expected a number", token)
        return int(token.text)

    def _skip(self, text: str) -> None:
        if self.token.text != text:
            raise self._error(f"expected {text!r}")
        self._next()

    def _next(self) -> None:
        self.token = next(self.tokens)

    def _error(self, message: str, token: _Token | None = None) -> TaskError:
        found = token or self.token
        line, column = self.source.place(found.offset)
        where = f", found {shown(found.text)}" if found.text else ""
        return self.source.error(TaskError, f"{message}{where}", line=line, column=column)


def _tokens(source: Source) -> Iterator[_Token]:
    at, text = 0, source.text
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            line, column = source.place(at)
            message = f"unexpected {text[at]!r}"
            raise source.error(TaskError, message, line=line, column=column)
        kind = found.lastgroup or ""
        if kind == "comment":
            at = _after_comment(source, at)
            continue
        if kind == "string":
            yield _Token(kind, _ESCAPED.sub(r"\1", found[0][1:-1]), at)
        elif kind != "space":
            yield _Token(kind, found[0], at)
        at = found.end()
    while True:
        yield _Token("end", "", len(text))


def _after_comment(source: Source, start: int) -> int:
    """Where a comment ends; there may be others in it."""
    depth = 0
    for mark in _COMMENT_ENDS.finditer(source.text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    line, column = source.place(start)
    raise source.error(TaskError, "a comment that does not end", line=line, column=column)


def _to_hoa(item: str, numbers: dict[str, str]) -> str:
    return {"true": "t", "false": "f"}.get(item) or numbers.get(item, item)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
