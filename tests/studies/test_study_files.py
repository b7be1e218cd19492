"""Study files: what is wrong with one, what counts before what, and the names of runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
import qrmax
from qrmax.errors import ParameterError, QRMaxError, StudyError
from qrmax.studies.library import protocol_names, study_names
from qrmax.studies.study import RunSpec, Study
from qrmax.studies.work import Assignment, advance
from tiny_study import FETCH, GOOD, ROW, agents, parsed, problems, seeds, write_tiny

CHANCE = """
initial = "start"
success = ["done"]
edges = [{ from = "start", when = "coffee", to = "done", reward = 1.0, probability = 0.5 }]
"""
ignore_warnings = pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
VERY_LONG = "0x" + "f" * 5000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_tiny(folder)
    (folder / "chance.toml").write_text(CHANCE)
    (folder / "words.csv").write_text("problem,qrmax\nrow,many\n")
    (folder / "no_problem.csv").write_text("world,qrmax\nrow,3\n")
    (folder / "wide.csv").write_text("problem,qrmax\nrow,3,4\n")
    (folder / "good.csv").write_text("problem,qrmax,rmax\nrow,3,\n")
    return folder


def mistakes(folder: Path, text: str, protocol: str | None = None) -> list[str]:
    """What is said of a study, each mistake with its further lines, without the file's name."""
    with pytest.raises(StudyError) as caught:
        parsed(folder, text, protocol)
    start = f"{folder / 'tiny.toml'}, "
    first, *found = ("\n" + str(caught.value)).split(f"\n{start}")
    assert first == ""
    return found


# Each of these has one mistake: where it is, and words of what is said of it.
ONE_MISTAKE = {
    # those of the issue
    "unknown agent": (agents('"qrmx"'), "agents[0]", "did you mean 'qrmax'?"),
    "misspelt setting": (
        agents('"rmax", { agent = "qrmax", t_E = 3 }'),
        "agents[1].t_E",
        "did you mean 't_env'?",
    ),
    "negative count of seeds": (seeds("-3"), "seeds", "is -3"),
    "no problems": (problems(""), "problems", "is empty; needed: at least one problem"),
    "an option of the wrong type": (
        problems('{ name = "office/map1/exp1", slip = "much" }'),
        "problems[0].slip",
        "slip is 'much'",
    ),
    "a setting of another rule": (
        GOOD + 'stop = { rule = "nominal", within = 0.1 }',
        "stop.within",
        "unknown setting of nominal",
    ),
    "checks that can never happen": (
        GOOD + 'stop = { rule = "exact", in_a_row = 7 }',
        "stop",
        "needs 7 checks in a row, but 600 steps with a check every 100 have 6",
    ),
    # keys
    "unknown key": (GOOD + "max_step = 3", "max_step", "did you mean 'max_steps'?"),
    "no problems key": (GOOD.replace("problems = ", "title = 'x' #"), "problems", "is missing"),
    "no seeds key": (GOOD.replace("seeds = 2", ""), "seeds", "is missing"),
    "no agents key": (GOOD.replace("agents = ", "title = 'x' #"), "agents", "is missing"),
    "no agents": (agents(""), "agents", "is empty; needed: at least one agent"),
    "an agent without a name": (agents("{ t_env = 3 }"), "agents[0].agent", "is missing"),
    "a rule without a name": (GOOD + "stop = { within = 0.1 }", "stop.rule", "is missing"),
    "a setting named agent": (
        GOOD + '[settings.qrmax]\nagent = "rmax"',
        "settings.qrmax.agent",
        "unknown setting of qrmax 'agent'",
    ),
    "a setting named label": (GOOD + '[settings.qrmax]\nlabel = "x"', "settings.qrmax.label", ""),
    "a setting named seed": (agents('{ agent = "qrmax", seed = 3 }'), "agents[0].seed", ""),
    "a setting named stop": (
        GOOD + 'stop = { rule = "exact", stop = "exact" }',
        "stop.stop",
        "unknown setting of exact 'stop'",
    ),
    # seeds
    "no seeds": (seeds("0"), "seeds", "is 0"),
    "no seeds in a list": (seeds("[]"), "seeds", "at least one seed"),
    "a seed twice": (seeds("[1, 2, 1]"), "seeds[2]", "there twice"),
    "a negative seed": (seeds("[3, -1]"), "seeds[1]", "seed is -1"),
    "a seed in quotes": (seeds('["1"]'), "seeds[0]", "is '1'"),
    "half a seed": (seeds("[1.0]"), "seeds[0]", "is 1.0"),
    "a true seed": (seeds("[true]"), "seeds[0]", "is True"),
    "a list of lists": (seeds("[[1]]"), "seeds[0]", "is [1]"),
    "true seeds": (seeds("true"), "seeds", "is True"),
    "a fraction of seeds": (seeds("2.0"), "seeds", "is 2.0"),
    "seeds in quotes": (seeds('"2"'), "seeds", "is '2'"),
    "seeds in a table": (seeds("{ from = 1 }"), "seeds", "is {'from': 1}"),
    "too many seeds": (seeds("100_001"), "seeds", "from 1 to 100000"),
    "far too many seeds": (seeds("1" * 40), "seeds", "111111"),
    "a seed that no column holds": (seeds("[9_223_372_036_854_775_808]"), "seeds[0]", "at most"),
    "a very long seed": (seeds(f"[{VERY_LONG}]"), "seeds[0]", "a very long number"),
    # names
    "agents twice": (
        agents('"rmax", "qrmax", "qrmax"'),
        "agents[2]",
        "there are two agents 'qrmax'; give one of them a label",
    ),
    "a label twice": (
        agents('"qrmax", { agent = "rmax", label = "qrmax" }'),
        "agents[1]",
        "there are two agents 'qrmax'",
    ),
    "problems twice": (
        problems('"office/map1/exp1", "office/map1/*"'),
        "problems[1]",
        "there are two problems 'office/map1/exp1'",
    ),
    "one label for a pattern": (
        problems('{ name = "office/map1/*", label = "x" }'),
        "problems[0]",
        "there are two problems 'x'",
    ),
    "a pattern that nothing fits": (
        problems('"office/map[7-9]/*"'),
        "problems[0]",
        "unknown problem 'office/map[7-9]/*'",
    ),
    "unknown world": (
        problems('"ofice/map1/exp1"'),
        "problems[0]",
        "did you mean 'office/map1/exp1'?",
    ),
    "unknown map": (problems('"office/mpa1/exp1"'), "problems[0]", "did you mean 'map1'?"),
    "unknown task": (problems('"office/map1/epx1"'), "problems[0]", "did you mean 'exp1'?"),
    "unknown protocol": (
        GOOD + 'protocol = "as-publish"',
        "protocol",
        "did you mean 'as-published'?",
    ),
    "unknown rule": (GOOD + 'stop = "exct"', "stop", "did you mean 'exact'?"),
    "unknown option": (
        problems('{ name = "office/map1/exp1", slpi = 0.1 }'),
        "problems[0].slpi",
        "did you mean 'slip'?",
    ),
    # kinds of values
    "a title that is a number": (GOOD + "title = 3", "title", "is 3; needed: text"),
    "an about that is a list": (GOOD + "about = ['x']", "about", "needed: text"),
    "a comparable that is a word": (
        GOOD + 'comparable = "yes"',
        "comparable",
        "is 'yes'; needed: true or false",
    ),
    "one agent without a list": (
        GOOD.replace('["qrmax"]', '"qrmax"'),
        "agents",
        "is 'qrmax'; needed: a list",
    ),
    "an agent that is a number": (agents("3"), "agents[0]", "is 3; needed: a name or a table"),
    "an agent's name that is a number": (
        agents("{ agent = 3 }"),
        "agents[0].agent",
        "needed: text",
    ),
    "a label that is a number": (
        agents('{ agent = "qrmax", label = 3 }'),
        "agents[0].label",
        "needed: text",
    ),
    "one problem without a list": (
        GOOD.replace("[{ map", "{ map").replace(" }]", " }"),
        "problems",
        "needed: a list",
    ),
    "a problem that is a list": (problems("[]"), "problems[0]", "needed: a name or a table"),
    "a map that is a number": (
        problems('{ map = 3, task = "exp1" }'),
        "problems[0].map",
        "is 3; needed: text",
    ),
    "settings that are a number": (GOOD + "settings = 3", "settings", "needed: a table"),
    "an agent's settings that are a number": (
        GOOD + "settings = { qrmax = 3 }",
        "settings.qrmax",
        "is 3; needed: a table",
    ),
    "a world that is a list": (GOOD + "world = [1]", "world", "needed: a table"),
    "a rule that is a number": (GOOD + "stop = 3", "stop", "needed: a name or a table"),
    "a protocol that is a number": (GOOD + "protocol = 3", "protocol", "needed: text"),
    "protocols that are a list": (GOOD + "protocols = []", "protocols", "needed: a table"),
    "a protocol's table that is a number": (
        GOOD + "[protocols]\nmine = 3",
        "protocols.mine",
        "is 3; needed: a table",
    ),
    "a reference that is a number": (GOOD + "reference = 3", "reference", "needed: text"),
    "an empty entry": (problems("{}"), "problems[0]", "needed: a name such as"),
    "a map without a task": (problems('{ map = "row.txt" }'), "problems[0]", "or a map and a task"),
    "a name and a map": (
        problems('{ name = "office/map1/exp1", map = "map2" }'),
        "problems[0]",
        "contradict",
    ),
    # ranges
    "no steps": (GOOD.replace("600", "0"), "max_steps", "max_steps is 0"),
    "a fraction of a step": (GOOD.replace("600", "1.5"), "max_steps", "needed: a whole number"),
    "far too many steps": (GOOD.replace("600", "9" * 30), "max_steps", "to 1000000000"),
    "steps of 5000 digits": (GOOD.replace("600", VERY_LONG), "max_steps", "a very long number"),
    "a negative spacing": (GOOD.replace("= 100", "= -100"), "evaluate_every", "is -100"),
    "a spacing that is a date": (
        GOOD.replace("= 100", "= 2026-01-01"),
        "evaluate_every",
        "date(2026, 1, 1); needed: a whole number",
    ),
    "gamma of 1.5": (GOOD + "gamma = 1.5", "gamma", "gamma is 1.5; allowed"),
    "gamma of 1, for agents without a horizon": (GOOD + "gamma = 1", "agents[0]", "below 1.0"),
    "gamma of nan": (GOOD + "gamma = nan", "gamma", "gamma is nan"),
    "gamma of inf": (GOOD + "gamma = inf", "gamma", "gamma is inf"),
    "gamma of true": (GOOD + "gamma = true", "gamma", "is True; needed: a number"),
    "gamma of 5000 digits": (GOOD + f"gamma = {VERY_LONG}", "gamma", "a very long number"),
    "a gamma of an agent": (GOOD + "settings.qrm.gamma = -inf", "settings.qrm.gamma", "is -inf"),
    "a negative threshold": (GOOD + "settings.rmax.t_env = -1", "settings.rmax.t_env", "is -1"),
    "a threshold that is a time": (
        GOOD + "settings.rmax.t_env = 12:00:00",
        "settings.rmax.t_env",
        "t_env is datetime.time(12, 0)",
    ),
    "a reward of nan": (agents('{ agent = "rmax", r_max = nan }'), "agents[0].r_max", "is nan"),
    "a slip above 1": (GOOD + "world.slip = 2", "world.slip", "slip is 2"),
    "a true slip": (GOOD + "world.slip = true", "world.slip", "slip is True"),
    "unknown slips": (
        GOOD + 'world.slips = "up"',
        "world.slips",
        "allowed: 'perpendicular', 'any'",
    ),
    "a flag that is a number": (
        GOOD + "world.decorations_terminate = 1",
        "world.decorations_terminate",
        "allowed: True, False",
    ),
    "no checks in a row": (
        GOOD + 'stop = { rule = "nominal", in_a_row = 0 }',
        "stop.in_a_row",
        "in_a_row is 0",
    ),
    # further inside
    "in a protocol": (
        GOOD + "[protocols.mine]\nmax_stepz = 3",
        "protocols.mine.max_stepz",
        "did you mean 'max_steps'?",
    ),
    "problems in a protocol": (
        GOOD + '[protocols.mine]\nproblems = ["office/map1/exp1"]',
        "protocols.mine.problems",
        "unknown key 'problems'",
    ),
    "agents of a protocol": (
        GOOD + '[protocols.mine]\nagents = ["qrmax", "rmx"]',
        "protocols.mine.agents[1]",
        "did you mean 'rmax'?",
    ),
    "settings of a protocol": (
        GOOD + "[protocols.mine.settings.rmax]\nt_enw = 3",
        "protocols.mine.settings.rmax.t_enw",
        "did you mean 't_env'?",
    ),
    "the world of a protocol": (
        GOOD + "[protocols.mine.world]\nslip = -1",
        "protocols.mine.world.slip",
        "slip is -1",
    ),
    "the rule of a protocol": (
        GOOD + '[protocols.mine]\nstop = { rule = "budget", alpha = 0.1 }',
        "protocols.mine.stop.alpha",
        "unknown setting of budget",
    ),
    "settings of an unknown agent": (
        GOOD + "[settings.qrmaxx]\nt_env = 3",
        "settings.qrmaxx",
        "did you mean 'qrmax'?",
    ),
    "a setting that another agent has": (
        GOOD + "[settings.rmax]\nalpha = 0.5",
        "settings.rmax.alpha",
        "unknown setting of rmax 'alpha'",
    ),
    "a setting on a problem": (
        GOOD + 'on."*".rmax.vmax = 3.0',
        "on.*.rmax.vmax",
        "did you mean 'v_max'?",
    ),
    "settings of an unknown agent on a problem": (
        GOOD + 'on."*".rmx.v_max = 3.0',
        "on.*.rmx",
        "did you mean 'rmax'?",
    ),
    "settings on a problem that the study does not have": (
        GOOD + 'on."office/row/fetsch".qrmax.v_max = 3.0',
        "on.office/row/fetsch",
        "did you mean 'office/row/fetch'?",
    ),
    "settings of a protocol on a problem that the study does not have": (
        GOOD + 'protocol = "mine"\nprotocols.mine.on."office/*/fetsch".qrmax.v_max = 3.0',
        "protocols.mine.on.office/*/fetsch",
        "unknown problem",
    ),
    # patterns of agents
    "a pattern that no agent fits": (
        GOOD + '[settings."ucbvy-*"]\nhorizon = 3',
        "settings.ucbvy-*",
        "unknown agent 'ucbvy-*'",
    ),
    "a setting that no agent of a pattern has": (
        GOOD + '[settings."psrl*"]\nbonus_scale = 3.0',
        "settings.psrl*.bonus_scale",
        "unknown setting of psrl, psrl-rm, psrl-exact 'bonus_scale'",
    ),
    "a value that no agent of a pattern accepts": (
        GOOD + '[settings."*rmax*"]\nt_env = -3',
        "settings.*rmax*.t_env",
        "t_env is -3",
    ),
    # agents that stand for others
    "an unknown agent in another's place": (
        GOOD + 'protocols.mine.agents.qrmax = "rmx"',
        "protocols.mine.agents.qrmax",
        "did you mean 'rmax'?",
    ),
    "an agent in the place of none": (
        GOOD + 'protocols.mine.agents.qrmx = "rmax"',
        "protocols.mine.agents.qrmx",
        "did you mean 'qrmax'?",
    ),
    "an unknown agent in another's place on a problem": (
        GOOD + 'on."*".agents.qrmax = "rmx"',
        "on.*.agents.qrmax",
        "did you mean 'rmax'?",
    ),
    "no table of agents on a problem": (
        GOOD + 'on."*".agents = ["rmax"]',
        "on.*.agents",
        "needed: a table",
    ),
    "a number in an agent's place": (
        GOOD + "protocols.mine.agents.qrmax = 3",
        "protocols.mine.agents.qrmax",
        "is 3; needed: text",
    ),
    # files
    "no such map file": (
        problems('{ map = "nowhere.txt", task = "fetch.toml" }'),
        "problems[0]",
        "nowhere.txt: cannot be read: No such file",
    ),
    "no such task file": (
        problems('{ map = "row.txt", task = "nowhere.toml" }'),
        "problems[0]",
        "nowhere.toml: cannot be read: No such file",
    ),
    "a NUL in a path": (
        problems(r'{ map = "a\u0000.txt", task = "fetch.toml" }'),
        "problems[0]",
        "cannot be read",
    ),
    "a map that is a task": (
        problems('{ map = "fetch.toml", task = "fetch.toml" }'),
        "problems[0]",
        "fetch.toml",
    ),
    "no such reference": (GOOD + 'reference = "x.csv"', "reference", "x.csv: cannot be read"),
    "a reference with words": (GOOD + 'reference = "words.csv"', "reference", "words.csv, line 2"),
    "a reference without problems": (
        GOOD + 'reference = "no_problem.csv"',
        "reference",
        "has no column 'problem'",
    ),
    "a reference with too many columns": (
        GOOD + 'reference = "wide.csv"',
        "reference",
        "wide.csv, line 2",
    ),
    # what does not go together
    "an agent that cannot know the machine": (
        problems('{ map = "row.txt", task = "chance.toml" }').replace('"qrmax"', '"qrmax-rm"'),
        "agents[0]",
        "on office/row/chance: ",
    ),
}


@pytest.mark.parametrize(("text", "place", "words"), ONE_MISTAKE.values(), ids=list(ONE_MISTAKE))
def test_a_mistake_is_one_message_with_its_place(
    folder: Path, text: str, place: str, words: str
) -> None:
    [message] = mistakes(folder, text)
    assert message.startswith(f"{place}: ")
    assert words in message
    assert len(message) < 2000


@pytest.mark.parametrize("text", ["problems = ", "[[", "a = 1\na = 2", "x = " + "[" * 5000])
def test_what_is_no_toml_is_said_to_be_none(folder: Path, text: str) -> None:
    with pytest.raises(StudyError, match=r"tiny\.toml: not valid TOML"):
        parsed(folder, text)


def test_an_empty_file_lacks_everything(folder: Path) -> None:
    found = mistakes(folder, "# nothing yet\n")
    assert sorted(line.partition(":")[0] for line in found) == ["agents", "problems", "seeds"]


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    text = """
        title = 3
        problems = ["office/map9/exp1", { name = "office/map1/exp1", slip = "x", slpi = 1 }, 7]
        agents = ["qrmx", { agent = "rmax", t_E = 3, t_env = 0 }, "qrm", "qrm"]
        seeds = -1
        max_step = 3
        reference = "nowhere.csv"
        protocol = "mine"
        stop = { rule = "nominal", within = 0.1, in_a_row = 0 }
        [world]
        slip = 3
        [settings.qrmax]
        gamma = 2.0
        [protocols.yours]
        gamma = "high"
    """
    places = [message.partition(":")[0] for message in mistakes(folder, text)]
    assert sorted(places) == sorted(
        [
            "title",
            "problems[0]",
            "problems[1].slip",
            "problems[1].slpi",
            "problems[2]",
            "agents[0]",
            "agents[1].t_E",
            "agents[1].t_env",
            "agents[3]",
            "seeds",
            "max_step",
            "reference",
            "protocol",
            "stop.within",
            "stop.in_a_row",
            "world.slip",
            "settings.qrmax.gamma",
            "protocols.yours.gamma",
        ]
    )


def test_what_does_not_fit_together_is_told_at_once_too(folder: Path) -> None:
    text = problems('"office/map1/exp1", "office/map1/exp1", "office/map8/*"')
    text += 'stop = { rule = "welch", in_a_row = 9 }\nreference = "words.csv"\n'
    text += "settings.qrmax.t_E = 3\non.office.qrmax.t_env = 4\n"  # of the other kind, in between
    places = [message.partition(":")[0] for message in mistakes(folder, text)]
    assert places == [
        "settings.qrmax.t_E",
        "problems[1]",
        "problems[2]",
        "stop",
        "on.office",
        "reference",
    ]


def test_an_agent_that_refuses_a_problem_is_told_among_the_rest(folder: Path) -> None:
    edge = 'to = "has_coffee"'
    (folder / "chance.toml").write_text(FETCH.replace(edge, f"{edge}, probability = 0.5"))
    text = problems('{ map = "row.txt", task = "chance.toml" }')
    text = text.replace('"qrmax"', '"qrmax", "qrmax-rm"').replace(
        "seeds = 2", "seeds = [-1, 2, -3]"
    )
    found = mistakes(folder, text)
    assert [message.partition(":")[0] for message in found] == ["seeds[0]", "seeds[2]", "agents[1]"]
    assert "on office/row/chance: task 'chance' is a stochastic reward machine" in found[-1]


def test_a_study_counts_the_steps_to_the_threshold_for_good(folder: Path) -> None:
    text = agents('{ agent = "qrmax", t_env = 5 }') + 'stop = { rule = "stays", within = 0.1 }'
    study = parsed(folder, text)
    assert study.training["stop"] == "stays"
    outcomes = [advance(Assignment(run.config(), b"", 60.0)).data for run in study.runs()]
    assert [(found["reached"], found["trained"]) for found in outcomes] == [(True, 600)] * 2
    assert all(found["steps"] < 600 for found in outcomes)


def test_runs_that_differ_only_in_their_labels_are_the_same_run_twice(folder: Path) -> None:
    twice = '"qrmax", { agent = "qrmax", label = "again" }'
    twice += ', { agent = "qrmax", label = "x", t_env = 39 }'
    again, as_by_default = mistakes(folder, agents(twice))
    assert again.startswith("agents[1]: again on office/row/fetch: is the same as 'qrmax'")
    assert as_by_default.startswith("agents[2]: x on office/row/fetch: is the same as 'qrmax'")
    row = '{ map = "row.txt", task = "fetch.toml" }'
    other = '{ map = "row.txt", task = "fetch.toml", label = "other" }'
    [message] = mistakes(folder, problems(f"{row}, {other}"))
    assert "on other: is the same as 'qrmax' on 'office/row/fetch'" in message


def test_a_protocol_asked_for_must_exist_too(folder: Path) -> None:
    [message] = mistakes(folder, GOOD, protocol="as-descirbed")
    assert message.startswith("protocol: unknown protocol")
    assert "did you mean 'as-described'?" in message


def test_a_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(QRMaxError, match="No such file"):
        qrmax.load_study(tmp_path / "none.toml")
    with pytest.raises(QRMaxError, match=r"did you mean 'paper/table4'\?"):
        qrmax.load_study("paper/tabel4")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(QRMaxError, match="not UTF-8"):
        qrmax.load_study(tmp_path / "bytes.toml")
    (tmp_path / "empty.toml").write_text("  \n")
    with pytest.raises(QRMaxError, match="is empty"):
        qrmax.load_study(tmp_path / "empty.toml")


# --- what counts before what


def first_settings(study: Study) -> dict[str, Any]:
    return dict(study.cells[0].settings)


def test_a_study_that_says_little_gets_the_defaults_of_the_library(folder: Path) -> None:
    text = problems('"office/map1/exp1"').replace("max_steps = 600\nevaluate_every = 100\n", "")
    study = parsed(folder, text)
    assert study.protocol is None
    assert study.seeds == (0, 1)
    assert study.training == {
        "max_steps": 1_000_000,
        "evaluate_every": 1000,
        "stop": "exact",
        "in_a_row": 3,
        "within": 0.05,
    }
    assert first_settings(study)["t_env"] == 39
    assert first_settings(study)["gamma"] == 0.9
    assert study.cells[0].problem.options["slip"] == 0.2


def test_what_is_said_nearer_counts_more(folder: Path) -> None:
    layers = [
        ("protocol = 'as-published'\n", 0.0, 250, 39),
        ("[world]\nslip = 0.1\n[settings.qrmax]\nt_env = 5\n", 0.1, 250, 5),
        (
            "[protocols.as-published]\nevaluate_every = 50\nworld.slip = 0.3\n"
            "settings.qrmax.t_env = 6\n",
            0.3,
            50,
            6,
        ),
    ]
    text = GOOD.replace("evaluate_every = 100\n", "").replace("600", "2000")
    for addition, slip, every, t_env in layers:
        text += addition
        study = parsed(folder, text)
        assert study.cells[0].problem.options["slip"] == slip
        assert study.training["evaluate_every"] == every
        assert first_settings(study)["t_env"] == t_env
        assert study.cells[0].agent == "qrmax-published"
        assert study.training["max_steps"] == 2000
    entry = '{ map = "row.txt", task = "fetch.toml", slip = 0.4 }'
    text = text.replace('{ map = "row.txt", task = "fetch.toml" }', entry)
    text += 'on."office/row/*".qrmax.t_env = 7\n'
    study = parsed(folder, text)
    assert study.cells[0].problem.options["slip"] == 0.4
    assert first_settings(study)["t_env"] == 7
    text = text.replace('["qrmax"]', '[{ agent = "qrmax", t_env = 8 }]')
    assert first_settings(parsed(folder, text))["t_env"] == 8


def test_a_protocol_of_ones_own_may_name_agents_and_the_rule(folder: Path) -> None:
    text = (
        GOOD
        + """
        [protocols.quick]
        about = "quickly"
        agents = ["rmax", "qrm"]
        stop = { rule = "budget" }
        gamma = 0.5
    """
    )
    assert parsed(folder, text).agents == ("qrmax",)
    quick = parsed(folder, text, "quick")
    assert quick.agents == ("rmax", "qrm")
    assert quick.about == "quickly"
    assert quick.training["stop"] == "budget"
    assert {cell.settings["gamma"] for cell in quick.cells} == {0.5}


def test_agents_may_stand_in_the_protocol_alone(folder: Path) -> None:
    text = GOOD.replace('agents = ["qrmax"]', 'protocol = "mine"')
    study = parsed(folder, text + '[protocols.mine]\nagents = ["qrm"]\n')
    assert study.agents == ("qrm",)
    text = text.replace('protocol = "mine"', 'protocol = "as-described"')
    [message] = mistakes(folder, text + '[protocols.mine]\nagents = ["qrm"]\n')
    assert message.startswith("agents: is missing")


def test_the_protocol_asked_for_counts_more_than_the_one_in_the_file(folder: Path) -> None:
    text = GOOD + 'protocol = "as-published"\n'
    assert parsed(folder, text).protocol == "as-published"
    described = parsed(folder, text, "as-described")
    assert described.protocol == "as-described"
    assert described.cells[0].agent == "qrmax"
    assert described.comparable is False


def test_gamma_is_for_all_agents_but_those_that_have_their_own(folder: Path) -> None:
    text = agents('"qrmax", "rmax", { agent = "qrm", gamma = 0.7 }')
    study = parsed(folder, text + "gamma = 0.5\nsettings.rmax.gamma = 0.6\n")
    assert [cell.settings["gamma"] for cell in study.cells] == [0.5, 0.6, 0.7]


def test_settings_on_a_problem_are_for_its_agents_alone(folder: Path) -> None:
    text = problems('"office/map1/exp1", "office/map1/exp2"').replace(
        '"qrmax"', '"rmax", "rmax-rm"'
    )
    text += 'on."*exp2".rmax.v_max = 3.0\n'
    assert [cell.settings["v_max"] for cell in parsed(folder, text).cells] == [
        None,
        None,
        3.0,
        None,
    ]


def test_settings_of_a_pattern_are_for_all_agents_that_fit_and_have_them(folder: Path) -> None:
    text = agents('"qrmax", "rmax", "qrm", "ucbvi-b", "psrl"')
    text += '[settings."*rmax"]\nt_env = 7\nt_task = 3\n[settings."[up]*"]\nhorizon = 9\n'
    text += "bonus_scale = 0.5\n"
    found = {cell.agent: cell.settings for cell in parsed(folder, text).cells}
    assert (found["qrmax"]["t_env"], found["qrmax"]["t_task"]) == (7, 3)
    assert found["rmax"]["t_env"] == 7
    assert found["qrm"] == parsed(folder, agents('"qrm"')).cells[0].settings
    assert (found["ucbvi-b"]["horizon"], found["ucbvi-b"]["bonus_scale"]) == (9, 0.5)
    assert found["psrl"]["horizon"] == 9


@pytest.mark.parametrize(
    ("addition", "t_env"),
    [
        ('settings."q*max".t_env = 5\n', 5),
        ('settings."q*max".t_env = 5\nsettings."*".t_env = 6\n', 6),  # the later one
        ('settings.qrmax.t_env = 7\nsettings."*".t_env = 6\n', 7),  # the name
        ('on."*"."*".t_env = 8\nsettings.qrmax.t_env = 7\n', 8),  # on a problem
        ('on."*".qrmax.t_env = 9\non."office/row/fetch"."*".t_env = 10\n', 10),
        ('on."office/row/fetch".qrmax.t_env = 11\non."*".qrmax.t_env = 12\n', 11),
        ('protocols.mine.settings."*".t_env = 13\non."*".qrmax.t_env = 12\n', 13),
    ],
)
def test_a_name_counts_more_than_a_pattern_and_a_layer_more_than_those_below(
    folder: Path, addition: str, t_env: int
) -> None:
    text = GOOD + 'protocol = "mine"\nprotocols.mine.comparable = true\n'
    assert first_settings(parsed(folder, text + addition))["t_env"] == t_env


def test_a_protocol_says_which_agent_stands_for_a_name(folder: Path) -> None:
    text = agents('"qrmax", "rmax"') + "settings.qrmax.t_env = 5\n"
    text += (
        'protocols.mine.agents.qrmax = "qrmax-rm"\nprotocols.mine.settings.qrmax-rm.t_task = 2\n'
    )
    study = parsed(folder, text, "mine")
    assert [cell.agent for cell in study.cells] == ["qrmax-rm", "rmax"]
    assert study.agents == ("qrmax", "rmax")  # as the study names them
    assert (first_settings(study)["t_env"], first_settings(study)["t_task"]) == (5, 2)
    assert [cell.agent for cell in parsed(folder, text).cells] == ["qrmax", "rmax"]


def test_an_agent_may_stand_for_another_on_some_problems_alone(folder: Path) -> None:
    text = problems('"office/map1/exp[123]"').replace('"qrmax"', '"qrmax", "rmax"')
    text += (
        'protocols.mine.agents.qrmax = "qrmax-rm"\n'
        'protocols.mine.on."office/map1/exp[12]".agents.qrmax = "qr-ucb"\n'
        'protocols.mine.on."office/map1/exp2".agents.qrmax = "qrmax"\n'
        'protocols.mine.on."*".qr-ucb.t_min = 7\n'
    )
    study = parsed(folder, text, "mine")
    assert study.agents == ("qrmax", "rmax")
    ours = [cell for cell in study.cells if cell.label == "qrmax"]
    assert [cell.agent for cell in ours] == ["qr-ucb", "qrmax", "qrmax-rm"]
    assert ours[0].settings["t_min"] == 7


def test_a_pattern_stands_for_all_that_fit_and_an_entry_for_one(folder: Path) -> None:
    study = parsed(folder, problems('"office/map[12]/exp[13]", { map = "map3", task = "exp2" }'))
    assert study.problems == (
        "office/map1/exp1",
        "office/map1/exp3",
        "office/map2/exp1",
        "office/map2/exp3",
        "office/map3/exp2",
    )
    assert study.cells[-1].problem.name == "office/map3/exp2"
    assert study.cells[-1].problem.map is None


def test_labels_name_variants_of_agents_and_problems(folder: Path) -> None:
    text = agents('"qrmax", { agent = "qrmax", label = "few samples", t_env = 2 }').replace(
        '{ map = "row.txt", task = "fetch.toml" }',
        '"office/map1/exp1", { name = "office/map1/exp1", label = "no slips", slip = 0.0 }',
    )
    study = parsed(folder, text)
    assert study.agents == ("qrmax", "few samples")
    assert study.problems == ("office/map1/exp1", "no slips")
    assert len(study) == 8
    assert len(study.only(agent=["qrmax"])) == 8  # the agent's name is meant, too
    assert len(study.only(agent=["few*"], problem=["no slips"], seed=["1"])) == 1
    with pytest.raises(ParameterError, match="no run of 'tiny' matches; it has the problems"):
        study.only(agent=["rmax"])


def test_a_map_and_a_task_of_ones_own_are_carried_as_text(folder: Path) -> None:
    spec = parsed(folder, GOOD).cells[0].problem
    assert (spec.map and spec.map.text, spec.task and spec.task.text) == (ROW, FETCH)
    assert (spec.map and spec.map.name, spec.name) == ("row.txt", None)
    assert spec.make().n_states == 4


@pytest.mark.parametrize(
    "entry",
    [
        '{ map = "row.txt", task = "fetch.toml" }',
        '"office/row.txt/fetch.toml"',
        '{ name = "office/row.txt", task = "fetch.toml" }',
        '{ name = "office", map = "./row.txt", task = "fetch.toml" }',
    ],
)
def test_files_are_looked_for_beside_the_study(
    folder: Path, entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "there.toml").write_text(problems(entry))
    (tmp_path / "row.txt").write_text("start: 0,0\n\n. . c O .\n")  # not this one
    monkeypatch.chdir(tmp_path)
    study = qrmax.load_study(folder / "there.toml")
    assert study.name == "there"
    spec = study.cells[0].problem
    assert spec.map is not None
    assert spec.map.text == ROW
    assert spec.label == "office/row/fetch"
    assert [run.id for run in study.runs()] == [run.id for run in parsed(folder, GOOD).runs()]


@pytest.mark.parametrize(
    "entry",
    [
        '"office/map4/exp6"',
        '{ map = "map4", task = "exp6" }',
        '{ name = "office/map4", task = "exp6" }',
        '{ name = "office", map = "map4", task = "exp6" }',
        '"office/map4/map4/exp6"',
    ],
)
def test_a_map_has_its_own_task_however_it_is_written(folder: Path, entry: str) -> None:
    spec = parsed(folder, problems(entry)).cells[0].problem
    assert (spec.name, spec.map, spec.task) == ("office/map4/exp6", None, None)
    assert spec.make().n_task_states == qrmax.make("office/map4/exp6").n_task_states == 4


def test_a_reference_is_read_and_may_have_gaps(folder: Path) -> None:
    assert parsed(folder, GOOD + 'reference = "good.csv"').reference == {"row": {"qrmax": 3.0}}


def test_seeds_are_a_count_or_a_list(folder: Path) -> None:
    assert parsed(folder, seeds("3")).seeds == (0, 1, 2)
    assert parsed(folder, seeds("[7, 3]")).seeds == (7, 3)


def test_runs_come_seed_by_seed(folder: Path) -> None:
    text = problems('"office/map1/exp1", "office/map1/exp2"')
    runs = [(run.cell.problem.label, run.seed) for run in parsed(folder, text).runs()]
    assert runs == [
        ("office/map1/exp1", 0),
        ("office/map1/exp2", 0),
        ("office/map1/exp1", 1),
        ("office/map1/exp2", 1),
    ]


# --- plain data, and ids


built_in = cache(qrmax.load_study)

OWN_PROTOCOLS = {"samples/random", "samples/random-office"}  # studies with settings of their own
IN_PROTOCOLS = [
    (name, protocol)
    for name in study_names()
    if name not in OWN_PROTOCOLS
    for protocol in protocol_names()
    if name.startswith("samples/") == (protocol == "stays")
]


@pytest.mark.parametrize(("name", "protocol"), IN_PROTOCOLS)
def test_a_study_comes_back_from_plain_data_and_from_json(name: str, protocol: str) -> None:
    study = built_in(name, protocol)
    assert study.protocol == protocol
    assert Study.of(study.as_data()) == study
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study
    assert [run.id for run in Study.of(study.as_data()).runs()] == [run.id for run in study.runs()]


def test_a_study_of_ones_own_comes_back_too(folder: Path) -> None:
    study = parsed(folder, GOOD + 'title = "Mine"\nabout = "x"\nreference = "good.csv"\n')
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study


def test_data_that_describe_no_study_are_refused(folder: Path) -> None:
    data = parsed(folder, GOOD).as_data()
    for key in data.keys() - {"title", "about", "reference", "comparable", "file"}:
        with pytest.raises(StudyError, match="a part is missing"):
            Study.of({name: value for name, value in data.items() if name != key})
    with pytest.raises(StudyError, match="a part is missing"):
        Study.of({**data, "colour": "red"})


MATTERS: dict[str, Callable[[str], str]] = {
    "seed": lambda text: text.replace("seeds = 2", "seeds = [5]"),
    "agent": lambda text: text.replace('"qrmax"', '"qrmax-rm"'),
    "t_env": lambda text: text + "settings.qrmax.t_env = 40\n",
    "t_task": lambda text: text + "settings.qrmax.t_task = 2\n",
    "gamma": lambda text: text + "gamma = 0.95\n",
    "r_max": lambda text: text + "settings.qrmax.r_max = 2.0\n",
    "v_max": lambda text: text + "settings.qrmax.v_max = 2.0\n",
    "tolerance": lambda text: text + "settings.qrmax.tolerance = 0.01\n",
    "slip": lambda text: text + "world.slip = 0.1\n",
    "slips": lambda text: text + 'world.slips = "any"\n',
    "decoration_penalty": lambda text: text + "world.decoration_penalty = 1.0\n",
    "decorations_terminate": lambda text: text + "world.decorations_terminate = false\n",
    "blocked_moves_slip": lambda text: text + "world.blocked_moves_slip = true\n",
    "max_episode_steps": lambda text: text + "world.max_episode_steps = 999\n",
    "max_steps": lambda text: text.replace("600", "700"),
    "evaluate_every": lambda text: text.replace("= 100", "= 50"),
    "dense_checks": lambda text: "dense_checks = 2\n" + text,
    "task_by": lambda text: text + "settings.qrmax.task_by = 'label'\n",
    "rule": lambda text: text + 'stop = "nominal"\n',
    "within": lambda text: text + 'stop = { rule = "exact", within = 0.06 }\n',
    "in_a_row": lambda text: text + 'stop = { rule = "exact", in_a_row = 2 }\n',
    "map": lambda text: text.replace("row.txt", "longer.txt"),
    "task": lambda text: text.replace("fetch.toml", "other.toml"),
}


def ids(folder: Path, text: str) -> list[str]:
    return [run.id for run in parsed(folder, text).runs()]


@pytest.mark.parametrize("change", MATTERS.values(), ids=list(MATTERS))
def test_an_id_changes_with_everything_that_matters(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    write_tiny(tmp_path)
    (tmp_path / "longer.txt").write_text(ROW.replace(". .", ". . ."))
    (tmp_path / "other.toml").write_text(FETCH.replace("1.0", "2.0"))
    changed = ids(tmp_path, change(GOOD))
    assert not {*changed} & {*ids(tmp_path, GOOD)}
    assert changed == ids(tmp_path, change(GOOD))


def test_an_id_changes_with_the_text_of_a_map(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    before = ids(tmp_path, GOOD)
    (tmp_path / "row.txt").write_text(ROW + "\n")
    assert not {*ids(tmp_path, GOOD)} & {*before}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + 'title = "Another"\n',
        lambda text: text + 'about = "Something"\n',
        lambda text: text.replace('"qrmax"', '{ agent = "qrmax", label = "mine" }'),
        lambda text: text.replace("{ map", '{ label = "here", map'),
        lambda text: text.replace("seeds = 2", "seeds = [0, 1]"),
        lambda text: text + "settings.qrmax.t_env = 39\nsettings.rmax.t_env = 3\n",
        lambda text: text + "settings.qrmax.r_max = 1\n",
        lambda text: text + "world.slip = 0.2\nworld.decoration_penalty = 0\n",
        lambda text: text + 'reference = "good.csv"\n',
        lambda text: text + 'protocol = "mine"\n[protocols.mine]\ncomparable = false\n',
    ],
)
def test_an_id_does_not_change_with_what_does_not_matter(
    folder: Path, change: Callable[[str], str]
) -> None:
    assert ids(folder, change(GOOD)) == ids(folder, GOOD)


def test_the_order_of_a_study_does_not_change_its_ids(folder: Path) -> None:
    text = agents('"qrmax", "rmax"').replace("seeds = 2", "seeds = [0, 1]")
    turned = agents('"rmax", "qrmax"').replace("seeds = 2", "seeds = [1, 0]")
    assert {*ids(folder, text)} == {*ids(folder, turned)}
    assert ids(folder, text) != ids(folder, turned)


def test_these_ids_are_those_of_folders_that_exist(folder: Path) -> None:
    """Another hash would have all results so far run again, but for names changed on purpose."""
    runs = parsed(folder, GOOD).runs()
    assert [golden.identity(run) for run in runs] == ["9a57fd6f5bf4077f", "9ef51fcb7fe28446"]
    first: RunSpec = next(built_in("paper/table4", "as-published").runs())
    assert first.id == "634b0927ceffdbaa"


# --- the built-in studies


def test_the_default_rule_of_continuous_problems_is_success(folder: Path) -> None:
    text = problems('"continuous/line/ab"').replace('"qrmax"', '"bucket-qrmax"')
    assert parsed(folder, text).training["stop"] == "success"


def test_all_runs_of_table_4_have_ids_of_their_own() -> None:
    study = built_in("paper/table4", "as-published")
    assert len(study) == 2700
    others = [qrmax.load_study("paper/table4", name) for name in ("exact", "as-described")]
    runs = [run for each in (study, *others) for run in each.runs()]
    assert len({run.id for run in runs}) == 8100


@pytest.mark.parametrize("protocol", protocol_names())
def test_the_built_in_studies_are_of_the_size_that_they_should_have(protocol: str) -> None:
    sizes = {name: len(built_in(name, protocol)) for name, of in IN_PROTOCOLS if of == protocol}
    expected = {
        "paper/bucket": 6 * 11 * 10,
        "paper/bucket-sizes": 2 * 9 * 10,
        "paper/baselines": 10 * 10,
        "paper/bucket-fine": 6 * 3 * 10,
        "paper/bucket-published": 2 * 3 * 10,
        "paper/horizons": 9 * 10,
        "paper/sensitivity": 3 * 10 * 10,
        "paper/table1": 3 * 11 * 10,
        "paper/table4": 15 * 6 * 30,
        "paper/table4-unknown": 15 * 4 * 10,
        "paper/table6": 5 * 11 * 10,
        "samples/ablation": 6 * 18 * 30,
        "samples/long": 3 * 9 * 10,
        "samples/office": 17 * 27 * 30,
        "samples/sensitivity": 3 * 23 * 30,
        "smoke": 2 * 6 * 2,
    }
    assert sizes == {name: expected[name] for name in sizes}
    assert sizes


def test_as_published_is_what_the_published_numbers_were_made_with() -> None:
    study = built_in("paper/table4", "as-published")
    assert study.training == {
        "max_steps": 20_000_000,
        "evaluate_every": 250,
        "stop": "nominal",
        "in_a_row": 6,
    }
    assert study.comparable
    options = {json.dumps(dict(cell.problem.options), sort_keys=True) for cell in study.cells}
    assert [json.loads(text) for text in options] == [
        {
            "slip": 0.0,
            "slips": None,
            "decoration_penalty": 100.0,
            "decorations_terminate": True,
            "blocked_moves_slip": False,
            "max_episode_steps": 1001,
        }
    ]
    q_table = {"gamma": 0.9, "alpha": 0.1, "epsilon": 0.1, "q0": 2.0}
    model = {"gamma": 0.9, "t_env": 39, "r_max": 1.0, "tolerance": 0.01}
    expected = {
        "q-learning": q_table,
        "qrm": q_table,
        "rmax": {**model, "v_max": 1.0},
        "rmax-rm": {**model, "v_max": 10.0},
        "qrmax": {**model, "t_task": 1, "v_max": None},
        "qrmax-rm": {**model, "t_task": 1, "v_max": None},
    }
    for cell in study.cells:
        assert dict(cell.settings) == expected[cell.label], cell.problem.label


def test_as_published_has_the_published_rules_of_the_baselines_as_well() -> None:
    study = built_in("paper/table6", "as-published")
    agents = {cell.label: cell.agent for cell in study.cells}
    for name in ("qrmax", "rmax", "ucbvi-sb", "ucbvi-b", "ucbvi-h"):
        assert agents[name] == f"{name}-published"
    opsrl = {cell.problem.label: cell.agent for cell in study.cells if cell.label == "opsrl"}
    assert opsrl.pop("office/map0/exp0") == "opsrl-published"  # where the paper has numbers of it
    assert {*opsrl.values()} == {"opsrl"}
    for name in ("qrm", "psrl", "ucbvi-b-rm", "psrl-rm"):
        assert agents[name] == name
    ours = [cell.settings for cell in study.cells if cell.label in ("ucbvi-b", "opsrl")]
    assert {(settings["gamma"], settings["r_min"]) for settings in ours} == {(1.0, 0.0)}


SLIPS = {"slip": 0.2, "slips": None, "decorations_terminate": True, "max_episode_steps": 1000}


def test_as_described_is_what_the_text_of_the_paper_says() -> None:
    study = built_in("paper/table4", "as-described")
    assert study.training == {
        "max_steps": 2_000_000,
        "evaluate_every": 5000,
        "stop": "welch",
        "in_a_row": 1,
        "episodes": 10_000,
        "alpha": 0.1,
        "gamma": 0.9,
    }
    assert not study.comparable
    for cell in study.cells:
        at_walls = {"blocked_moves_slip": True, "decoration_penalty": 100.0}
        assert cell.problem.options == SLIPS | at_walls
        assert not cell.agent.endswith("-published")
        assert cell.settings.get("t_env", 39) == 39
        assert cell.settings["gamma"] == 0.9


def test_exact_judges_all_learners_by_one_yardstick() -> None:
    study = built_in("paper/table6", "exact")
    assert study.training == {
        "max_steps": 2_000_000,
        "evaluate_every": 1000,
        "stop": "exact",
        "in_a_row": 3,
        "within": 0.05,
        "gamma": 0.9,
    }
    assert not study.comparable
    for run in study.only(seed=["0"]).runs():
        assert run.cell.problem.options == SLIPS | {
            "blocked_moves_slip": False,
            "decoration_penalty": 0.0,
        }
        assert run.cell.agent == run.cell.label
        assert run.cell.settings.get("t_env", 39) == 39
        assert run.cell.settings["gamma"] == 0.9  # all optimise what they are judged by
        # what is the learner's own objective anyway is the run that it always was
        assert ("gamma" in run.training) == ("horizon" in run.cell.settings)


@pytest.mark.parametrize(
    ("protocol", "horizons"),
    [
        ("exact", [91, 117, 115, 182, 234]),
        ("as-described", [50, 150, 150, 350, 250]),
        ("as-published", [50, 150, 150, 350, 173]),
    ],
)
def test_horizons_are_those_of_the_paper_or_of_its_rule(protocol: str, horizons: list[int]) -> None:
    study = built_in("paper/table6", protocol)
    for label in ("ucbvi-sb", "ucbvi-b", "ucbvi-h", "psrl", "opsrl", "ucbvi-b-rm", "psrl-rm"):
        cells = [cell for cell in study.cells if cell.label == label]
        assert [cell.settings["horizon"] for cell in cells] == horizons


def test_a_horizon_may_be_auto_wherever_settings_are_given(folder: Path) -> None:
    text = agents('{ agent = "psrl", horizon = "auto" }, "ucbvi-b", "qrmax"')
    study = parsed(folder, text + '[settings."*"]\nhorizon = "auto"\n')
    assert [cell.settings.get("horizon") for cell in study.cells] == [8, 8, None]
    [message] = mistakes(folder, agents('{ agent = "psrl", horizon = "never" }'))
    assert "horizon is 'never'" in message


def test_an_optimistic_value_is_given_to_r_max_where_rewards_are_large() -> None:
    for name in ("paper/table1", "paper/table6"):
        found = {
            cell.problem.label: cell.settings["v_max"]
            for cell in qrmax.load_study(name, "as-published").cells
            if cell.label == "rmax"
        }
        assert found.pop("office/map4/exp6") == 1000.0
        assert {*found.values()} == {1.0}


def test_the_reference_of_table_4_is_that_of_the_paper() -> None:
    reference = qrmax.load_study("paper/table4").reference
    assert reference["office/map3/exp5"]["qrmax"] == 159597
    assert len(reference) == 15


# --- whatever is in the file


RICH = (
    GOOD
    + """
title = "Tiny"
gamma = 0.9
protocol = "as-described"
reference = "good.csv"
stop = { rule = "exact", within = 0.05, in_a_row = 2 }
[world]
slip = 0.1
slips = "any"
[settings.qrmax]
t_env = 3
[protocols.quick]
max_steps = 300
agents = [{ agent = "rmax", label = "r", t_env = 2 }]
"""
)
PIECES = st.sampled_from(
    [
        *["", "=", "[", "]", "{", "}", '"', ",", "'", "#", "\n", "\\u0000", "..", "é", "0x1F"],
        *["nan", "-1", "1e400", "true", "2026-01-01", "office/map1/*", "[world]", "stop", "seeds"],
    ]
)


def study_or_error(folder: Path, text: str) -> None:
    """Whatever it is, it is a study or an error of ours."""
    try:
        study = parsed(folder, text)
    except QRMaxError:
        return
    assert isinstance(study, Study)
    assert json.loads(json.dumps(study.as_data())) == study.as_data()


@ignore_warnings
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(RICH)), st.integers(0, 12), PIECES), min_size=1, max_size=4
    )
)
def test_a_good_file_with_typing_errors_is_a_study_or_an_error(
    folder: Path, changes: list[tuple[int, int, str]]
) -> None:
    text = RICH
    for start, length, piece in changes:
        text = text[:start] + piece + text[start + length :]
    study_or_error(folder, text)


KEYS = [
    *["title", "about", "comparable", "problems", "agents", "seeds", "protocol", "protocols"],
    *["settings", "on", "world", "gamma", "stop", "max_steps", "evaluate_every", "reference"],
    *["name", "map", "task", "label", "agent", "rule", "within", "in_a_row", "t_env", "slip"],
    *["slips", "qrmax", "rmax", "quick", "as-described", "as-published", "r_max", "office/*"],
]
WORDS = [*KEYS, "", "row.txt", "fetch.toml", "good.csv", "office/map1/exp1", "exact", "any", "*"]
SCALARS = (
    st.booleans()
    | st.integers()
    | st.integers(0, 1000)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=5)
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


def as_toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case list():
            return "[" + ", ".join(map(as_toml, value)) + "]"
        case dict():
            inner = (f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items())
            return "{ " + ", ".join(inner) + " }"
        case str():
            return json.dumps(value).replace("\x7f", "\\u007f")
        case float():
            return repr(value)
    return str(value)


@ignore_warnings
@given(data=st.dictionaries(st.sampled_from(KEYS[:16]), VALUES, max_size=6))
def test_anything_under_the_known_keys_is_a_study_or_an_error(
    folder: Path, data: dict[str, Any]
) -> None:
    good = {"problems": ["office/map1/exp1"], "agents": ["qrmax"], "seeds": 2}
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in {**good, **data}.items())
    study_or_error(folder, text)


@ignore_warnings
@given(
    place=st.sampled_from(["world", "settings.qrmax", "stop", "on", "protocols.quick"]),
    value=VALUES,
)
def test_anything_further_inside_is_a_study_or_an_error(
    folder: Path, place: str, value: Any
) -> None:
    inside = value if isinstance(value, dict) else {"slip": value, "t_env": value, "rule": value}
    lines = "".join(f"{json.dumps(key)} = {as_toml(one)}\n" for key, one in inside.items())
    study_or_error(folder, f"{GOOD}\n[{place}]\n{lines}")


def test_a_study_can_be_changed_in_python(folder: Path) -> None:
    study = parsed(folder, GOOD)
    assert len(study.changed(seeds=(3,))) == 1


def test_a_study_takes_tasks_in_any_format_and_worlds_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "row.txt").write_text("start: 0,0\n\n. c . O *\n")
    qrmax.save_task(qrmax.load_task("exp1"), tmp_path / "mine.mmd")
    (tmp_path / "study.toml").write_text(
        'problems = [{ map = "row.txt", task = "mine.mmd" },'
        ' { map = "row.txt", task = "toro-icarte/t1", label = "his" },'
        ' "office/map1/toro-icarte/t1", { name = "warehouse/deliver", size = 3 }, "river-swim/*"]\n'
        'agents = [{ agent = "qrmax", t_task = 20 }]\nseeds = 1\n'
    )
    study = qrmax.load_study(tmp_path / "study.toml")
    labels = ["office/row/exp1", "his", "office/map1/toro-icarte/t1", "warehouse/deliver"]
    assert study.problems == (*labels, "river-swim/patrol", "river-swim/noisy-patrol")
    made = [cell.problem.make() for cell in study.cells]
    assert made[0].machine == qrmax.load_task("exp1")
    assert made[1].machine == made[2].machine == qrmax.load_task("toro-icarte/t1")
    assert made[3].n_states == 9
