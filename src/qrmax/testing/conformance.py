"""The promises that every agent keeps, whatever its algorithm, each as a check of a class.

A check raises an `AgentError` that names the promise and says how it is broken.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from qrmax.agents.base import Agent
from qrmax.agents.compiled import has_compiled_loop
from qrmax.agents.declaration import check_declared
from qrmax.agents.outside import checked_policy
from qrmax.agents.registry import AgentLike, agent_class, make_config
from qrmax.errors import AgentError, ParameterError, QRMaxError, UnknownNameError
from qrmax.outside_errors import described, note_module, raised_outside
from qrmax.planning.policy_evaluation import evaluate
from qrmax.planning.value_iteration import solve
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.testing.trial import Trial, make_trial
from qrmax.testing.trial_problems import cut_short, dead_end, fetch, scattered
from qrmax.worlds.catalog import make

STEPS = 120
LONG = 3000  # steps that suffice to learn three states
BROUGHT = 0.8  # of the optimal start value, from transitions of a random policy

NO_LEARNER = (
    "; of an agent that does not learn at all, leave_out 'truncation', 'termination' and "
    "'any policy'"
)

Check = Callable[["_Subject"], None]
_CHECKS: dict[str, Check] = {}


def check_agent(
    agent: AgentLike,
    *,
    settings: Mapping[str, Any] | None = None,
    leave_out: Iterable[str] = (),
) -> None:
    """Raise an `AgentError` unless a class of agents keeps the contract.

    An agent that declares `on_policy = True` is not asked to learn from the actions of another
    policy, which on-policy learners cannot.

    Args:
        agent: the class, its name, or `module:Class`.
        settings: with which a few thousand steps are enough to learn a problem of three states; by
            default the `quick_settings` of the class.
        leave_out: names of promises (`promise_names()`) that this agent does not make.
    """
    names = [*leave_out]
    for name in names:
        if name not in _CHECKS:
            raise UnknownNameError("promise", str(name), _CHECKS)
    kind = agent_class(agent)
    kind.check_installed()
    note_module(kind.__module__)
    subject = _Subject(kind, {**kind.quick_settings, **(settings or {})})
    for name, check in _CHECKS.items():
        if name not in names:
            _check(subject, name, check)


def promise_names() -> list[str]:
    """The names of all promises, in the order in which they are checked."""
    return list(_CHECKS)


def _check(subject: _Subject, name: str, check: Check) -> None:
    broken = f"{subject.where} breaks the promise {name!r}"
    try:
        check(subject)
    except _BrokenError as error:
        raise AgentError(f"{broken} ({check.__doc__}): {error}") from None
    except QRMaxError as error:
        raise AgentError(f"{broken} ({check.__doc__}): {error}") from error
    except Exception as error:  # whatever code from outside raises
        if (raised := raised_outside(error)) is not None:
            raise AgentError(f"{raised}\n  while checking the promise {name!r}") from error
        raise AgentError(f"{broken} ({check.__doc__}): raised {described(error)}") from error


class _BrokenError(Exception):
    """A promise is broken."""


def _promise(name: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        _CHECKS[name] = check
        return check

    return add


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _BrokenError(otherwise)


@dataclasses.dataclass(frozen=True)
class _Subject:
    """A class to be checked, and the problem that it is checked on."""

    kind: type[Agent]
    settings: Mapping[str, Any]

    @property
    def where(self) -> str:
        return f"{self.kind.__module__}:{self.kind.__qualname__}"

    def problem(self) -> Problem | ContinuousProblem:
        if self.kind.perceives:
            plane: ContinuousProblem = make("continuous/line/ab", max_episode_steps=15)
            return plane
        return fetch()

    def trial(self, problem: Problem | None = None, seed: int = 7) -> Trial:
        return make_trial(
            self.kind,
            self.problem() if problem is None else problem,
            seed=seed,
            settings=self.settings,
        )


# --- what it declares


@_promise("declaration")
def _declared(subject: _Subject) -> None:
    """A class declares its name, its facts and its Config, and defines what it has to."""
    check_declared(subject.kind)


@_promise("settings")
def _settings_are_checked(subject: _Subject) -> None:
    """Settings are plain data, frozen, and refused when they are out of range."""
    config = make_config(subject.kind, subject.settings)
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    try:
        again = json.loads(json.dumps(values))
    except (TypeError, ValueError) as error:
        raise _BrokenError(f"Config is not plain data: {error}") from error
    _require(subject.kind.Config(**again) == config, f"{config} changes when it is saved and read")
    for gamma in (0.0, 1.5, float("nan"), "0.9"):
        try:
            make_config(subject.kind, {"gamma": gamma})
        except ParameterError:
            continue
        raise _BrokenError(
            f"gamma={gamma!r} is accepted; call AgentConfig.__post_init__(self) in __post_init__"
        )
    try:
        object.__getattribute__(config, "__setattr__")("gamma", 0.5)
    except AttributeError:  # dataclasses.FrozenInstanceError among them
        return
    raise _BrokenError("Config is not frozen; decorate it with @dataclass(frozen=True, ...)")


# --- what it does


@_promise("construction")
def _is_made(subject: _Subject) -> None:
    """An agent is made from sizes, a config, a stream and experience, and keeps them."""
    subject.trial()


@_promise("saving")
def _can_be_saved(subject: _Subject) -> None:
    """The attributes of an agent can be saved: arrays and numbers, or by its own snapshot."""
    subject.trial().agent.snapshot()


@_promise("actions")
def _acts_in_range(subject: _Subject) -> None:
    """Actions are whole numbers from 0 to |A| - 1."""
    trial = subject.trial()
    actions = trial.agent.sizes.actions
    for _ in range(STEPS):
        simulator = trial.simulator
        if simulator.over:
            simulator.reset()
            trial.agent.begin_episode(simulator.s, simulator.q)
        a: Any = trial.agent.act(simulator.s, simulator.q)
        whole = isinstance(a, int | np.integer) and not isinstance(a, bool)
        _require(
            whole and 0 <= a < actions,
            f"act({simulator.s}, {simulator.q}) returned {a!r}; allowed: 0 to {actions - 1}",
        )
        trial.step(int(a))


@_promise("policy")
def _policy_fits(subject: _Subject) -> None:
    """The policy has an action for every state, and to ask for it changes nothing."""
    trial = subject.trial()
    for _ in range(3):
        before = trial.state()
        policy, again = checked_policy(trial.agent), checked_policy(trial.agent)
        if isinstance(policy, np.ndarray):
            _check_table(policy, trial.agent)
            _require(np.array_equal(policy, again), "asked twice, it gives two policies")
        else:
            _check_actions(policy, trial)
        _require(trial.state() == before, "it changes what is learned, or draws from the stream")
        trial.play(STEPS // 3)


def _check_table(policy: Any, agent: Agent) -> None:
    fits = policy.ndim in (2, 3) and policy.shape[-2:] == agent.sizes[:2]
    _require(
        fits and policy.dtype.kind in "iu",
        f"it is an array of {policy.dtype} of shape {policy.shape}; needed: whole numbers of shape "
        f"{tuple(agent.sizes[:2])}",
    )
    _require(
        bool((policy >= 0).all() and (policy < agent.sizes.actions).all()),
        f"it has actions from {policy.min()} to {policy.max()}, of {agent.sizes.actions}",
    )


def _check_actions(policy: Any, trial: Trial) -> None:
    simulator: Any = trial.simulator
    a = policy.action(simulator.observation(), 0, 0)
    _require(
        isinstance(a, int | np.integer) and 0 <= int(a) < trial.agent.sizes.actions,
        f"action(observation, 0, 0) returned {a!r}",
    )


@_promise("determinism")
def _same_seed_same_run(subject: _Subject) -> None:
    """The same seed gives the same run; all chance comes from the agent's own stream."""
    states = []
    global_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        for other_chance in (1, 2):
            random.seed(other_chance)
            np.random.seed(other_chance)  # noqa: NPY002 (an agent might use it)
            states.append(subject.trial().play(STEPS).state())
    finally:
        random.setstate(global_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
    _require(
        states[0] == states[1],
        f"two runs with one seed differ in {_difference(*states)}; draw from self.rng only",
    )


@_promise("inputs")
def _leaves_its_inputs_alone(subject: _Subject) -> None:
    """An agent does not change its sizes' meaning, its config, or the observations it is shown."""
    trial = subject.trial()
    simulator: Any = trial.simulator
    config, actions = trial.agent.config, trial.agent.sizes[1:]
    before = [array.copy() for array in _arrays_of(simulator.problem)]
    trial.play(STEPS)
    _require(trial.agent.config is config, "it has replaced its config")
    _require(trial.agent.sizes[1:] == actions, "it has changed the sizes of the problem")
    after = _arrays_of(simulator.problem)
    _require(
        all(np.array_equal(one, other) for one, other in zip(before, after, strict=True)),
        "it has changed the problem",
    )
    if subject.kind.perceives:
        seen = np.array(simulator.observation(), dtype=np.float64)
        shown = seen.copy()
        trial.agent.perceive(shown, 0)
        _require(np.array_equal(seen, shown), "perceive() has changed the observation")


def _arrays_of(problem: Any) -> list[Any]:
    if isinstance(problem, Problem):
        return [problem.mdp.succ, problem.mdp.prob, problem.mdp.reward, problem.label]
    return [problem.label, problem.terminal, problem.plane.wall]


# --- what it keeps


@_promise("snapshot")
def _is_saved_and_restored(subject: _Subject) -> None:
    """A snapshot is a copy, and an agent restored from it goes on just as the original does."""
    _check_snapshots(subject, None)
    if not subject.kind.perceives:
        _check_snapshots(subject, scattered())  # where tables by successor have to grow


def _check_snapshots(subject: _Subject, problem: Problem | None) -> None:
    for steps in (0, 1, 37, STEPS - 11):  # in the middle of an episode, too
        original = subject.trial(problem).play(steps)
        kept = original.agent.snapshot()
        for name, array in kept.items():
            plain = isinstance(name, str) and isinstance(array, np.ndarray)
            _require(
                plain and array.dtype.kind in "biufc",
                f"snapshot()[{name!r}] is {type(array).__name__}, not an array of numbers",
            )
        as_kept = {name: array.tobytes() for name, array in kept.items()}
        copy = original.resumed(subject.trial(problem, seed=99).agent)
        _require(
            copy.state() == original.state(),
            f"after {steps} steps, restore() leaves out "
            f"{_difference(copy.state(), original.state())}",
        )
        original.play(STEPS)
        copy.play(STEPS)
        _require(
            copy.state() == original.state(),
            f"restored after {steps} steps, it continues differently: "
            f"{_difference(copy.state(), original.state())}",
        )
        _require(
            as_kept == {name: array.tobytes() for name, array in kept.items()},
            "a snapshot changes as the agent learns; return copies",
        )


@_promise("counts")
def _counts_make_sense(subject: _Subject) -> None:
    """Known pairs are at most all pairs, and no more steps are counted than were taken."""
    trial = subject.trial()
    for _ in range(4):
        known = trial.agent.known()
        steps = 0 if known is None else known.pairs
        _require(known is None or 0 <= steps <= known.of, f"known() returned {known}")
        trial.play(STEPS // 4)
    _require(
        0 <= trial.agent.samples <= STEPS,
        f"samples is {trial.agent.samples} after {STEPS} steps",
    )


# --- what it learns from


@_promise("truncation")
def _truncation_is_no_end(subject: _Subject) -> None:
    """Truncation is not termination: the value of the state that was reached still counts."""
    if subject.kind.perceives:
        return
    policy = _learned(subject, cut_short())
    _require(
        policy[0, 0] == 1,
        "if an episode is truncated after the better action, it prefers a small immediate reward; "
        f"bootstrap unless step.terminated, whatever step.truncated says{NO_LEARNER}",
    )


@_promise("termination")
def _termination_is_the_end(subject: _Subject) -> None:
    """Termination is the end: nothing is expected of the state that was reached."""
    if subject.kind.perceives:
        return
    policy = _learned(subject, dead_end())
    _require(
        policy[0, 0] == 1,
        "it prefers an action that ends the episode without reward; do not bootstrap if "
        f"step.terminated{NO_LEARNER}",
    )


def _learned(subject: _Subject, problem: Problem) -> Any:
    """The policy learned in a problem of a few states; that of the first stage."""
    trial = subject.trial(problem)
    trial = trial.rush(LONG) if has_compiled_loop(subject.kind) else trial.play(LONG)
    policy = checked_policy(trial.agent)
    return policy if policy.ndim == 2 else policy[0]


@_promise("any policy")
def _learns_from_any_policy(subject: _Subject) -> None:
    """Off-policy learners learn a good policy from the transitions of a random one."""
    if subject.kind.on_policy or subject.kind.perceives:
        return
    problem = fetch(slip=0.0)
    trial, chance = subject.trial(problem), random.Random(3)
    for _ in range(LONG):
        trial.step(chance.randrange(problem.n_actions))
    policy = checked_policy(trial.agent)
    gamma = min(trial.agent.config.gamma, 0.99)  # that of an agent with a horizon may be 1
    found = evaluate(problem, policy, gamma).start_value
    best = solve(problem, gamma).start_value
    _require(
        found >= BROUGHT * best,
        f"its policy has the start value {found:.3g}, of {best:.3g}; declare on_policy = True if "
        "it learns the value of the policy that it follows",
    )


@_promise("ignorance")
def _does_not_need_the_machine(subject: _Subject) -> None:
    """An agent that does not declare knows_machine = True does not look at the machine."""
    if subject.kind.knows_machine:
        return
    told, blind = subject.trial(), subject.trial()
    vars(blind.agent.experience).clear()  # nothing of the problem is in there
    told.play(STEPS)
    blind.play(STEPS)
    _require(told.state() == blind.state(), "it depends on more than its transitions")


@_promise("two speeds")
def _compiled_is_python(subject: _Subject) -> None:
    """The compiled loop does what the Python methods say, bit for bit."""
    if not has_compiled_loop(subject.kind):
        return
    for steps, chunks in ((1, [1]), (STEPS, [7, 40]), (3 * STEPS, [10_000])):
        slow, fast = subject.trial().play(steps), subject.trial().rush(steps, chunks)
        _require(
            slow.state() == fast.state(),
            f"after {steps} steps they differ in {_difference(slow.state(), fast.state())}",
        )


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The parts in which two states of a trial differ."""
    names = {"simulator": "the trajectory", "world": "the world's stream", "agent": "its stream"}
    differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return ", ".join(names.get(key, repr(key)) for key in differing)
