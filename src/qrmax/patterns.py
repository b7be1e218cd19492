"""Common task patterns, as formulas of LTLf.

    >>> from qrmax import patterns
    >>> task = patterns.in_order("mail", "coffee", "office") & patterns.avoid("plant")
    >>> print(task)
    F(mail & F(coffee & F office)) & G !plant

A formula is accepted wherever a task is: `qrmax.make("office/map1", task=task)`,
`qrmax.TaskWrapper(env, task, labels=...)`, `qrmax.RewardMachine.from_ltlf(task)`. Formulas are
combined by `&`, `|` and `~` (not).

An event is the name of a proposition, or a condition: `Guard.parse("coffee & !mail")`, a `Formula`.
A trace is the sequence of labels of an episode, beginning with that of the start state. Events may
occur at the same label unless a pattern says otherwise.
"""

from __future__ import annotations

from functools import reduce

from qrmax.errors import ParameterError, check_count, check_flag, shown
from qrmax.logic.formula import VOCABULARY, Formula
from qrmax.logic.guards import Guard, is_proposition, written

LOGIC = "ltlf"
MAX_TIMES = 1000  # a formula grows with the number of times
_SIGNS = frozenset('!&|()<>~"')
_WORDS = VOCABULARY[LOGIC]

Event = str | Guard | Formula


def reach(event: Event) -> Formula:
    """Reach an event: it occurs at least once.

    >>> print(reach("goal"))
    F goal
    """
    return _finally(_event(event))


def in_order(*events: Event, strict: bool = False) -> Formula:
    """Visit these events in order, with anything in between.

    Args:
        *events: propositions or conditions.
        strict: whether each must occur at a later label than the one before.

    >>> print(in_order("mail", "coffee", "office"))
    F(mail & F(coffee & F office))
    >>> print(in_order("mail", "coffee", strict=True))
    F(mail & X F coffee)
    """
    check_flag("strict", strict)
    *first, last = _events(events)
    formula = _finally(last)
    for event in reversed(first):
        formula = _finally(event & (_unary(formula, "X") if strict else formula))
    return formula


def any_order(*events: Event) -> Formula:
    """Visit all of these events, in any order.

    >>> print(any_order("mail", "coffee"))
    F mail & F coffee
    """
    return _all(map(_finally, _events(events)))


def never_before(event: Event, first: Event) -> Formula:
    """Forbid `event` until `first` has occurred; neither needs to occur.

    >>> print(never_before("office", "coffee"))
    !office W coffee
    """
    return _binary(~_event(event), _event(first), "W")


def avoid(*events: Event) -> Formula:
    """Avoid all of these events, always.

    >>> print(avoid("plant"), "and", avoid("plant", "hole"))
    G !plant and G !(plant | hole)
    """
    return _unary(~reduce(Formula.__or__, _events(events)), "G")


def avoid_until(event: Event, goal: Event) -> Formula:
    """Reach `goal`, and avoid `event` until then.

    >>> print(avoid_until("plant", "office"))
    !plant U office
    """
    return _binary(~_event(event), _event(goal), "U")


def always(event: Event) -> Formula:
    """Maintain a condition at every label.

    >>> print(always("dry"))
    G dry
    """
    return _unary(_event(event), "G")


def respond(trigger: Event, response: Event) -> Formula:
    """Follow each occurrence of a trigger by a response, at the same label or later.

    >>> print(respond("call", "answer"))
    G(call -> F answer)
    """
    return _unary(_binary(_event(trigger), _finally(_event(response)), "->"), "G")


def at_least(times: int, event: Event, *, separate: bool = False) -> Formula:
    """Make an event occur at least n times, that is, at n labels of the trace.

    Args:
        times: n.
        event: a proposition or condition.
        separate: count visits instead of labels: the event must cease to hold between two visits.

    >>> print(at_least(2, "coffee"))
    F(coffee & X F coffee)
    >>> print(at_least(2, "coffee", separate=True))
    F(coffee & F(!coffee & F coffee))
    """
    check_count("times", times)
    check_flag("separate", separate)
    if times > MAX_TIMES:
        raise ParameterError(f"times is {times}; allowed: 1 to {MAX_TIMES}")
    wanted = _event(event)
    formula = _finally(wanted)
    for _ in range(times - 1):
        later = _finally(~wanted & formula) if separate else _unary(formula, "X")
        formula = _finally(wanted & later)
    return formula


def at_most(times: int, event: Event, *, separate: bool = False) -> Formula:
    """Make an event occur at most n times, counted as in `at_least`.

    >>> print(at_most(1, "coffee"))
    !F(coffee & X F coffee)
    """
    check_count("times", times)
    return ~at_least(times + 1, event, separate=separate)


def exactly(times: int, event: Event, *, separate: bool = False) -> Formula:
    """Make an event occur exactly n times, counted as in `at_least`.

    >>> print(exactly(1, "coffee"))
    F coffee & !F(coffee & X F coffee)
    """
    return at_least(times, event, separate=separate) & at_most(times, event, separate=separate)


def _event(event: Event) -> Formula:
    """An event as a formula."""
    if isinstance(event, Formula):
        if event.logic != LOGIC:
            raise ParameterError(f"{event!r} is a formula of {event.logic}; needed: one of {LOGIC}")
        return event
    if isinstance(event, Guard):
        return Formula.parse(str(event), LOGIC)
    if not isinstance(event, str) or not is_proposition(event):
        raise ParameterError(
            f"an event is {shown(event)}; allowed: the name of a proposition, a Guard, a Formula"
        )
    if _SIGNS.intersection(event):
        raise ParameterError(
            f"an event is {shown(event)}, which is not the name of a proposition; "
            f"a condition is qrmax.Guard.parse({shown(event)})"
        )
    reserved = _WORDS.constants | _WORDS.prefix | _WORDS.binary
    return Formula.parse(written(event, reserved), LOGIC)


def _events(events: tuple[Event, ...]) -> list[Formula]:
    if not events:
        raise ParameterError("no event is given; needed: at least one, such as 'coffee'")
    return [_event(event) for event in events]


def _unary(formula: Formula, operator: str) -> Formula:
    return Formula(LOGIC, (*formula.postfix, operator))


def _binary(left: Formula, right: Formula, operator: str) -> Formula:
    return Formula(LOGIC, (*left.postfix, *right.postfix, operator))


def _finally(formula: Formula) -> Formula:
    return _unary(formula, "F")


def _all(formulas: map[Formula]) -> Formula:
    return reduce(Formula.__and__, formulas)
