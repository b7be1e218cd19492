"""The clock of learners that revise their estimates: timed replanning, and a growing threshold.

    t_min(t)   t_min, and one more each time that the number of steps t doubles from `growth` on
    due        the next timed replanning: max(100, 0.02 t) steps after the last

As the threshold grows without end, no state-action pair is judged for ever by its first samples.
"""

from __future__ import annotations

EVERY = 100  # steps between timed replannings, at least
SHARE = 0.02  # of the steps so far, if that is more


def threshold_at(t: int, t_min: int, growth: int | None) -> int:
    """The samples before a state-action pair counts as known, after t steps.

    Without `growth`, that stays `t_min`.

    >>> [threshold_at(t, 3, 10_000) for t in (0, 9_999, 10_000, 20_000, 39_999, 40_000)]
    [3, 3, 4, 5, 5, 6]
    """
    return t_min if growth is None else t_min + (t // growth).bit_length()


def next_due(t: int, growth: int | None, every: int | None = None) -> int:
    """The time of the next timed replanning: no later than the threshold grows.

    `every` is the number of steps between two, if it is fixed.

    >>> next_due(0, 10_000), next_due(9_950, 10_000), next_due(10_000, 10_000)
    (100, 10000, 10200)
    """
    due = t + (max(EVERY, int(SHARE * t)) if every is None else every)
    return due if growth is None else min(due, growth << (t // growth).bit_length())
