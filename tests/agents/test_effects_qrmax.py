"""Laws of displacement, obstacles and labels on real-valued observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import qrmax
from gym_worlds import in_order
from qrmax.agents.continuous.displacement_laws import features_of, fit_law, noise_points
from qrmax.agents.continuous.effect_model import EffectModel
from qrmax.agents.continuous.effects_qrmax import EffectsQRMax
from qrmax.agents.registry import make_config
from qrmax.errors import ModelError, ObservationError, ParameterError
from qrmax.problems.observations import Observations
from qrmax.testing.trial import Trial, make_trial, saved_arrays

NAMES = ("effects-qrmax", "effects-qrmax-rm")


def learner(name: str, world: str = "continuous/line/ab", **options: Any) -> Trial:
    return make_trial(name, qrmax.make(world, **options))


# --- the law


@pytest.mark.parametrize("seed", range(5))
def test_a_law_is_found_though_two_fifths_of_the_moves_are_stopped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-5.0, 5.0, (300, 2))
    y = np.array([0.6, -0.8]) + 0.05 * rng.standard_normal((300, 2))
    stopped = rng.random(300) < 0.4
    y[stopped] *= rng.random((int(stopped.sum()), 1))
    found = fit_law(x, y)
    assert np.allclose(found.coefficient[0], [0.6, -0.8], atol=0.05)
    assert not found.coefficient[1:].any()
    assert ((found.sigma > 0.03) & (found.sigma < 0.12)).all()


def test_a_law_may_depend_on_the_state() -> None:
    x = np.random.default_rng(0).uniform(-3.0, 3.0, (300, 2))
    moves = np.stack([x[:, 1], 0.2 - 0.5 * x[:, 0]], axis=1)
    found = fit_law(x, moves)
    predicted = features_of(x, 2) @ found.coefficient
    assert np.allclose(predicted, moves, atol=0.02)


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 12])
def test_draws_of_the_noise_have_its_mean_and_covariance(dimension: int) -> None:
    root = np.random.default_rng(dimension).standard_normal((dimension, dimension))
    covariance = root @ root.T
    draw, weight = noise_points(covariance)
    assert weight.sum() == pytest.approx(1.0)
    assert np.allclose(weight @ draw, 0.0, atol=1e-9)
    if dimension <= 8:
        assert np.allclose((draw * weight[:, None]).T @ draw, covariance)


# --- obstacles


def model_of(trial: Trial) -> EffectModel:
    model: Any = getattr(trial.agent, "model")  # noqa: B009 (of these agents alone)
    assert model is not None
    return model


@pytest.mark.parametrize("rotation", [0.0, 30.0])
def test_obstacles_lie_on_walls_whatever_their_direction(rotation: float) -> None:
    trial = learner("effects-qrmax-rm", "continuous/office/map1/exp1", rotation=rotation)
    trial.play(150)
    model, problem = model_of(trial), trial.simulator.problem
    count = model.n_obstacles
    assert count > 5
    at = problem.positions(model.obstacles.at[:count] * model.unit)
    off = np.abs(at - np.rint(at)).min(axis=1)  # walls are at whole numbers
    assert np.median(off) < 1e-6
    axes = model.obstacles.normal[:count] @ problem.sensor.axes
    slanted = np.abs(axes).min(axis=1)
    assert np.median(slanted) < 0.1


def test_rows_are_distributions_and_lead_to_nodes() -> None:
    trial = learner("effects-qrmax-rm", "continuous/office/map1/exp1")
    trial.play(200)
    lattice = model_of(trial).lattice
    nodes = int(lattice.used[0])
    rows = nodes * trial.agent.sizes.actions
    for row in range(rows):
        entries = slice(lattice.first[row], lattice.first[row] + lattice.size[row])
        assert lattice.weight[entries].sum() == pytest.approx(1.0)
        assert (lattice.weight[entries] > 0.0).all()
        assert ((lattice.target[entries] >= 0) & (lattice.target[entries] < nodes)).all()


def test_values_satisfy_the_bellman_equation_in_numpy() -> None:
    trial = learner("effects-qrmax-rm", "continuous/office/map1/exp1")
    trial.play(200)
    agent: Any = trial.agent
    model, machine = agent.model, agent._readings
    outlook = agent._outlook(False)
    value = np.zeros_like(model.value)
    agent._solve(outlook, value)
    lattice, gamma = model.lattice, agent.config.gamma
    for node in range(0, int(lattice.used[0]), 7):
        for q in np.flatnonzero(~machine.terminal):
            totals = []
            for row in range(4 * node, 4 * node + 4):
                e = slice(lattice.first[row], lattice.first[row] + lattice.size[row])
                kind, target = lattice.kind[e], lattice.target[e]
                p = machine.next_state[q, kind, 0]
                over = machine.ends[kind] | machine.terminal[p]
                worth = machine.reward[q, kind] + np.where(over, 0.0, gamma * value[target, p])
                worth[kind < 0] = outlook.worst
                totals.append(lattice.reward[row] + (lattice.weight[e] * worth).sum())
            assert value[node, q] == pytest.approx(max(totals), rel=0.02, abs=1e-6)


# --- learning


@pytest.mark.parametrize("name", NAMES)
def test_the_line_is_learned_within_ten_episodes(name: str) -> None:
    run = qrmax.train(name, "continuous/line/ab", seed=3, max_steps=2_000, evaluate_every=200)
    assert run.reason == "success"
    assert run.episodes <= 20


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (learner("effects-qrmax").play(150) for _ in range(2))
    assert first.state() == second.state()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [3, 40, 130])
def test_a_saved_learner_goes_on_bit_by_bit(name: str, steps: int) -> None:
    original = learner(name, "continuous/corridor/abc").play(steps)
    copy = original.resumed(learner(name, "continuous/corridor/abc").agent)
    assert copy.play(120).state() == original.play(120).state()
    ours: Any = original.agent
    theirs: Any = copy.agent
    assert np.array_equal(ours.model.value, theirs.model.value)


def test_a_run_is_saved_and_resumed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"seed": 5, "stop": "budget", "evaluate_every": 150}
    whole = qrmax.train("effects-qrmax-rm", "continuous/line/ab", max_steps=300, **options)
    part = qrmax.train("effects-qrmax-rm", "continuous/line/ab", max_steps=150, **options)
    part.save(tmp_path / "part.run")
    resumed = qrmax.load(tmp_path / "part.run").resume(max_steps=300)
    assert [row[:3] for row in resumed.curve] == [row[:3] for row in whole.curve]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("log.whole.transitions", lambda x: x + 9),
        ("log.whole.transitions", lambda x: x - 1),
        ("log.whole.transitions", lambda x: x[:, 1:]),
        ("log.real.transitions", lambda x: x * np.nan),
        ("log.real.transitions", lambda x: x[1:]),
        ("plans.transitions", lambda x: x + 10_000),
        ("plans.transitions", lambda x: x[:2]),
        ("plans.transitions", lambda x: -x),
        ("planned_from.transitions", lambda x: x * np.inf),
        ("clock", lambda x: x - 5),
    ],
)
def test_damaged_snapshots_are_refused(name: str, damage: Any) -> None:
    trial = learner("effects-qrmax-rm").play(60)
    arrays = saved_arrays(trial.agent)
    arrays[name] = damage(arrays[name])
    with pytest.raises(ModelError), np.errstate(invalid="ignore"):
        learner("effects-qrmax-rm").agent.restore(arrays)


# --- odd worlds


class Odd(gymnasium.Env[Any, int]):
    """A world that is seen as `show` says, by position, time and chance; action 1 goes right."""

    action_space = spaces.Discrete(3)

    def __init__(self, show: Any, low: Any, high: Any) -> None:
        self.show = show
        self.observation_space = spaces.Box(np.array(low), np.array(high), dtype=np.float64)
        self.at, self.time = 0.0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at, self.time = 0.0, 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1.0 if action == 1 else 0.0
        self.time += 1
        return self._seen(), 0.0, False, self.time == 30, {}

    def _seen(self) -> Any:
        return np.array(self.show(self.at, self.time, self.np_random), dtype=np.float64)


ODD = {
    "constant": Odd(lambda *_: [0.5], [0.0], [1.0]),
    "one dimension, unbounded": Odd(lambda at, *_: [at], [-np.inf], [np.inf]),
    "a dimension that never changes": Odd(lambda at, *_: [at, 7.0], [0.0, 0.0], [99.0, 9.0]),
    "teleports": Odd(lambda *seen: seen[-1].uniform(-1.0, 1.0, 2), [-1.0] * 2, [1.0] * 2),
    "a clock": Odd(lambda at, time, *_: [at, time], [0.0] * 2, [np.inf] * 2),
    "five dimensions": Odd(lambda at, t, *_: [at, -at, t, 0.0, at * t], [-1e9] * 5, [1e9] * 5),
    "twelve dimensions": Odd(lambda at, *_: [at] * 12, [-np.inf] * 12, [np.inf] * 12),
    "huge numbers": Odd(lambda at, *_: [1e12 * at], [-np.inf], [np.inf]),
    "tiny numbers": Odd(lambda at, *_: [1e-12 * at], [0.0], [1.0]),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("world", ODD)
@pytest.mark.filterwarnings("ignore::qrmax.errors.QRMaxWarning")
def test_odd_worlds_are_survived(name: str, world: str) -> None:
    def labels(seen: Any, _: Any) -> set[str]:
        return {"far"} if seen[0] > 3.0 else set()

    env = qrmax.TaskWrapper(ODD[world], in_order("far"), labels=labels, env_reward=False)
    run = qrmax.train(name, env, seed=1, max_steps=150, stop="budget", evaluate_every=150)
    assert run.steps == 150


def test_observations_that_are_not_numbers_are_refused() -> None:
    trial = learner("effects-qrmax")
    with pytest.raises(ObservationError, match="nan"):
        trial.agent.perceive([np.nan], 0)


def test_before_anything_is_learned_the_policy_takes_the_first_action() -> None:
    agent: Any = learner("effects-qrmax").agent
    assert isinstance(agent, EffectsQRMax)
    assert agent.recommendation().action([0.5], 0, 0) == 0


@pytest.mark.parametrize("settings", [{"r_max": -1.0}, {"replan_after": 0}, {"gamma": 1.0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        make_config("effects-qrmax", settings)


def test_bounds_of_observations_are_bounds_of_moves() -> None:
    trial = learner("effects-qrmax-rm").play(60)
    local = model_of(trial).local
    box: Observations = trial.simulator.problem.observations
    assert np.allclose(local.low * model_of(trial).unit, box.low)
    assert np.allclose(local.high * model_of(trial).unit, box.high)
