"""The schedule of evaluations: evenly spaced at first, then ever rarer as training goes on.

    every   steps between two evaluations at first
    dense   the number of evaluations before the spacing doubles, and doubles again each time that
            the number of steps does; None: never

All lie on multiples of `every`, and whether there is one is a function of the step alone: a run
that is interrupted and resumed has the same ones. After the first `dense` evaluations, two are at
most 2 / dense of the steps so far apart.
"""

from __future__ import annotations


def spacing(number: int, dense: int | None) -> int:
    """The spacing around the multiple of that number.

    >>> [spacing(number, 50) for number in (1, 50, 51, 100, 101)]
    [1, 1, 2, 2, 4]
    """
    found = 1
    while dense is not None and number > dense * found:
        found *= 2
    return found


def is_check(step: int, every: int, dense: int | None = None) -> bool:
    """Whether the policy is evaluated after so many steps.

    >>> [step for step in range(1, 101) if is_check(step, 10, 4)]
    [10, 20, 30, 40, 60, 80]
    """
    number, rest = divmod(step, every)
    return step > 0 and rest == 0 and number % spacing(number, dense) == 0


def next_check(step: int, every: int, dense: int | None = None) -> int:
    """The first step after this one at which the policy is evaluated.

    >>> next_check(0, 10, 4), next_check(40, 10, 4), next_check(63, 10, 4)
    (10, 60, 80)
    """
    number = step // every + 1
    apart = spacing(number, dense)
    return -(-number // apart) * apart * every


def check_before(step: int, every: int, dense: int | None = None) -> int:
    """The check before the one at this step; 0 before the first.

    >>> check_before(10, 10, 4), check_before(60, 10, 4), check_before(40, 10, 4)
    (0, 40, 30)
    """
    number = -(-step // every)
    apart = spacing(number, dense)
    denser = 0 if dense is None or apart == 1 else dense * apart // 2  # the last before it doubled
    return max(0, number - apart, denser) * every
