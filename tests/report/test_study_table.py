"""The page of a study: its origin, and the evaluation of its learners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrmax
from qrmax.problems.simulator import Simulator
from qrmax.report.study_table import study_layout, study_table
from qrmax.seeding import stream
from qrmax.studies.study import Study
from qrmax.training.stopping import Stays


def test_a_page_says_which_learners_are_judged_by_what() -> None:
    about = study_layout(qrmax.load_study("paper/table6", "as-published")).about
    assert "Each learner is evaluated by its own objective" in about
    assert "qrmax, qrmax-rm, rmax, qrm at gamma 0.9;" in about
    assert "psrl-rm at gamma 1 in episodes of H steps." in about
    assert "H is 50 on office/map0/exp0; 150 on office/map1/exp5" in about


def test_a_page_says_that_there_is_one_yardstick_and_what_learners_plan_for() -> None:
    study = qrmax.load_study("paper/table6", "exact")
    about = study_layout(study).about
    assert "evaluated by one yardstick: gamma 0.9, in the problem's own episodes" in about
    assert "restarts with its first stage after H steps" in about
    assert "psrl-rm at gamma 0.9 in episodes of H steps." in about
    assert "H is 91 on office/map0/exp0; 117 on office/map1/exp5" in about
    assert "234 on office/map3/exp5" in about
    assert study_layout(study.only(agent=["qrm*"])).about == study.about


def test_nothing_is_said_where_all_are_judged_alike() -> None:
    study = qrmax.load_study("paper/table6", "as-published")
    one_horizon = study.only(agent=["psrl"], problem=["office/map[14]/*"])
    assert study_layout(one_horizon).about == study.about
    assert "H is 50" in study_layout(study.only(agent=["psrl"])).about


def test_a_page_names_the_agents_that_stand_for_others() -> None:
    about = study_layout(qrmax.load_study("paper/table6", "as-published")).about
    assert "qrmax is `qrmax-published`, qrmax-rm is `qrmax-rm-published`" in about
    assert "ucbvi-h is `ucbvi-h-published` but on office/map4/exp6, opsrl is `opsrl-p" in about
    assert "`opsrl-published` on office/map0/exp0." in about
    assert ", psrl is" not in about
    for name, protocol in (("paper/table6", "exact"), ("paper/sensitivity", None)):
        assert "other names" not in study_layout(qrmax.load_study(name, protocol)).about
    assert "other names" not in study_layout(qrmax.load_study("paper/baselines")).about


def test_a_page_has_the_own_objectives_of_learners_beside_the_yardstick(tmp_path: Path) -> None:
    study = qrmax.Study(
        ["office/map1/exp1"],
        ["qrmax-rm", {"agent": "ucbvi-b-rm", "horizon": 12}],
        seeds=2,
        stop={"rule": "exact", "gamma": 0.9},
        settings={"qrmax-rm": {"t_env": 5}},
        max_steps=6_000,
    )
    qrmax.sweep(study, folder=tmp_path, workers=1, progress=False)
    found = qrmax.results(tmp_path)
    assert found["own_gap"].is_null().to_list() == [True, False] * 2
    table = study_table(study, tmp_path)
    [section] = [part for part in table.markdown().split("## ") if "own objectives" in part[:30]]
    assert "| map1 exp1 | ucbvi-b-rm | 2 |" in section
    assert "of 2" in section
    assert "qrmax-rm" not in section.partition("| map1")[2].replace("ucbvi-b-rm", "")
    header, *rows = table.csv().splitlines()
    assert header.endswith("own_gap,own_gap_low,own_gap_high,own_reached,own_mean")
    assert rows[0].endswith(",,,,")


def test_a_page_says_where_the_optimum_stays_at_home() -> None:
    about = study_layout(qrmax.load_study("paper/table4", "as-described")).about
    assert (
        "On office/map3/exp4 (success 0 %, value 0); office/map3/exp5 (success 0 %, value 0) the "
        "optimal policy stays at home" in about
    )
    for protocol in ("exact", "as-published"):
        assert "at home" not in study_layout(qrmax.load_study("paper/table4", protocol)).about
    endless = qrmax.Study(["river-swim/patrol"], ["qrmax"])  # there is no success to speak of
    assert "at home" not in study_layout(endless).about


@pytest.mark.parametrize(
    ("protocol", "options", "world"),
    [
        ("as-described", {"decoration_penalty": 100.0, "blocked_moves_slip": True}, "of the runs"),
        ("exact", {}, "of the runs"),
        ("as-published", {}, "with its default options, which has slips"),  # training has none
    ],
)
def test_the_optimum_is_that_of_the_world_that_policies_are_judged_in(
    protocol: str, options: dict[str, Any], world: str
) -> None:
    """Against sampled episodes of the optimal policy of a problem that is made by hand."""
    whole = qrmax.load_study("paper/table4", protocol)
    layout = study_layout(whole.only(problem=["office/map1/exp1"], agent=["qrmax"]))
    length, success = layout.optimum["office/map1/exp1"]
    problem = qrmax.make("office/map1/exp1", **options)
    simulator, policy = Simulator(problem, stream(1, "world")), qrmax.solve(problem).policy
    lengths = []
    for _ in range(400):
        simulator.reset()
        taken, paid = 0, 0.0
        while not simulator.over:
            paid += simulator.step(int(policy[simulator.s, simulator.q])).r_task
            taken += 1
        lengths += [taken] if paid > 0.0 else []  # the task pays 1 for success
    assert np.mean(lengths) == pytest.approx(length, rel=0.1)
    assert len(lengths) / 400 == pytest.approx(success, abs=0.08)
    assert f"VI: the optimal policy for gamma 0.9 in the world {world}" in layout.about


def test_an_optimal_policy_that_stays_at_home_has_no_length() -> None:
    study = qrmax.load_study("paper/table4", "as-described").only(problem=["office/map3/exp5"])
    assert study_layout(study).optimum["office/map3/exp5"] == (None, 0.0)


def test_a_page_says_that_steps_are_those_for_good() -> None:
    study = qrmax.Study(["office/map1/exp1"], ["qrmax"], stop=Stays(within=0.02))
    assert "from there on a policy is within 2 % of the optimum" in study_layout(study).about


TINY = 'problems = ["office/map1/exp1"]\nagents = ["qrmax"]\nseeds = 1\n'


def command(study: Study) -> str:
    """The command on the page of a study that was stored and read again."""
    return study_layout(Study.of(json.loads(json.dumps(study.as_data())))).command


def test_the_command_is_that_of_the_file_or_of_the_built_in_study(tmp_path: Path) -> None:
    for name in ("tiny.toml", "smoke.toml", "other.txt"):  # a built-in study is called smoke, too
        (tmp_path / name).write_text(TINY)
        study = qrmax.load_study(tmp_path / name)
        assert command(study) == f"qrmax sweep {name}"
    built_in = qrmax.load_study("smoke")
    assert command(built_in) == "qrmax sweep smoke --protocol exact"


def test_a_study_made_in_python_names_no_file() -> None:
    study = qrmax.Study(["office/map1/exp1"], ["qrmax"], name="reg")
    assert command(study) == "qrmax.sweep(qrmax.Study(..., name='reg'))"
    study = qrmax.Study(["office/map1/exp1"], ["qrmax"], name="smoke", protocol="as-published")
    assert command(study) == (
        "qrmax.sweep(qrmax.Study(..., name='smoke', protocol='as-published'))"
    )
