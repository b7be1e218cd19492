"""Thresholds, sample bounds and memory that the paper proves, as numbers.

|S|, |A| and |Q| count world states, actions and task states. All one-step rewards lie in
[0, R_max], and V_max = R_max / (1 - gamma).

Thresholds (Lemma A.1, Factored Accuracy). With beta = epsilon (1 - gamma) / 4, the rewards of known
components are to be known up to beta and their transitions, in l1 distance, up to beta / R_max. For
N components, each with n outcomes, the proof has two thresholds:

    hoeffding   for rewards, as printed:  m = ceil(8 R_max^2 / beta^2  ln(2 N / delta))
    weissman    for transitions: the least m with 2^n exp(-m beta^2 / (2 R_max^2)) <= delta / (2 N),
                that is  m = ceil(2 R_max^2 / beta^2  (n ln 2 + ln(2 N / delta)))

    m_E of pairs (s, a):                     N = |S||A|      n = |S|
    m_Q of pairs (q, s'):                    N = |S||Q|      n = |Q|     m_Q = 1 if deterministic
    m of R-Max on the product (s, q, a):     N = |S||Q||A|   n = |S||Q|  our reading: m is left open

Bounds (Theorem A.3, PAC-MDP Bound). The steps on which the policy is not epsilon-optimal are, with
probability 1 - delta, at most O((H U / p) ln(U / delta)); the constant in O(.) is taken as 1 here:

    H = ceil(ln(2 R_max / (epsilon (1 - gamma))) / (1 - gamma))
    p = epsilon (1 - gamma) / (2 R_max)
    U = |S||A| m_E + |S||Q| m_Q     QR-Max
    U = |S||Q||A| m                 R-Max

Buckets (theorem Conditional PAC-MDP Bound for Bucket-QR-Max). |S| becomes |B|, the number of
buckets, and beta = epsilon (1 - gamma) / 8; both thresholds are `hoeffding`, and since rewards and
transitions are counted apart, U = 2 (|B||A| m_E + |B||Q| m_Q). No bucket may be wider than
c beta / L, where L is the Lipschitz constant of the world.

Where the paper does not agree with itself; the functions compute what it states:

1. The two thresholds are called similar, yet only `weissman` grows with n. It suffices for rewards
   and transitions; `hoeffding` does not for transitions where n ln 2 > 3 ln(2 N / delta), so
   from some 40 states on. It is, on the other hand, 16 times what Hoeffding's inequality needs.
2. Four families of events at delta / 2 each make 2 delta, not delta. With a deterministic machine
   two of them are certain, and delta is right.
3. Section 4.2 asks for 2 (xi_R + gamma V_max (xi_E + xi_Q)) / (1 - gamma) <= epsilon, which the
   accuracy of Lemma A.1 does not reach: transitions would have to be known 1 / (1 - gamma) times
   better, with 1 / (1 - gamma)^2 as many samples. `Bound.value_error` is what is reached; it is
   proportional to epsilon, so whoever wants that promise asks for a smaller epsilon.
4. The table of memory and samples: 225 x 4 x 250^3 is 1.4e10, where 3.5e12 is printed (which is
   250^4), so that the advantage in samples is 5e6 and not 1e9. UCBVI's memory is H |S|^2 |A| there
   and |S|^2 |A| under Related Work. The samples of QR-Max leave out m_E, which by `weissman` has
   another |S| in it. QR-Max and R-Max pay for the task states; UCBVI, PSRL and OPSRL do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from qrmax.errors import check_choice, check_count, check_range

Concentration = Literal["hoeffding", "weissman"]
CONCENTRATIONS: tuple[Concentration, ...] = ("hoeffding", "weissman")

# The paper has no bounds for the RM variants, but those of the plain ones hold: knowing the machine
# adds true samples, and counts a real one at most once for each pair.
BOUND_OF = {"rmax": "R-Max", "rmax-rm": "R-Max", "qrmax": "QR-Max", "qrmax-rm": "QR-Max"}
"""The learner whose bound holds for an agent of this library, by the agent's name."""

# beta is epsilon (1 - gamma) divided by this.
DISCRETE = 4
BUCKETS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The size of a problem: |S|, |A| and |Q|; for bucket agents, states are buckets."""

    states: int
    actions: int
    task_states: int

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_count(name, getattr(self, name))

    @property
    def pairs(self) -> int:
        """|S||A|, the state-action pairs of the environment."""
        return self.states * self.actions

    @property
    def arrivals(self) -> int:
        """|S||Q|, the pairs of the machine: states it is in and states it reads."""
        return self.states * self.task_states

    @property
    def triples(self) -> int:
        """|S||Q||A|, the state-action pairs of the product MDP."""
        return self.arrivals * self.actions


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """A PAC requirement: epsilon-optimal with probability 1 - delta.

    >>> goal = Goal(epsilon=0.1, delta=0.05, gamma=0.9)
    >>> goal.horizon, round(goal.escape_probability, 6)
    (53, 0.005)
    """

    epsilon: float
    delta: float
    gamma: float = 0.9
    r_max: float = 1.0

    def __post_init__(self) -> None:
        check_range("gamma", self.gamma, above=0.0, below=1.0)
        check_range("delta", self.delta, above=0.0, below=1.0)
        check_range("r_max", self.r_max, above=0.0, below=math.inf)
        v_max = float(f"{self.r_max / (1.0 - self.gamma):.12g}")  # 10, not 10.000000000000002
        # From V_max on any policy will do, and neither H nor p makes sense.
        check_range("epsilon", self.epsilon, above=0.0, below=v_max)

    @property
    def horizon(self) -> int:
        """H, the steps after which discounting leaves less than epsilon / 2."""
        log_v_max = math.log(self.r_max) - math.log1p(-self.gamma)  # V_max itself may overflow
        return math.ceil((math.log(2.0) + log_v_max - math.log(self.epsilon)) / (1.0 - self.gamma))

    @property
    def escape_probability(self) -> float:
        """p: unless epsilon-optimal, the policy reaches an unknown pair within H steps with p."""
        return float(_escape_probability(self))

    @property
    def beta(self) -> float:
        """The accuracy required of rewards; of transitions it is `beta / r_max`."""
        return _beta(self, DISCRETE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The thresholds that the theory requires and the guarantee that it gives."""

    t_env: int  # m_E: samples before (s, a) is known; before (s, q, a) for R-Max
    t_task: int | None  # m_Q: samples before (q, s') is known; None for R-Max, which has none
    unknown: int  # U: samples until everything is known, at most
    steps: int  # (H U / p) ln(U / delta): the steps that may not be epsilon-optimal
    value_error: float  # on the others, by Section 4.2: mostly more than epsilon


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A row of the paper's table of memory and samples, with this library's memory."""

    name: str
    paper_entries: int  # of dense arrays
    paper_samples: int | None  # without the factors in epsilon and gamma; None: no such bound
    our_entries: int  # of successor lists


def qrmax_bound(
    sizes: Sizes,
    goal: Goal,
    *,
    concentration: Concentration = "weissman",
    deterministic: bool = True,
) -> Bound:
    """The thresholds and the bound of QR-Max; `deterministic` refers to the machine.

    >>> sizes = Sizes(states=225, actions=4, task_states=8)
    >>> bound = qrmax_bound(sizes, Goal(epsilon=0.1, delta=0.05))
    >>> bound.t_env, bound.t_task, bound.unknown
    (53263805, 1, 47937426300)
    """
    t_env = _threshold(goal, sizes.pairs, sizes.states, concentration)
    t_task = (
        1 if deterministic else _threshold(goal, sizes.arrivals, sizes.task_states, concentration)
    )
    unknown = sizes.pairs * t_env + sizes.arrivals * t_task
    return _bound(goal, t_env, t_task, unknown, _value_error(goal, factors=2 - deterministic))


def rmax_bound(sizes: Sizes, goal: Goal, *, concentration: Concentration = "weissman") -> Bound:
    """The threshold and the bound of R-Max on the product of world and task."""
    t_env = _threshold(goal, sizes.triples, sizes.arrivals, concentration)
    return _bound(goal, t_env, None, sizes.triples * t_env, _value_error(goal, factors=0))


def bucket_bound(sizes: Sizes, goal: Goal) -> Bound:
    """The thresholds and the bound of Bucket-QR-Max, where `sizes.states` counts the buckets.

    Each threshold holds for the counter of rewards and for that of transitions. What the buckets
    blur comes on top of the `value_error`: none may be wider than `bucket_diameter`.
    """
    t_env = _threshold(goal, sizes.pairs, sizes.states, "hoeffding", BUCKETS)
    t_task = _threshold(goal, sizes.arrivals, sizes.task_states, "hoeffding", BUCKETS)
    unknown = 2 * (sizes.pairs * t_env + sizes.arrivals * t_task)
    return _bound(goal, t_env, t_task, unknown, _value_error(goal, factors=2, part=BUCKETS))


def bucket_diameter(goal: Goal, lipschitz: float) -> float:
    """The largest bucket diameter, c beta / L; the theorem leaves c open, here it is 1."""
    check_range("lipschitz", lipschitz, above=0.0, below=math.inf)
    return _beta(goal, BUCKETS) / lipschitz


def comparison(sizes: Sizes, *, horizon: int, successors: int) -> tuple[Method, ...]:
    """The paper's table of memory and samples, with what this library stores beside it.

    `horizon` is the length of episodes, which is not the H of the bounds; `successors` is the most
    that any action has. What the library stores is |S||A|k + |S||Q| for QR-Max and |S||Q||A|k for
    R-Max; both keep a value for each (s, q, a) besides, as QRM does, which the paper leaves out.
    For UCBVI, PSRL and OPSRL it is |S||Q||A|k + H|S||Q|; the models they plan with have that first
    size, too, OPSRL's once for each of its draws.
    """
    check_count("horizon", horizon)
    check_count("successors", successors)
    dense = sizes.states * sizes.pairs  # |S|^2 |A|
    return (
        Method(
            name="QR-Max",
            paper_entries=dense + sizes.arrivals,
            paper_samples=sizes.pairs + sizes.arrivals,
            our_entries=sizes.pairs * successors + sizes.arrivals,
        ),
        Method(
            name="UCBVI",
            paper_entries=horizon * dense,
            paper_samples=sizes.pairs * horizon**3,
            our_entries=sizes.triples * successors + horizon * sizes.arrivals,
        ),
        Method(
            name="PSRL, OPSRL",
            paper_entries=horizon * dense,
            paper_samples=None,
            our_entries=sizes.triples * successors + horizon * sizes.arrivals,
        ),
        Method(
            name="R-Max",
            paper_entries=dense * sizes.task_states**2,
            paper_samples=sizes.triples,
            our_entries=sizes.triples * successors,
        ),
        Method(
            name="QRM", paper_entries=sizes.triples, paper_samples=None, our_entries=sizes.triples
        ),
    )


def _threshold(
    goal: Goal, components: int, outcomes: int, concentration: str, part: int = DISCRETE
) -> int:
    """The samples after which each of the components is known accurately enough."""
    check_choice("concentration", concentration, CONCENTRATIONS)
    log_events = math.log(2 * components) - math.log(goal.delta)
    if concentration == "hoeffding":
        factor, exponent = 8, log_events
    else:
        factor, exponent = 2, outcomes * math.log(2.0) + log_events
    # Fractions neither overflow nor vanish, however small epsilon is.
    ratio = part * Fraction(float(goal.r_max)) / _slack(goal)  # R_max / beta
    return math.ceil(factor * ratio**2 * Fraction(exponent))


def _bound(goal: Goal, t_env: int, t_task: int | None, unknown: int, value_error: float) -> Bound:
    log_failure = math.log(unknown) - math.log(goal.delta)
    steps = goal.horizon * unknown / _escape_probability(goal) * Fraction(log_failure)
    return Bound(
        t_env=t_env,
        t_task=t_task,
        unknown=unknown,
        steps=math.ceil(steps),
        value_error=value_error,
    )


def _value_error(goal: Goal, *, factors: int, part: int = DISCRETE) -> float:
    """2 (xi_R + gamma V_max (xi_E + xi_Q)) / (1 - gamma), given how many factors are estimated.

    With 0 factors it is the product that is estimated. Each estimate adds beta to xi_R and
    beta / R_max to xi_E + xi_Q; with factors another beta comes to xi_R, since the machine's reward
    is expected over the estimated successors.
    """
    rewards = factors + 1  # xi_R / beta
    transitions = max(factors, 1)  # (xi_E + xi_Q) R_max / beta
    error = rewards + goal.gamma * transitions / (1.0 - goal.gamma)
    return 2.0 * _beta(goal, part) * error / (1.0 - goal.gamma)


def _beta(goal: Goal, part: int) -> float:
    return goal.epsilon * (1.0 - goal.gamma) / part


def _escape_probability(goal: Goal) -> Fraction:
    return _slack(goal) / (2 * Fraction(float(goal.r_max)))


def _slack(goal: Goal) -> Fraction:
    """The epsilon of a single step, epsilon (1 - gamma)."""
    return Fraction(float(goal.epsilon)) * (1 - Fraction(float(goal.gamma)))
