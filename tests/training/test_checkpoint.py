"""Runs as files: saved, loaded, and gone on with as if there had been no break."""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.empirical.successors import ROOM
from qrmax.errors import CheckpointError, ModelError, SourceError
from qrmax.testing.trial_problems import scattered
from qrmax.training import checkpoint
from qrmax.training.stopping import Exact, Nominal, Stays, Welch
from random_problems import problems
from small_runs import (
    LEARNERS,
    WITH_A_HORIZON,
    Learner,
    assert_same_arrays,
    assert_same_run,
    corridor,
    every_learner,
    session_of,
)

SOURCE = Path(qrmax.__file__).parent
WHOLE = 600
EVERY = 50


def reloaded(run: qrmax.Run, path: Path | None = None) -> qrmax.Run:
    with tempfile.TemporaryDirectory() as folder:
        where = path or Path(folder) / "run"
        run.save(where)
        return qrmax.load(where)


def with_breaks(learner: Learner, problem: Any, breaks: list[int], **options: Any) -> qrmax.Run:
    """Trained, but stopped, saved and loaded at each of these steps."""
    whole = options.pop("max_steps")
    run = learner.train(problem, max_steps=breaks[0], **options)
    for until in [*breaks[1:], whole]:
        run = reloaded(run).resume(until)
    return run


# --- round trips


@every_learner
@pytest.mark.parametrize("steps", [1, 333])
def test_a_run_is_loaded_as_it_was_saved(learner: Learner, steps: int, tmp_path: Path) -> None:
    run = learner.train(corridor(), seed=6, max_steps=steps, evaluate_every=EVERY, stop="budget")
    loaded = reloaded(run, tmp_path / "run")
    assert_same_run(run, loaded)
    assert session_of(loaded).training == session_of(run).training
    assert loaded.seconds == run.seconds
    assert loaded.evaluation == run.evaluation
    assert loaded.gap == run.gap
    assert np.array_equal(loaded.policy, run.policy)
    assert np.array_equal(loaded.agent.q, run.agent.q)


@pytest.mark.parametrize("problem", [corridor(), corridor(chance=0.5, limit=None, bonus=0.1)])
def test_the_problem_is_in_the_file(problem: qrmax.Problem, tmp_path: Path) -> None:
    run = qrmax.train("qrmax", problem, t_env=3, t_task=2, max_steps=100)
    loaded = reloaded(run, tmp_path / "run").problem
    for part in ("succ", "prob", "reward", "terminal", "start"):
        assert np.array_equal(getattr(loaded.mdp, part), getattr(problem.mdp, part))
    assert_same_arrays(loaded.table._asdict(), problem.table._asdict())
    assert loaded.labels == problem.labels
    assert np.array_equal(loaded.label, problem.label)
    assert (loaded.name, loaded.max_episode_steps) == (problem.name, problem.max_episode_steps)
    assert qrmax.solve(loaded).start_value == qrmax.solve(problem).start_value


@pytest.mark.parametrize(
    "stop", [Exact(within=0.2, in_a_row=2), Nominal(in_a_row=7), Welch(episodes=9, alpha=0.2)]
)
def test_the_rule_is_in_the_file(stop: Any, tmp_path: Path) -> None:
    run = qrmax.train("qrm", corridor(), stop=stop, max_steps=120, evaluate_every=60)
    assert session_of(reloaded(run, tmp_path / "run")).training.stop == stop


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    """A seed often comes from np.arange."""
    run = qrmax.train(
        "qrmax",
        corridor(),
        seed=np.int64(3),
        max_steps=np.int32(200),
        evaluate_every=np.int64(50),
        stop=Exact(within=np.float32(0.25), in_a_row=np.int64(9)),
        t_env=np.int64(3),
        gamma=np.float32(0.9),
        r_max=np.int8(1),
        compiled=False,
    )
    loaded = reloaded(run, tmp_path / "run")
    assert_same_run(loaded, run)
    assert_same_run(loaded.resume(400), run.resume(400))
    assert (loaded.seed, loaded.agent.config.t_env) == (3, 3)


@pytest.mark.parametrize("name", ["run", "run.safetensors", "a name with spaces, ü and 漢字"])
def test_any_name_will_do_for_a_file(name: str, tmp_path: Path) -> None:
    run = qrmax.train("qrm", corridor(), max_steps=100)
    run.save(str(tmp_path / name))
    assert_same_run(qrmax.load(str(tmp_path / name)), run)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_gap_without_bounds_is_saved_too(tmp_path: Path) -> None:
    """Where the optimum is 0, a policy that loses anything is infinitely far from it."""
    problem = corridor(bonus=-1.0, slip=0.0)
    staying = qrmax.RewardMachine([qrmax.Edge("a", "key", "b")], initial="a", success=["b"])
    free = qrmax.Problem(problem.mdp, staying, problem.labels, problem.label, max_episode_steps=9)
    run = qrmax.train("q-learning", free, max_steps=200, evaluate_every=1, stop="budget")
    assert np.inf in [row.gap for row in run.curve]
    assert_same_run(reloaded(run, tmp_path / "run"), run)


# --- breaks


@every_learner
@pytest.mark.parametrize("compiled", [True, False])
@settings(max_examples=4)
@given(breaks=st.sets(st.integers(1, WHOLE - 1), min_size=1, max_size=4))
def test_a_break_anywhere_changes_nothing(
    learner: Learner, compiled: bool, breaks: set[int]
) -> None:
    options = {"seed": 1, "evaluate_every": EVERY, "stop": "budget", "compiled": compiled}
    whole = learner.train(corridor(), max_steps=WHOLE, **options)
    parts = with_breaks(learner, corridor(), sorted(breaks), max_steps=WHOLE, **options)
    assert_same_run(parts, whole)


@every_learner
@pytest.mark.parametrize("compiled", [True, False])
def test_a_break_after_successor_lists_have_grown_changes_nothing(
    learner: Learner, compiled: bool
) -> None:
    options = {"seed": 1, "evaluate_every": EVERY, "stop": "budget", "compiled": compiled}
    whole = learner.train(scattered(), max_steps=WHOLE, **options)
    seen = getattr(session_of(whole).agent, "seen", None)
    assert seen is None or seen.arrays.outcome.shape[1] > 2 * ROOM
    parts = with_breaks(learner, scattered(), [10, 40, 200, 207], max_steps=WHOLE, **options)
    assert_same_run(parts, whole)


@pytest.mark.parametrize(
    "name", ["q-learning", "rmax-rm", "qrmax", "qrmax-published", "ucbvi-b", "psrl-rm", "opsrl"]
)
@pytest.mark.parametrize("stop", ["exact", "nominal", Welch(episodes=20, in_a_row=3)])
def test_a_break_at_a_check_or_beside_it_changes_nothing(name: str, stop: Any) -> None:
    options = {"seed": 2, "evaluate_every": 20, "stop": stop, "max_steps": 5000}
    whole = LEARNERS[name].train(corridor(), **options)
    assert whole.reason != "budget"
    assert whole.trained > 60
    around = {step + aside for step in (20, 40, whole.steps) for aside in (-1, 0, 1)}
    for breaks in ([step] for step in sorted(around) if step < whole.trained):
        assert_same_run(with_breaks(LEARNERS[name], corridor(), breaks, **options), whole)
    all_at_once = sorted(step for step in around if step < whole.trained)
    assert_same_run(with_breaks(LEARNERS[name], corridor(), all_at_once, **options), whole)


def test_a_break_changes_nothing_of_what_stays() -> None:
    options = {"seed": 2, "evaluate_every": 20, "stop": Stays(within=0.2), "max_steps": 2000}
    learner = LEARNERS["qrmax"]
    whole = learner.train(corridor(), **options)
    assert (whole.reason, whole.trained) == ("stays", 2000)
    assert 20 < whole.steps < 1900
    breaks = [7, whole.steps - 1, whole.steps, whole.steps + 1, 1999]
    assert_same_run(with_breaks(learner, corridor(), breaks, **options), whole)


@pytest.mark.filterwarnings("ignore:horizon is .*:qrmax.QRMaxWarning")
@pytest.mark.parametrize("name", ["qrmax", *WITH_A_HORIZON])
def test_a_break_at_every_single_step_changes_nothing(name: str) -> None:
    options = {"seed": 3, "evaluate_every": 10, "stop": "budget", "max_steps": 60}
    learner = LEARNERS[name]
    whole = learner.train(corridor(limit=7), **options)
    assert_same_run(with_breaks(learner, corridor(limit=7), [*range(1, 60)], **options), whole)


@pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")  # a random task may be impossible
@pytest.mark.parametrize(
    "name", ["q-learning", "rmax", "qrmax", "qrmax-published", "ucbvi-b", "psrl", "opsrl"]
)
@settings(max_examples=12)
@given(
    problem=problems(),
    limit=st.sampled_from([None, 1, 9]),
    breaks=st.sets(st.integers(1, 199), min_size=1, max_size=3),
)
def test_a_break_changes_nothing_on_any_problem(
    name: str, problem: qrmax.Problem, limit: int | None, breaks: set[int]
) -> None:
    problem.max_episode_steps = limit
    options = {"evaluate_every": 30, "stop": "budget", "max_steps": 200}
    try:
        whole = LEARNERS[name].train(problem, **options)
    except ModelError:  # every episode is over before it begins
        assume(False)
    assert_same_run(with_breaks(LEARNERS[name], problem, sorted(breaks), **options), whole)


def test_a_long_run_with_breaks_draws_the_same_numbers() -> None:
    """Random numbers are drawn ahead in blocks; a break falls anywhere in one."""
    options = {"seed": 4, "evaluate_every": 10_000, "stop": "budget", "max_steps": 60_000}
    learner = LEARNERS["q-learning"]
    whole = learner.train(corridor(), **options)
    parts = with_breaks(learner, corridor(), [4095, 8191, 8192, 8193, 30_000], **options)
    assert_same_run(parts, whole)


def test_an_office_run_with_a_break_stops_at_the_same_step() -> None:
    problem = qrmax.make("office/map1/exp1")
    options = {"seed": 7, "max_steps": 200_000}
    for name in ("qrm", "qrmax-rm"):
        whole = qrmax.train(name, problem, **options)
        assert whole.reason == "exact"
        parts = with_breaks(
            Learner(name, {}), problem, [12_345, whole.steps - 1, whole.steps + 1], **options
        )
        assert_same_run(parts, whole)


def test_a_fresh_process_goes_on_to_the_same_end(tmp_path: Path) -> None:
    options = {"seed": 5, "evaluate_every": EVERY, "stop": "budget"}
    for number, learner in enumerate(LEARNERS.values()):
        learner.train(corridor(), max_steps=217, **options).save(tmp_path / f"{number}.half")
    script = (
        "import sys, pathlib, qrmax\n"
        "for path in pathlib.Path(sys.argv[1]).glob('*.half'):\n"
        f"    qrmax.load(path).resume({WHOLE}).save(path.with_suffix('.whole'))\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, timeout=120)
    for number, learner in enumerate(LEARNERS.values()):
        whole = learner.train(corridor(), max_steps=WHOLE, **options)
        assert_same_run(qrmax.load(tmp_path / f"{number}.whole"), whole)


def test_a_run_whose_rule_was_met_is_loaded_as_ended(tmp_path: Path) -> None:
    run = qrmax.train("qrm", corridor(), evaluate_every=EVERY, max_steps=20_000)
    loaded = reloaded(run, tmp_path / "run").resume(100_000)
    assert run.reason == "exact"
    assert_same_run(loaded, run)


# --- writing


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A disk that is full after so many bytes, as far as a program can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 1, 2000])
def test_a_disk_that_runs_full_leaves_the_old_file_whole(size: int, tmp_path: Path) -> None:
    path = tmp_path / "run"
    old, new = (qrmax.train("qrmax", corridor(), max_steps=steps) for steps in (50, 400))
    old.save(path)
    assert path.stat().st_size > 2000
    with files_no_larger_than(size), pytest.raises(SourceError) as caught:
        new.save(path)
    assert str(caught.value).startswith(f"{path}: cannot be written: ")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert_same_run(qrmax.load(path), old)
    new.save(path)
    assert_same_run(qrmax.load(path), new)


def test_a_rename_that_fails_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    old, new = (qrmax.train("qrmax", corridor(), max_steps=steps) for steps in (50, 400))
    old.save(path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(SourceError, match="Input/output error"):
            new.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert_same_run(qrmax.load(path), old)


@pytest.mark.parametrize("where", ["", "nowhere/run", "run\0", "x" * 5000])
def test_a_place_that_cannot_be_written_is_named(where: str, tmp_path: Path) -> None:
    run = qrmax.train("qrm", corridor(), max_steps=10)
    with pytest.raises(SourceError, match="cannot be written"):
        run.save(tmp_path / where)
    assert list(tmp_path.iterdir()) == []


# --- nothing is executed


def test_no_part_of_qrmax_can_read_a_pickle() -> None:
    forbidden = {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib", "cloudpickle"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not forbidden & {name.name.split(".")[0] for name in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in forbidden, path
            if isinstance(node, ast.Name):
                assert node.id not in {"eval", "exec"}, path
            if isinstance(node, ast.keyword):
                assert node.arg != "allow_pickle", path


def test_the_file_is_a_plain_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    run = qrmax.train("qrmax", corridor(), max_steps=100)
    run.save(tmp_path / "run")
    arrays = load_file(tmp_path / "run")
    assert all(array.dtype.kind in "iufb" for array in arrays.values())
    ours = {name.removeprefix("agent."): a for name, a in arrays.items() if "agent." in name}
    assert_same_arrays(dict(sorted(ours.items())), dict(sorted(run.agent.snapshot().items())))


@pytest.mark.parametrize("name", ["office/map1/exp1", "continuous/line/ab", "frozen-lake/abc"])
def test_the_map_comes_back_to_be_looked_at(name: str) -> None:
    problem = qrmax.make(name)
    agent = "bucket-qrmax" if name.startswith("continuous") else "qrmax"
    run = qrmax.train(agent, problem, max_steps=50, evaluate_every=100)
    loaded = checkpoint.from_bytes(checkpoint.to_bytes(session_of(run)), "a run").domain.task
    assert loaded.world.text == problem.world.text
    assert loaded.world.name == problem.world.name


def test_a_map_that_is_not_that_of_the_states_is_refused() -> None:
    problem = qrmax.make("office/map1/exp1")
    problem.world = qrmax.load_map("map2")
    run = qrmax.train("qrmax", problem, max_steps=50, evaluate_every=100)
    with pytest.raises(CheckpointError, match=r"a map of .* cells, and 108 states"):
        checkpoint.from_bytes(checkpoint.to_bytes(session_of(run)), "a run")
