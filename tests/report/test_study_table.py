"""The page of a study: its origin, and the evaluation of its learners."""

from __future__ import annotations

import json
from pathlib import Path

import qrmax
from qrmax.report.study_table import study_layout
from qrmax.studies.study import Study
from qrmax.training.stopping import Stays


def test_a_page_says_which_learners_are_judged_by_what() -> None:
    about = study_layout(qrmax.load_study("paper/table6")).about
    assert "qrmax, qrmax-rm, rmax, qrm at gamma 0.9;" in about
    assert "psrl-rm at gamma 1 in episodes of H steps." in about
    assert "H is 50 on office/map0/exp0; 150 on office/map1/exp5" in about


def test_nothing_is_said_where_all_are_judged_alike() -> None:
    study = qrmax.load_study("paper/table6")
    one_horizon = study.only(agent=["psrl"], problem=["office/map[14]/*"])
    assert study_layout(one_horizon).about == study.about
    assert "H is 50" in study_layout(study.only(agent=["psrl"])).about


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
    assert command(built_in) == "qrmax sweep smoke --protocol as-described"


def test_a_study_made_in_python_names_no_file() -> None:
    study = qrmax.Study(["office/map1/exp1"], ["qrmax"], name="reg")
    assert command(study) == "qrmax.sweep(qrmax.Study(..., name='reg'))"
    study = qrmax.Study(["office/map1/exp1"], ["qrmax"], name="smoke", protocol="as-published")
    assert command(study) == (
        "qrmax.sweep(qrmax.Study(..., name='smoke', protocol='as-published'))"
    )
