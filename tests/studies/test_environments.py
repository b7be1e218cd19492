"""Environments, and problems made in Python, as problems of a study."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import qrmax
from installed import command
from outside_code import CLIFF, CLIFF_STUDY, SARSA, write_module
from qrmax.errors import StudyError
from qrmax.report.curve_plot import learning_curves
from qrmax.report.study_table import study_table
from qrmax.source import Source
from qrmax.studies.expand import parse_study
from qrmax.studies.study import Study
from qrmax.studies.sweep import Noted, open_sweep
from qrmax.worlds.outside_environments import TableLabels

pytestmark = pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
MAIN = "from qrmax.cli.main import main; main()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cliff")
    write_module(folder, "cliff_code", CLIFF)
    (folder / "cliff.toml").write_text(CLIFF_STUDY.format(module="cliff_code"))
    return folder


@pytest.fixture(scope="module")
def swept(folder: Path) -> Path:
    qrmax.sweep(folder / "cliff.toml", folder=folder / "out", workers=2, progress=False)
    return folder / "out"


def parsed(folder: Path, problem: str, rest: str = "") -> Study:
    text = f'problems = [{problem}]\nagents = ["qrm"]\nseeds = 1\nmax_steps = 9000\n{rest}'
    return parse_study(Source(str(folder / "mine.toml"), text), "mine")


def outcomes(folder: Path) -> list[Any]:
    columns = ["label", "seed", "status", "steps", "trained", "episodes", "success", "start_value"]
    return qrmax.results(folder).select(columns).rows()


def test_a_study_on_an_environment_is_swept_like_any_other(folder: Path, swept: Path) -> None:
    study = qrmax.load_study(folder / "cliff.toml")
    assert study.training["stop"] == "reaches"  # there is no optimum to compare with
    assert study.training["success"] == 0.95
    assert study.problems == ("cliff",)
    assert [(row[0], row[2], row[4]) for row in outcomes(swept)] == [
        (agent, "done", 600) for _ in range(2) for agent in ("qrm", "q-learning")
    ]
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study
    table = study_table(study, swept).markdown()
    assert "## Final policies" in table
    assert "| cliff | q-learning | 2 |" in table
    assert set(learning_curves(study, swept)) == {("cliff", "qrm"), ("cliff", "q-learning")}


def test_its_results_do_not_depend_on_the_number_of_workers_or_on_checkpoints(
    folder: Path, swept: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"folder": tmp_path, "workers": 1, "checkpoint_every": 1e-9}
    qrmax.sweep(folder / "cliff.toml", progress=False, **options)
    assert outcomes(tmp_path) == outcomes(swept)


def test_a_run_that_is_interrupted_begins_again_and_says_so(folder: Path, tmp_path: Path) -> None:
    study = qrmax.load_study(folder / "cliff.toml").changed(
        training={"max_steps": 10**7, "evaluate_every": 100, "stop": "budget", "in_a_row": 3}
    )
    notes = []
    with open_sweep(
        study,
        workers=1,
        backend="local",
        address=None,
        only={"seed": 0, "agent": "qrm"},
        folder=tmp_path,
        fresh=False,
        checkpoint_every=0.01,
    ) as running:
        for number, event in enumerate(running.events()):
            if number == 8:
                running.stop()
            if isinstance(event, Noted):
                notes.append(event.message)
    [note] = notes
    assert "it restarts in the next sweep, as an environment cannot be restored" in note
    assert not [*tmp_path.glob("runs/*")]


def test_an_id_changes_with_the_code_and_everything_in_the_entry(
    folder: Path, tmp_path: Path
) -> None:
    base = '{{ env = "cliff_code:make_env", task = "F goal", labels = "cliff_code:corner"{} }}'
    entries = [
        base.format(extra) for extra in ("", ", options = { length = 3 }", ", env_reward = false")
    ]
    entries += [base.format("").replace("F goal", "F(goal & F goal)")]
    ids = [next(parsed(folder, entry).runs()).id for entry in entries]
    assert len({*ids}) == 4
    assert next(parsed(folder, base.format(', label = "lake"')).runs()).id == ids[0]
    script = "import sys, qrmax; print(next(qrmax.load_study(sys.argv[1]).runs()).id)"
    path = tmp_path / "study.toml"
    path.write_text(CLIFF_STUDY.format(module="mine"))
    found = []
    for addition in ("", "# edited\n"):
        write_module(tmp_path, "mine", CLIFF + addition)
        command = [sys.executable, "-c", script, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(done.stdout)
    assert found[0] != found[1]


def test_labels_may_be_a_table_of_observations(folder: Path) -> None:
    entry = '{ env = "FrozenLake-v1", task = "F goal", labels = { 15 = "goal", 3 = ["a", "b"] } }'
    study = parsed(folder, entry)
    assert study.problems == ("FrozenLake-v1",)
    labels = TableLabels(study.cells[0].problem.as_data()["labels"])
    assert set(labels(15, {})) == {"goal"}
    assert set(labels(3, {})) == {"a", "b"}
    assert not labels(4, {})


def test_a_problem_may_be_made_in_python(folder: Path) -> None:
    made = '{ problem = "cliff_code:make_problem", options = { exp = 2 }, label = "second" }'
    study = parsed(folder, made)
    assert study.problems == ("second",)
    assert study.training["stop"] == "exact"
    assert study.cells[0].problem.make().name == "office/map1/exp2"
    mdp = '{ problem = "cliff_code:make_mdp", task = "F there", labels = { 1 = ["there"] } }'
    problem = parsed(folder, mdp).cells[0].problem.make()
    assert (problem.n_states, problem.n_task_states) == (2, 2)
    assert Study.of(parsed(folder, mdp).as_data()) == parsed(folder, mdp)


def test_a_study_on_an_environment_can_be_made_in_python(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    file = qrmax.load_study("cliff.toml")
    code = sys.modules["cliff_code"]
    study = qrmax.Study(
        problems=[
            {
                "env": "CliffWalking-v1",
                "options": {"max_episode_steps": 60},
                "wrappers": [code.Falls],
                "task": "F(left & F goal) & G !fall",
                "labels": code.labels,
                "label": "cliff",
            }
        ],
        agents=["qrm", "q-learning"],
        seeds=2,
        max_steps=600,
        evaluate_every=200,
        name="cliff",
    )
    assert study == file


# --- a misspelt proposition

MISSPELT = "'gaol', which the task names, was never true in training; true at some time: goal"


def misspelt(folder: Path) -> str:
    """A study of two problems, one with a misspelt proposition."""
    entry = 'env = "cliff_code:make_env", labels = "cliff_code:corner"'
    problems = [f'{{ {entry}, task = "F {name}", label = "{name}" }}' for name in ("goal", "gaol")]
    text = f"problems = [{', '.join(problems)}]\n" + 'agents = ["qrm", "q-learning"]\nseeds = 2\n'
    path = folder / "misspelt.toml"
    path.write_text(text + 'max_steps = 3000\nsettings."q*".epsilon = 0.9\nsettings."q*".q0 = 0.0')
    return str(path)


@pytest.mark.filterwarnings("default::qrmax.QRMaxWarning")
def test_a_misspelt_proposition_is_warned_of_once_for_its_problem(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.warns(qrmax.QRMaxWarning) as caught:
        qrmax.sweep(misspelt(folder), folder=tmp_path, workers=2, progress=False)
    [text] = [str(warning.message) for warning in caught]
    assert text.endswith(f", seed 0: {MISSPELT}")
    assert "on gaol" in text
    found = json.loads(next(tmp_path.glob("runs/*/run.json")).read_text())
    assert "oddity" not in found["outcome"]


@pytest.mark.parametrize("quiet", [[], ["--quiet"]], ids=["with progress", "quiet"])
def test_the_command_line_warns_of_it_once(folder: Path, tmp_path: Path, quiet: list[str]) -> None:
    command = [sys.executable, "-c", MAIN, "sweep", misspelt(folder), "-o", str(tmp_path), *quiet]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: ") == done.stderr.count(MISSPELT) == 1


# --- stopping rules

LAKE = 'env = "FrozenLake-v1", task = "F goal", labels = "cliff_code:corner"'


def mixed(folder: Path, rest: str = "") -> Study:
    """A study of a tabular problem and an environment."""
    entry = f'"office/map1/exp1", {{ {LAKE}, label = "lake" }}'
    return parsed(folder, entry, f"evaluate_every = 100\n{rest}")


def test_problems_and_environments_of_one_study_have_default_rules_of_their_own(
    folder: Path, tmp_path: Path
) -> None:
    study = mixed(folder)
    rules = {run.cell.problem.label: run.training["stop"] for run in study.runs()}
    assert rules == {"office/map1/exp1": "exact", "lake": "reaches"}
    assert "stop" not in study.training
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study
    # the runs are those of the two studies of one kind
    alone = [
        parsed(folder, '"office/map1/exp1"', "evaluate_every = 100\n"),
        parsed(folder, f"{{ {LAKE} }}", "evaluate_every = 100\n"),
    ]
    assert [run.id for run in study.runs()] == [run.id for one in alone for run in one.runs()]
    qrmax.sweep(study, folder=tmp_path, workers=2, progress=False)
    stops = [json.loads(text)["stop"] for text in qrmax.results(tmp_path)["stop"]]
    assert stops == ["exact", "reaches"]
    page = study_table(study, tmp_path).markdown()
    assert "Stopping rules: exact on office/map1/exp1; reaches on lake." in page
    assert {problem for problem, _ in learning_curves(study, tmp_path)} == {*study.problems}


def test_a_rule_that_is_given_is_that_of_all_problems(folder: Path) -> None:
    assert mixed(folder, 'stop = "reaches"\n').training["stop"] == "reaches"
    with pytest.raises(StudyError, match="stop is 'exact'; an environment has no known optimum"):
        mixed(folder, 'stop = "exact"\n')
    with pytest.raises(StudyError, match=r"stop: contradicts .* the rule 'exact' needs 3 checks"):
        mixed(folder, "protocols.short.max_steps = 200\nprotocol = 'short'\n")


def test_the_plan_of_a_study_tells_each_rule_with_its_problems(
    folder: Path, tmp_path: Path
) -> None:
    entry = f'"office/map1/exp1", {{ {LAKE}, label = "lake" }}'
    text = f'problems = [{entry}]\nagents = ["qrm"]\nseeds = 1\nmax_steps = 9000\n'
    (folder / "mixed.toml").write_text(text)
    command = [sys.executable, "-c", MAIN, "plan", str(folder / "mixed.toml"), "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "exact (in_a_row 3, within 0.05) on office/map1/exp1; reaches (" in done.stdout
    assert ") on lake\n" in done.stdout
    command.append("--json")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rules = json.loads(done.stdout)["stop"]
    assert (rules["office/map1/exp1"]["stop"], rules["lake"]["success"]) == ("exact", 0.95)


# --- what is wrong

WRONG = {
    "unknown id": ('{ env = "FrozenLak-v1", task = "F a", labels = { 1 = "a" } }', "FrozenLake-v1"),
    "no id": ('{ env = "lake", task = "F a", labels = { 1 = "a" } }', "unknown environment 'lake'"),
    "wrong option": (f"{{ {LAKE}, options = {{ slippery = 1 }} }}", "cannot be made"),
    "continuous actions": (
        '{ env = "Pendulum-v1", task = "F a", labels = "cliff_code:corner" }',
        "discrete actions",
    ),
    "no wrapper": (f'{{ {LAKE}, wrappers = ["cliff_code:no_wrapper"] }}', "makes 3; needed"),
    "a wrapper that is a number": (f"{{ {LAKE}, wrappers = [3] }}", "wrapper is 3"),
    "no such wrapper": (f'{{ {LAKE}, wrappers = ["cliff_code:Fals"] }}', "did you mean 'Falls'"),
    "labels that are no text": (
        '{ env = "FrozenLake-v1", task = "F goal", labels = "cliff_code:no_text" }',
        "string",
    ),
    "labels that are no function": (
        '{ env = "FrozenLake-v1", task = "F goal", labels = "cliff_code:not_a_function" }',
        "needed: a function",
    ),
    "labels in a table that are none": (
        '{ env = "FrozenLake-v1", task = "F goal", labels = { 3 = 4 } }',
        "problems[0].labels.3: is 4",
    ),
    "no labels": ('{ env = "FrozenLake-v1", task = "F goal" }', "problems[0].labels: needed"),
    "no task": ('{ env = "FrozenLake-v1", labels = { 1 = "a" } }', "problems[0].task: is missing"),
    "no formula": (f"{{ {LAKE.replace('F goal', 'F (goal')} }}", "problems[0]: "),
    "unknown key": (f"{{ {LAKE}, wraper = [] }}", "did you mean 'wrappers'?"),
    "no such module": (f"{{ {LAKE.replace('cliff_code', 'clif_code')} }}", "no module 'clif_code'"),
    "an environment that cannot be made": (
        '{ env = "cliff_code:raises", task = "F a", labels = { 1 = "a" } }',
        "RuntimeError: no lake today",
    ),
    "a function that makes no environment": (
        '{ env = "cliff_code:nothing", task = "F a", labels = { 1 = "a" } }',
        "makes None; needed: a Gymnasium environment",
    ),
    "a function that makes no problem": ('{ problem = "cliff_code:nothing" }', "needed: a Problem"),
    "an MDP without a task": ('{ problem = "cliff_code:make_mdp" }', "with a task and labels"),
    "labels of no state": (
        '{ problem = "cliff_code:make_mdp", task = "F a", labels = { 7 = "a" } }',
        "labels are of state '7'",
    ),
}


@pytest.mark.parametrize(("entry", "words"), WRONG.values(), ids=list(WRONG))
def test_a_bad_entry_is_a_mistake_of_the_study(folder: Path, entry: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        parsed(folder, entry)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'mine.toml'}, problems[0]")
    assert words in message
    assert message.count(f"{folder / 'mine.toml'}, ") == 1


def test_a_rule_that_needs_the_optimum_is_refused(folder: Path) -> None:
    with pytest.raises(StudyError, match=r"agents\[0\]: on .*stop is 'nominal'"):
        parsed(folder, f"{{ {LAKE} }}", 'stop = "nominal"')


def test_the_command_line_exits_with_2_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(CLIFF_STUDY.format(module="nowhere"))
    command = [sys.executable, "-c", MAIN, "sweep", "bad.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no module 'nowhere'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


TWICE = """import qrmax
def make(task, options, name): ...
ONE, TWO = (qrmax.World(name="ring", make=make, tasks={"a": "F a"}) for _ in range(2))
qrmax.register_world(ONE)
qrmax.register_world(TWO)
"""
FROZEN = {"env": "FrozenLake-v1", "task": "F goal", "labels": "mine:labels"}
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "labels that are no text": (
        {**FROZEN, "labels": "mine:no_text"},
        "the result of mine.no_text(...) is [3], and 3 is not a string",
    ),
    "continuous actions": ({**FROZEN, "env": "Pendulum-v1"}, "these agents need discrete actions"),
    "a module that raises": (
        {**FROZEN, "labels": "raises:labels"},
        "importing module 'raises' fails: ZeroDivisionError: division by zero",
    ),
    "no such module": (
        {**FROZEN, "labels": "nowhere:labels"},
        "'nowhere:labels': there is no module 'nowhere'",
    ),
    "a world registered twice": (
        {"name": "twice:TWO/a"},
        "world 'ring': this is the name of another world, made in module 'twice'",
    ),
}


@pytest.mark.parametrize("verb", ["run", "sweep"])
@pytest.mark.parametrize(("problem", "words"), REFUSED.values(), ids=list(REFUSED))
def test_bad_code_is_one_clear_error_of_both_commands(
    tmp_path: Path, problem: dict[str, str], words: str, verb: str
) -> None:
    write_module(tmp_path, "mine", CLIFF)
    write_module(tmp_path, "raises", "1 / 0\n")
    write_module(tmp_path, "twice", TWICE)
    entry = ", ".join(f"{key} = {json.dumps(value)}" for key, value in problem.items())
    text = f'problems = [{{ {entry} }}]\nagents = ["qrm"]\nseeds = 1\n'
    (tmp_path / "study.toml").write_text(text)
    options = {"env": "--env", "task": "--task", "labels": "--labelling"}
    given = [text for key, x in problem.items() for text in (options.get(key, ""), x) if text]
    arguments = ["sweep", "study.toml"]
    if verb == "run":
        arguments = ["run", *given, "--agent", "qrm", "--save", "mine.run", "--log", "logs"]
    before = {path.name for path in tmp_path.iterdir()}
    command = [sys.executable, "-B", "-c", MAIN, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("error: ") == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before


# --- from a folder outside the package


def test_it_runs_in_a_process_that_has_no_access_to_the_source_tree(tmp_path: Path) -> None:
    """The package is a copy elsewhere, as an installed one is; the study lies in another folder."""
    place = tmp_path / "mine"
    place.mkdir()
    write_module(place, "mine", CLIFF)
    write_module(place, "sarsa", SARSA)
    text = CLIFF_STUDY.format(module="mine").replace('"q-learning"', '"sarsa:Sarsa"')
    (place / "cliff.toml").write_text(text)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments in (
        ["sweep", str(place / "cliff.toml"), "--workers", "2", "-o", "out"],
        ["table", "out", "-o", "table.md"],
        ["curves", "out", "-o", "curves.svg"],
    ):
        done = command(*arguments, cwd=elsewhere)
        assert done.returncode == 0, done.stderr
    table = (elsewhere / "table.md").read_text()
    assert "| cliff | sarsa | 2 |" in table
    assert (elsewhere / "curves.svg").stat().st_size > 1000


def lambda_and_local() -> list[Any]:
    def within(observation: Any, info: Any) -> list[str]:  # noqa: ARG001
        return []

    return [lambda observation, info: [], within]  # noqa: ARG005


@pytest.mark.parametrize("key", ["labels", "transition_labels"])
def test_functions_that_workers_cannot_import_are_refused_as_such(key: str) -> None:
    for function, message in zip(
        lambda_and_local(),
        ["a lambda has no name by which worker processes", "within is defined in a function"],
        strict=True,
    ):
        problem = {"env": "CliffWalking-v1", "task": "F goal", key: function}
        with pytest.raises(StudyError, match=message):
            Study([problem], ["qrm"])
    with pytest.raises(StudyError, match="a lambda has no name"):
        Study([{"problem": lambda_and_local()[0]}], ["qrm"])
