"""Compile temporal logic on finite traces to the minimal DFA of its language."""

from __future__ import annotations

from qrmax.errors import SizeError, check_choice, check_count
from qrmax.logic.bdd import Diagrams
from qrmax.logic.dfa import DFA
from qrmax.logic.formula import Formula
from qrmax.logic.history import History
from qrmax.logic.lowering import term_of
from qrmax.logic.minimise import minimise
from qrmax.logic.progression import Progression
from qrmax.logic.symbolic import SymbolicAutomaton, explore
from qrmax.logic.terms import Terms

MAX_STATES = 20_000
NODES_PER_STATE = 50
"""Decision-diagram nodes allowed per allowed state."""

BACKENDS = ("own", "mona")


def compile_formula(
    formula: str | Formula,
    logic: str = "ltlf",
    *,
    max_states: int = MAX_STATES,
    backend: str = "own",
) -> DFA:
    """Compile a formula of "ltlf", "ldlf" or "ppltl" to its minimal complete DFA.

    >>> dfa = compile_formula("F(coffee & F office) & G !hole")
    >>> dfa
    DFA(4 states over coffee, office, hole)
    >>> dfa.accepts([{"coffee"}, set(), {"office"}])
    True

    Args:
        formula: a `Formula`, or text to parse.
        logic: the logic that text is parsed in.
        max_states: bound on the states of the intermediate automaton; a `SizeError` beyond it.
        backend: "own", or "mona" to run the program MONA, which must be installed.
    """
    check_choice("backend", backend, BACKENDS)
    check_count("max_states", max_states)
    if not isinstance(formula, Formula):
        formula = Formula.parse(formula, logic)
    try:
        terms = Terms()
        goal = term_of(formula, terms)
        if backend == "mona":
            from qrmax.logic.mona import run_mona  # rarely used

            acceptor = run_mona(terms, goal, formula, max_states)
        else:
            acceptor = explore(_automaton(formula, terms, goal, max_states), max_states)
    except SizeError as error:
        raise SizeError(
            f"the formula {str(formula)[:80]!r} needs {error}\n"
            f"  max_states is {max_states}: raise it, or split the formula"
        ) from error
    return DFA(formula.propositions, minimise(acceptor))


def _automaton(formula: Formula, terms: Terms, goal: int, max_states: int) -> SymbolicAutomaton:
    diagrams = Diagrams(max_nodes=NODES_PER_STATE * max_states)
    kind = History if formula.logic == "ppltl" else Progression
    return kind(terms, goal, len(formula.propositions), diagrams)
