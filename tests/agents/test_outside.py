"""Agents from outside the library: registered, installed, referred to, and read from files."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import qrmax
from outside_agents import importable, imported, write_entry_points, write_module
from qrmax.agents import registry
from qrmax.agents.outside import agent_reference, agent_source
from qrmax.agents.q_learning import QLearning
from qrmax.agents.registry import (
    agent_class,
    agent_names,
    broken_agents,
    class_in_file,
    default_settings,
    make_config,
)
from qrmax.cli.doctor_command import _check, _installed_agents_load
from qrmax.errors import AgentError, ParameterError, PluginError, QRMaxWarning, UnknownNameError
from qrmax.plugins import EntryPoints, import_object
from qrmax.testing.trial import make_trial
from small_runs import assert_same_run, corridor

SHORT: dict[str, Any] = {"max_steps": 200, "stop": "budget", "evaluate_every": 100}


@pytest.fixture(autouse=True)
def _nothing_stays_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the module `mine`, from which modules can be imported."""
    write_module(tmp_path)
    with importable(tmp_path):
        yield tmp_path


@pytest.fixture
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution with one good and four broken entry points."""
    write_module(folder, "raises", "1 / 0\n")
    write_entry_points(
        folder,
        sarsa="mine:Sarsa",
        other_name="mine:Sarsa",
        gone="missing:Agent",
        failing="raises:Agent",
        config="mine:SarsaConfig",
        qrmax="mine:Sarsa",
    )
    monkeypatch.setattr(registry, "_installed", EntryPoints(registry.GROUP))
    return folder


# --- how train takes it


@pytest.mark.usefixtures("folder")
def test_an_agent_is_a_class_its_config_a_reference_or_a_registered_name() -> None:
    kind = imported("mine").Sarsa
    by_class = qrmax.train(kind, corridor(), **SHORT)
    assert type(by_class.agent) is kind
    assert qrmax.register_agent(kind) is kind
    for agent in (kind.Config(), "mine:Sarsa", "sarsa"):
        assert_same_run(qrmax.train(agent, corridor(), **SHORT), by_class)


@pytest.mark.usefixtures("folder")
def test_the_settings_of_a_config_are_taken_as_they_are_and_may_be_overridden() -> None:
    config = imported("mine").SarsaConfig(alpha=0.3, gamma=0.8)
    found = qrmax.train(config, corridor(), gamma=0.7, **SHORT).agent.config
    assert (found.alpha, found.gamma) == (0.3, 0.7)
    built_in = agent_class("qrm").Config(alpha=0.5)
    assert qrmax.train(built_in, corridor(), **SHORT).agent.name == "qrm"
    told = qrmax.train(agent_class("qrmax").Config(r_max=5.0), corridor(), **SHORT)
    assert told.agent.config.r_max == 5.0


def test_every_built_in_class_has_a_config_of_its_own() -> None:
    for name in agent_names():
        kind = agent_class(name)
        assert kind.Config.agent is kind
        assert agent_class(kind.Config()) is kind


def test_a_problem_may_be_given_by_its_name() -> None:
    run = qrmax.train("qrm", "office/map1/exp1", **SHORT)
    assert run.task_name == "office/map1/exp1"


@pytest.mark.parametrize("agent", [3, None, object(), QLearning])
def test_what_is_no_agent_is_refused(agent: Any) -> None:
    if agent is QLearning:
        agent = make_trial(QLearning, corridor()).agent  # an agent, not its class
    with pytest.raises(ParameterError, match=r"agent is .*allowed: a name such as 'qrmax'"):
        agent_class(agent)


def test_a_config_that_belongs_to_no_agent_is_refused() -> None:
    with pytest.raises(AgentError, match="does not define act"):
        agent_class(qrmax.AgentConfig())


# --- the registry


@pytest.mark.usefixtures("folder")
def test_a_registered_class_is_known_by_its_name() -> None:
    @qrmax.register_agent
    class Mine(imported("mine").Sarsa):
        """Mine."""

    assert agent_names()[-1] == "mine"
    assert agent_class("mine") is Mine
    assert default_settings("mine") == {"gamma": 0.9, "alpha": 0.1, "epsilon": 0.1}
    with pytest.raises(UnknownNameError, match="did you mean 'mine'"):
        agent_class("minee")


def test_a_name_is_that_of_one_class_only() -> None:
    def make(name: str) -> Any:
        return type(name, (QLearning,), {"name": "own", "__module__": "somewhere"})

    qrmax.register_agent(make("One"))
    qrmax.register_agent(make("One"))  # edited, as in a notebook
    with pytest.raises(AgentError, match=r"somewhere:Other: the name 'own' is .*somewhere:One"):
        qrmax.register_agent(make("Other"))
    taken = type("Third", (QLearning,), {"name": "qrmax", "__module__": "somewhere"})
    with pytest.raises(AgentError, match=r"'qrmax' is .*qrmax.agents.qrmax:QRMax"):
        qrmax.register_agent(taken)
    assert agent_class("qrmax").__name__ == "QRMax"


def test_a_subclass_without_a_name_does_not_go_by_that_of_its_parent() -> None:
    class MyQRMax(agent_class("qrmax")):
        """Mine."""

    assert MyQRMax.name == "my-qrmax"
    assert MyQRMax.Config.agent is MyQRMax
    assert dataclasses.fields(MyQRMax.Config) == dataclasses.fields(agent_class("qrmax").Config)


# --- entry points


@pytest.mark.usefixtures("installed")
def test_installed_agents_are_known_by_name_and_broken_ones_do_no_harm() -> None:
    assert {"sarsa", "gone", "failing"} <= {*agent_names()}
    assert "mine" not in sys.modules  # nothing is loaded before it is asked for
    assert agent_class("sarsa") is imported("mine").Sarsa
    assert agent_class("qrmax").__name__ == "QRMax"
    assert qrmax.train("sarsa", corridor(), **SHORT).agent.name == "sarsa"
    with pytest.raises(
        PluginError, match=r"'failing' .*from mine.* ZeroDivisionError: .*raises.py"
    ):
        qrmax.train("failing", corridor())


@pytest.mark.usefixtures("installed")
def test_the_doctor_says_which_entry_points_are_broken() -> None:
    broken = broken_agents()
    assert broken.keys() == {"other-name", "gone", "failing", "config", "qrmax"}
    for name, words in {
        "other-name": "calls itself 'sarsa'",
        "gone": "ModuleNotFoundError: No module named 'missing'",
        "failing": "ZeroDivisionError",
        "config": "is not an agent",
        "qrmax": "a built-in agent has that name",
    }.items():
        assert words in broken[name]
        assert f"entry point {name!r} of group 'qrmax.agents' (from mine)" in broken[name]
    report = _check(_installed_agents_load)
    assert report.startswith("failed: PluginError")
    assert all(message in report for message in broken.values())


def test_the_doctor_is_content_without_other_distributions() -> None:
    assert _check(_installed_agents_load).startswith("ok, 0 from other distributions")


# --- references

BAD_REFERENCES = {
    "missing:Sarsa": "there is no module 'missing'",
    "mine:Sarse": "has no attribute 'Sarse'\n  did you mean 'Sarsa'?",
    "mine:SarsaConfig": "mine:SarsaConfig: is not an agent; needed: a subclass of qrmax.Agent",
    "mine:np": "is <module 'numpy'",
    "raises:Sarsa": "importing module 'raises' fails: ZeroDivisionError: division by zero",
    "leaves:Sarsa": "importing module 'leaves' fails: SystemExit",
    "needs:Sarsa": "importing module 'needs' fails: ModuleNotFoundError: No module named 'gone'",
    "wrong:Sarsa": "importing module 'wrong' fails: SyntaxError",
}


@pytest.mark.parametrize("reference", BAD_REFERENCES)
def test_a_bad_reference_is_one_clear_error(reference: str, folder: Path) -> None:
    write_module(folder, "raises", "1 / 0\n")
    write_module(folder, "leaves", "raise SystemExit(0)\n")
    write_module(folder, "needs", "import gone\n")
    write_module(folder, "wrong", "def (\n")
    with pytest.raises((PluginError, AgentError)) as caught:
        qrmax.train(reference, corridor())
    assert BAD_REFERENCES[reference] in str(caught.value)


def test_a_module_beside_a_study_is_not_taken_for_one_of_the_same_name(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write_module(elsewhere)
    import_object("mine:Sarsa", folder)
    with importable(elsewhere), pytest.raises(PluginError, match="was imported before, from"):
        import_object("mine:Sarsa", elsewhere)


# --- where it comes from


def test_a_built_in_agent_has_no_source() -> None:
    assert agent_source(agent_class("qrmax")) is None
    assert agent_reference(agent_class("qrmax")) == "qrmax"


def test_the_source_of_an_agent_is_the_hash_of_its_module(folder: Path) -> None:
    kind = imported("mine").Sarsa
    assert agent_reference(kind) == "mine:Sarsa"
    source = agent_source(kind)
    assert source is not None
    assert source.as_data().keys() == {"module", "class", "sha256"}
    file = write_module(folder, text=Path(folder / "mine.py").read_text() + "\n# edited\n")
    assert agent_source(kind) == source  # this class is what it was
    del sys.modules["mine"]
    assert "edited" in file.read_text()
    edited = agent_source(imported("mine").Sarsa)
    assert edited is not None
    assert edited.sha256 != source.sha256


def test_the_source_covers_the_modules_of_its_bases_and_of_its_config(folder: Path) -> None:
    write_module(folder, "child", "import mine\nclass Child(mine.Sarsa):\n    pass\n")
    before = agent_source(imported("child").Child)
    for module in ("mine", "child"):
        del sys.modules[module]
    write_module(folder, text=Path(folder / "mine.py").read_text() + "\n# edited\n")
    after = agent_source(imported("child").Child)
    assert before != after


def test_a_version_stands_in_place_of_the_hash(folder: Path) -> None:
    write_module(folder, "child", "import mine\nclass Child(mine.Sarsa):\n    version = '3'\n")
    source = agent_source(imported("child").Child)
    assert source is not None
    assert source.as_data() == {"module": "child", "class": "Child", "version": "3"}


def test_without_a_file_the_code_itself_is_hashed() -> None:
    def make(text: str) -> Any:
        names: dict[str, Any] = {"__name__": "notebook", "QLearning": QLearning}
        exec(f"class Mine(QLearning):\n    def act(self, s, q):\n        return {text}\n", names)
        source = agent_source(names["Mine"])
        assert source is not None
        return source.sha256

    assert make("0") == make("0")
    assert make("0") != make("1")
    assert make("s") != make("q")


# --- files


def test_loading_a_run_imports_no_module(folder: Path) -> None:
    run = qrmax.train("mine:Sarsa", corridor(), **SHORT)
    run.save(folder / "mine.run")
    assert_same_run(qrmax.load(folder / "mine.run"), run)
    del sys.modules["mine"]
    with pytest.raises(PluginError) as caught:
        qrmax.load(folder / "mine.run")
    for words in ("mine.run: ", "class Sarsa of the module 'mine'", "import mine first"):
        assert words in str(caught.value)
    assert "mine" not in sys.modules
    imported("mine")
    assert qrmax.load(folder / "mine.run").steps == run.steps


def test_a_run_of_a_registered_agent_is_loaded_by_its_name(folder: Path) -> None:
    kind = imported("mine").Sarsa
    qrmax.register_agent(kind)
    run = qrmax.train("sarsa", corridor(), **SHORT)
    run.save(folder / "mine.run")
    assert agent_reference(kind) == "sarsa"
    del sys.modules["mine"]
    assert qrmax.load(folder / "mine.run").agent.name == "sarsa"
    other = type("Sarsa", (kind,), {"name": "sarsa", "__module__": "elsewhere"})
    registry._registered["sarsa"] = other
    with pytest.raises(PluginError, match=r"is mine:Sarsa, and the agent .* is elsewhere:Sarsa"):
        qrmax.load(folder / "mine.run")


def test_a_run_is_loaded_with_the_same_class_of_a_module_of_another_name(folder: Path) -> None:
    run = qrmax.train("mine:Sarsa", corridor(), **SHORT)
    run.save(folder / "mine.run")
    text = (folder / "mine.py").read_text()
    del sys.modules["mine"]
    write_module(folder, "moved", text)
    kind = imported("moved").Sarsa
    assert type(qrmax.load(folder / "mine.run").agent) is kind
    write_module(folder, "edited", text + "\n# edited\n")
    del sys.modules["moved"]
    imported("edited")
    with pytest.raises(PluginError, match="class Sarsa of the module 'mine', which is not"):
        qrmax.load(folder / "mine.run")


def test_a_run_of_a_script_is_loaded_by_whoever_imports_the_script(folder: Path) -> None:
    text = (folder / "mine.py").read_text()
    train = 'qrmax.train(Sarsa, "office/map1/exp1", max_steps=50, stop="budget").save("s.run")'
    (folder / "script.py").write_text(
        f"{text}\n\nif __name__ == '__main__':\n    import qrmax\n    {train}\n"
    )
    subprocess.run([sys.executable, "script.py"], cwd=folder, check=True)
    with pytest.raises(PluginError, match=r"class Sarsa of a script.*\n?.*--agent SCRIPT:Sarsa"):
        qrmax.load(folder / "s.run")
    kind = imported("script").Sarsa
    assert type(qrmax.load(folder / "s.run").agent) is kind
    del sys.modules["script"]
    (folder / "script.py").write_text(text + "\n# edited\n")
    imported("script")
    with pytest.warns(QRMaxWarning, match="has changed since"):
        qrmax.load(folder / "s.run")


@pytest.mark.usefixtures("installed")
def test_a_run_of_an_installed_agent_is_loaded_by_its_entry_point(tmp_path: Path) -> None:
    run = qrmax.train("sarsa", corridor(), **SHORT)
    run.save(tmp_path / "mine.run")
    del sys.modules["mine"]
    assert qrmax.load(tmp_path / "mine.run").steps == run.steps


def test_a_run_of_an_agent_that_was_edited_since_is_loaded_with_a_warning(folder: Path) -> None:
    qrmax.train("mine:Sarsa", corridor(), **SHORT).save(folder / "mine.run")
    del sys.modules["mine"]
    write_module(folder, text=Path(folder / "mine.py").read_text() + "\n# edited\n")
    imported("mine")
    with pytest.warns(QRMaxWarning, match="mine:Sarsa has changed since"):
        qrmax.load(folder / "mine.run")


@pytest.mark.parametrize("wanted", ["os:system", "qrmax:train", "sys:path", "..:x", "nope:Sarsa"])
def test_a_file_that_names_anything_else_is_refused(wanted: str) -> None:
    module, _, name = wanted.partition(":")
    with pytest.raises((PluginError, AgentError)):
        class_in_file(wanted, {"module": module, "class": name, "sha256": "0"})


def test_an_agent_without_a_source_is_a_built_in_one() -> None:
    with pytest.raises(UnknownNameError):
        class_in_file("os:system", None)


# --- what training checks


class Wild(qrmax.Agent):
    """Acts and recommends as it is told."""

    def act(self, s: int, q: int) -> Any:  # noqa: ARG002
        return self.does

    def update(self, *given: Any) -> None:
        pass

    def policy(self) -> Any:
        return self.recommends

    does: Any = 0
    recommends: Any = [[0] * 3] * 6


@pytest.mark.parametrize("action", [2, -1, None, "0", 0.0, 1.5])
def test_an_action_that_is_none_is_refused(action: Any) -> None:
    kind = type("Acting", (Wild,), {"does": action})
    with pytest.raises(AgentError, match=r":Acting': act\(2, 0\) returned .*from 0 to 1"):
        qrmax.train(kind, corridor(), **SHORT)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ([[0] * 3] * 5, r"of shape \(5, 3\); needed"),
        ([[0.0] * 3] * 6, "float64"),
        ([[2] * 3] * 6, "has actions from 2 to 2; allowed: 0 to 1"),
        ([[-1] * 3] * 6, "has actions from -1"),
        (None, "an array of object"),
        ([[0], [0, 1]], "is not an array"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(policy: Any, words: str) -> None:
    kind = type("Recommending", (Wild,), {"recommends": policy})
    with pytest.raises(AgentError, match=f":Recommending': the recommended policy.*{words}"):
        qrmax.train(kind, corridor(), **SHORT)


def test_an_exception_of_its_own_is_let_through() -> None:
    def update(*_: Any) -> None:
        raise KeyError("table")

    with pytest.raises(KeyError) as found:
        qrmax.train(type("Raising", (Wild,), {"update": update}), corridor(), **SHORT)
    assert found.traceback[-1].name == "update"
    assert found.value.__cause__ is None


def test_a_policy_of_plain_lists_is_as_good_as_an_array() -> None:
    run = qrmax.train(Wild, corridor(), **SHORT)
    assert run.policy.tolist() == [[0] * 3] * 6
    assert make_config(Wild, {"gamma": 0.5}) == Wild.Config(gamma=0.5)
