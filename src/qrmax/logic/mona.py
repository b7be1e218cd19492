"""MONA, a decision procedure for monadic second-order logic, as an alternative backend.

The formula is translated to MONA's language M2L-Str, over words one letter longer than the trace:
position `e`, the last one, is the border. MONA's table of decision diagrams is read from a pipe; no
file is written. See https://www.brics.dk/mona.
"""

from __future__ import annotations

import re
import subprocess
from itertools import count

from qrmax.errors import MissingExtraError, SizeError
from qrmax.logic.formula import Formula
from qrmax.logic.terms import Kind, Terms
from qrmax.logic.trampoline import Steps, trampoline
from qrmax.logic.transitions import (
    Acceptor,
    Transitions,
    in_breadth_first_order,
    state_ref,
)

PROGRAM = "mona"
MAX_TEXT = 1_000_000  # characters of a formula in MONA's language


def run_mona(terms: Terms, goal: int, formula: Formula, max_states: int) -> Acceptor:
    """Compile a term to an automaton with MONA."""
    sets = [f"P{number}" for number in range(len(formula.propositions))]
    declared = f"var2 {', '.join(sets)};\n" if sets else ""
    text = f"m2l-str;\n{declared}{_whole(terms, goal, formula.logic)};\n"
    command = [PROGRAM, "-xw", "-u", "/dev/stdin"]  # print the table of a complete automaton
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingExtraError(
            f'backend="mona" needs the program {PROGRAM!r}, which could not be started: '
            f"{error.strerror}\n  install it (on Debian: apt install mona), or leave backend out"
        ) from error
    if not done.stdout.startswith("MONA DFA"):
        said = (done.stdout + done.stderr).strip()[-200:] or f"exit code {done.returncode}"
        raise SizeError(f"more than MONA can handle: {said}")
    acceptor = _read_table(done.stdout)
    if len(acceptor.accepting) > max_states:
        raise SizeError(f"an automaton of more than {max_states} states")
    return acceptor


def _whole(terms: Terms, goal: int, logic: str) -> str:
    """The formula at the position at which its logic is evaluated."""
    writer = _Writer(terms)
    if logic == "ppltl":
        at_last_label = trampoline(writer.holds(goal, "l"))
        empty = "e = 0" if terms.at_border[goal] else "false"
        body = f"((ex1 l: e = l + 1 & {at_last_label}) | {empty})"
    else:
        body = f"(ex1 s: s = 0 & {trampoline(writer.holds(goal, 's'))})"
    return f"ex1 e: (all1 z: z <= e) & {body}"


class _Writer:
    """Translation of terms to MONA's language."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._numbers = count()
        self._length = 0

    def holds(self, term: int, x: str) -> Steps[str]:
        """The MONA formula: the term holds at position x."""
        kind, left, right = self.terms[term]
        y, z = self._fresh("x"), self._fresh("x")
        match kind:
            case Kind.TRUE:
                text = "true"
            case Kind.HERE:
                text = f"{x} < e"
            case Kind.ATOM:
                text = f"{x} < e & {x} in P{left}"
            case Kind.NOT:
                text = f"~{yield self.holds(left, x)}"
            case Kind.AND | Kind.OR | Kind.IFF:
                sign = {Kind.AND: "&", Kind.OR: "|", Kind.IFF: "<=>"}[kind]
                f = yield self.holds(left, x)
                text = f"{f} {sign} {yield self.holds(right, x)}"
            case Kind.NEXT:
                f = yield self.holds(left, y)
                text = f"{x} < e & ex1 {y}: {y} = {x} + 1 & {y} < e & {f}"
            case Kind.YESTERDAY:
                text = f"ex1 {y}: {x} = {y} + 1 & {yield self.holds(left, y)}"
            case Kind.UNTIL:
                f, g = (yield self.holds(left, z)), (yield self.holds(right, y))
                before = f"all1 {z}: {x} <= {z} & {z} < {y} => {f}"
                text = f"ex1 {y}: {x} <= {y} & {y} < e & {g} & {before}"
            case Kind.SINCE:
                f, g = (yield self.holds(left, z)), (yield self.holds(right, y))
                after = f"all1 {z}: {y} < {z} & {z} <= {x} => {f}"
                text = f"ex1 {y}: {y} <= {x} & {g} & {after}"
            case _:  # DIAMOND
                goals = self._fresh("S")
                f = yield self.holds(right, y)
                leads = yield self.leads(left, x, goals)
                text = f"ex2 {goals}: (all1 {y}: {y} in {goals} <=> {f}) & {leads}"
        return self._bracketed(text)

    def leads(self, path: int, x: str, goals: str) -> Steps[str]:
        """The MONA formula: the path leads from position x into the set `goals`."""
        kind, left, right = self.terms[path]
        y, between = self._fresh("x"), self._fresh("S")
        match kind:
            case Kind.STEP:
                f = yield self.holds(left, x)
                text = f"{x} < e & {f} & ex1 {y}: {y} = {x} + 1 & {y} in {goals}"
            case Kind.TEST:
                text = f"{x} in {goals} & {yield self.holds(left, x)}"
            case Kind.ONE_OF:
                r = yield self.leads(left, x, goals)
                text = f"{r} | {yield self.leads(right, x, goals)}"
            case Kind.THEN:
                s = yield self.leads(right, y, goals)
                r = yield self.leads(left, x, between)
                text = f"ex2 {between}: (all1 {y}: {y} in {between} <=> {s}) & {r}"
            case _:  # STAR: the least fixed point, as the intersection of all closed sets
                r = yield self.leads(left, y, between)
                closed = f"all1 {y}: {y} in {goals} | {r} => {y} in {between}"
                text = f"all2 {between}: ({closed}) => {x} in {between}"
        return self._bracketed(text)

    def _fresh(self, letter: str) -> str:
        return f"{letter}{next(self._numbers)}"

    def _bracketed(self, text: str) -> str:
        self._length += len(text)
        if self._length > MAX_TEXT * 100 or len(text) > MAX_TEXT:
            raise SizeError(f"a formula of more than {MAX_TEXT} characters in MONA's language")
        return f"({text})"


def _read_table(table: str) -> Acceptor:
    """Parse MONA's table of an automaton, whose first letter precedes the labels."""
    head, rows = table.split("bdd:")
    fields = dict(re.findall(r"^([\w ]+):(.*)$", head, flags=re.MULTILINE))
    names = fields["variables"].split()
    final = [int(number) == 1 for number in fields["final"].split()]
    found = Transitions([], [], [], [])
    refs: list[int] = []  # [row]
    lines = [tuple(map(int, row.split())) for row in rows.strip().splitlines()[:-1]]
    for variable, state, _ in lines:
        refs.append(state_ref(state) if variable < 0 else len(found.var))
        if variable >= 0:
            found.var.append(int(names[variable].removeprefix("P")))
    for variable, low, high in lines:
        if variable >= 0:
            found.low.append(refs[low])
            found.high.append(refs[high])
    found.root.extend(refs[int(row)] for row in fields["behaviour"].split())
    start = found.follow(int(fields["initial"]), _all_false)
    accepting = [final[found.follow(state, _all_false)] for state in range(len(final))]
    return in_breadth_first_order(Acceptor(found, accepting), initial=start)


def _all_false(proposition: int) -> bool:
    del proposition
    return False
