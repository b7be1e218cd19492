"""Second instances of environments: ours are closed, those that were given are not."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

import qrmax
from gym_worlds import cliff, lake
from qrmax.errors import ParameterError, QRMaxWarning
from qrmax.training.trainer import Evaluated


class Closes(list[int]):
    """The instances that were closed; copies share it."""

    def __deepcopy__(self, memo: Any) -> Closes:
        return self


class Closing(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes which instances were reset, and which closed."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.closed, self.used = Closes(), Closes()

    def reset(self, **options: Any) -> Any:
        self.used.append(id(self))
        return self.env.reset(**options)

    def close(self) -> None:
        self.closed.append(id(self))
        self.env.close()


class NoCopy(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Can neither be made again nor copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("no copies")


SHORT: dict[str, Any] = {"max_steps": 400, "evaluate_every": 200, "stop": "budget"}


def test_the_second_instance_that_was_made_is_closed_at_the_end() -> None:
    env = Closing(lake())
    run = qrmax.train("qrm", env, **SHORT)
    assert len(env.closed) == 1
    assert env.closed[0] != id(env)
    assert run.evaluation is not None  # of another one, which is closed, too
    assert (len(env.closed), id(env) in env.closed) == (2, False)
    run.resume(600)
    assert {*env.used} - {id(env)} == {*env.closed}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_it_is_closed_after_errors_and_interrupts(error: type[BaseException]) -> None:
    env = Closing(lake())

    def on_event(event: Any) -> None:
        if isinstance(event, Evaluated):
            raise error

    with pytest.raises(error):
        qrmax.train("qrm", env, **SHORT, on_event=on_event)
    assert len(env.closed) == 1
    assert env.closed[0] != id(env)


def test_a_second_instance_can_be_given_and_stays_open() -> None:
    env, second = NoCopy(lake()), Closing(lake())
    run = qrmax.train("qrm", env, **SHORT, evaluation_env=second)
    assert run.curve[-1].success_low is not None  # rollouts, not episodes of training
    before = len(second.used)
    assert run.evaluation is not None
    assert run.evaluate(10).episodes == 10
    assert len(second.used) == before + 100 + 10
    assert second.closed == []
    with pytest.warns(QRMaxWarning, match="no second instance"):
        qrmax.train("qrm", NoCopy(lake()), **SHORT)


def test_a_second_instance_that_is_given_changes_nothing() -> None:
    given = qrmax.train("qrm", lake(), **SHORT, evaluation_env=lake())
    assert given.curve == qrmax.train("qrm", lake(), **SHORT).curve


def test_a_run_is_loaded_with_a_second_instance(tmp_path: Any) -> None:
    path, second = tmp_path / "lake.run", Closing(lake())
    qrmax.train("qrm", lake(), **SHORT).save(path)
    run = qrmax.load(path, env=NoCopy(lake()), evaluation_env=second)
    run.resume(600)
    assert run.curve[-1].success_low is not None
    assert (len({*second.used}), second.closed) == (1, [])


def test_a_second_instance_has_to_be_one_and_to_match() -> None:
    env = lake()
    for same in (env, Closing(env)):
        with pytest.raises(ParameterError, match="is the environment of training"):
            qrmax.train("qrm", env, evaluation_env=same)
    with pytest.raises(ParameterError, match=r"evaluation_env has .* as states of the world"):
        qrmax.train("qrm", lake(), evaluation_env=cliff())
    with pytest.raises(ParameterError, match="is not an environment"):
        qrmax.train("qrm", lake(), evaluation_env=3)
    with pytest.raises(ParameterError, match="has no task"):
        qrmax.train("qrm", lake(), evaluation_env=gymnasium.make("FrozenLake-v1"))
    with pytest.raises(ParameterError, match="is a problem"):
        qrmax.train("qrm", "office/map1/exp1", evaluation_env=lake())
