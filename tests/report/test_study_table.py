"""What the page of a study says of how its learners are evaluated."""

from __future__ import annotations

import qrmax
from qrmax.report.study_table import study_layout


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
