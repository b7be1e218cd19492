"""Compiled code: what is compiled once, how long it takes, and what waits meanwhile."""

from __future__ import annotations

import gc
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import config, event

import qrmax
from qrmax.agents.registry import agent_class
from qrmax.planning import kernels
from qrmax.planning.compilation import is_compiled, seconds_compiling
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.planning.policy_evaluation import evaluate
from qrmax.training.run import Run, make_session
from small_problems import errand
from small_runs import corridor

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


class Compiling(event.Listener):  # type: ignore[misc]
    """Does something in the middle of every compilation."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile

    def on_start(self, event: Any) -> None:
        if re.match(r"native_lowering .*one_more", event.data["name"]):
            self.meanwhile()

    def on_end(self, event: Any) -> None: ...


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    with event.install_listener("numba:run_pass", Compiling(action)):
        yield


def fresh_kernel() -> Any:
    """One that has not been compiled yet."""

    @njit
    def one_more(x: int) -> int:
        return x + 1

    return one_more


# --- time


def test_the_seconds_of_a_run_are_those_of_learning_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first call of a kernel compiles it, which takes far longer than to learn."""
    kind, slept = agent_class("q-learning"), 0.5
    fast_forward = kind.fast_forward

    def compiling_first(agent: Any, simulator: Any, limit: int) -> Any:
        kernel = fresh_kernel()
        with meanwhile(lambda: time.sleep(slept)):
            assert kernel(1) == 2
        return fast_forward(agent, simulator, limit)

    make_session("q-learning", corridor(), max_steps=100)._take(1)  # what it needs is compiled
    monkeypatch.setattr(kind, "fast_forward", compiling_first)
    session = make_session("q-learning", corridor(), max_steps=100, evaluate_every=100)
    started, compiling = time.perf_counter(), seconds_compiling()
    for _ in session.events():
        pass
    assert time.perf_counter() - started >= slept
    assert seconds_compiling() - compiling >= slept
    assert 0.0 < Run(session).seconds < slept


def test_the_time_of_nested_compilations_counts_once() -> None:
    kernel = fresh_kernel()

    @njit
    def caller(x: int) -> int:
        return kernel(x)

    started, compiling = time.perf_counter(), seconds_compiling()
    with meanwhile(lambda: time.sleep(0.1)):
        assert caller(1) == 2
    assert 0.1 <= seconds_compiling() - compiling <= time.perf_counter() - started


# --- Ctrl-C


@pytest.fixture
def usual_handler() -> Iterator[None]:
    """Python's own, whatever started the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
def test_an_interrupt_waits_until_the_kernel_is_compiled() -> None:
    """Raised in the middle, it could end in a callback of LLVM's: printed as ignored, and lost."""
    kernel, reached = fresh_kernel(), []

    def press() -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append(True)

    with meanwhile(press), pytest.raises(KeyboardInterrupt):
        kernel(1)
    assert reached == [True]
    assert kernel.signatures  # it was compiled to the end
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert kernel(1) == 2


def test_another_handler_of_interrupts_is_called_once_the_kernel_is_compiled() -> None:
    kernel, pressed = fresh_kernel(), []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(bool(kernel.signatures)))
    try:
        with meanwhile(lambda: signal.raise_signal(signal.SIGINT)):
            assert kernel(1) == 2
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [True]


def test_garbage_is_collected_again_once_a_kernel_is_compiled() -> None:
    seen = []
    with meanwhile(lambda: seen.append(gc.isenabled())):
        fresh_kernel()(1)
    assert seen == [False]
    assert gc.isenabled()


# --- what is compiled


def test_given_and_learned_models_share_their_kernels() -> None:
    """Arrays that differ in being writable, or in their layout, would be compiled for apart."""
    problem = errand()
    policy = qrmax.solve(problem).policy
    for limit in (None, 7):
        evaluate(problem, policy, max_episode_steps=limit)
    planner = IncrementalPlanner(2, 2, 1, gamma=0.5, optimistic=2.0)
    planner.learn_env(0, 0, succ=[1, 0], prob=[0.5, 0.5], reward=0.0)
    planner.learn_task(0, 1, next_state=[1], prob=[1.0], reward=1.0)
    planner.grow(4)
    planner.restore({name: array.copy() for name, array in planner.snapshot().items()})
    planner.learn_env(1, 0, succ=[1], prob=[1.0], reward=0.0)
    planner.replan()
    planner.greedy()
    for kernel in (
        kernels.solve_layer,
        kernels.env_changed,
        kernels.settle,
        kernels._follow,
        kernels._choose,
        kernels._sweep,
        kernels._lay_out,
    ):
        # other tests of this process may have planned with bonuses, which is a form of its own
        plain = [form for form in kernel.signatures if "Exploration" not in str(form)]
        assert len(plain) <= 1, kernel.py_func.__name__


def test_gains_in_numpy_are_those_of_the_kernels() -> None:
    rng = np.random.default_rng(3)
    planner = IncrementalPlanner(5, 3, 2, gamma=0.9, optimistic=7.0)
    for q in range(3):
        for s in range(5):
            targets = rng.permutation(3)[: 1 + (q + s) % 3].tolist()
            weights = rng.dirichlet(np.ones(len(targets)))
            planner.learn_task(q, s, targets, weights, float(rng.normal()))
    found = kernels.gains(planner.task, planner.tables.value, 0.9)
    assert np.array_equal(found, planner.tables.gain)
    assert found.flags.c_contiguous


def test_forms_of_a_kernel_are_told_apart_in_the_cache(tmp_path: Path) -> None:
    """A loop that was compiled for numbered states is not compiled for buckets yet."""
    source = tmp_path / "forms.py"
    source.write_text(
        "from qrmax.planning.compilation import compiled\n"
        "@compiled\n"
        "def kernel(x, ground):\n"
        "    return x if ground is None else x + ground[0]\n"
    )
    spec = spec_from_file_location("forms", source)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not is_compiled(module.kernel)
    module.kernel(1, None)
    assert is_compiled(module.kernel)
    assert is_compiled(module.kernel, with_last=False)
    assert not is_compiled(module.kernel, with_last=True)
    module.kernel(1, (2, 3))
    assert is_compiled(module.kernel, with_last=True)
