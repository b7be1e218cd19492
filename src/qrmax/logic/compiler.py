"""From a formula to the smallest automaton that accepts exactly the traces it holds for."""

from __future__ import annotations

from qrmax.errors import SizeError, check_choice, check_count
from qrmax.logic.bdd import Diagrams
from qrmax.logic.dfa import DFA
from qrmax.logic.formula import Formula
from qrmax.logic.history import History
from qrmax.logic.lowering import term_of
from qrmax.logic.minimise import minimise
from qrmax.logic.progression import Progression
from qrmax.logic.symbolic import Symbolic, explore
from qrmax.logic.terms import Terms

MAX_STATES = 20_000
NODES_PER_STATE = 50
"""How much room for decision diagrams each allowed state brings along."""

BACKENDS = ("own", "mona")


def compile_formula(
    formula: str | Formula,
    logic: str = "ltlf",
    *,
    max_states: int = MAX_STATES,
    backend: str = "own",
) -> DFA:
    """The smallest complete DFA of a formula of "ltlf", "ldlf" or "ppltl".

    >>> dfa = compile_formula("F(coffee & F office) & G !hole")
    >>> dfa
    DFA(4 states over coffee, office, hole)
    >>> dfa.accepts([{"coffee"}, set(), {"office"}])
    True

    A formula whose automaton has more than `max_states` states on the way is refused with a
    `SizeError`. With `backend="mona"` the program MONA does the work, where it is installed.
    """
    check_choice("backend", backend, BACKENDS)
    check_count("max_states", max_states)
    if not isinstance(formula, Formula):
        formula = Formula.parse(formula, logic)
    try:
        terms = Terms()
        goal = term_of(formula, terms)
        if backend == "mona":
            from qrmax.logic.mona import run_mona  # seldom asked for

            acceptor = run_mona(terms, goal, formula, max_states)
        else:
            acceptor = explore(_automaton(formula, terms, goal, max_states), max_states)
    except SizeError as error:
        raise SizeError(
            f"the formula {str(formula)[:80]!r} needs {error}\n"
            f"  max_states is {max_states}: allow more, or say less in one formula"
        ) from error
    return DFA(formula.propositions, minimise(acceptor))


def _automaton(formula: Formula, terms: Terms, goal: int, max_states: int) -> Symbolic:
    diagrams = Diagrams(max_nodes=NODES_PER_STATE * max_states)
    kind = History if formula.logic == "ppltl" else Progression
    return kind(terms, goal, len(formula.propositions), diagrams)
