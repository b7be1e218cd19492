"""Groups of problems: by parts of their names, or as a study file says."""

from __future__ import annotations

from pathlib import Path

import pytest

import qrmax
from qrmax.errors import ParameterError, StudyError
from qrmax.studies.problem_groups import groups_of
from qrmax.studies.study import Study
from tiny_study import GOOD, parsed, problems, write_tiny

GROUPED = """
problems = ["office/map[12]/exp[1-3]"]
agents = ["qrmax"]
seeds = 1

[groups]
short = ["office/*/exp[12]"]
last = "office/map2/exp3"
"""


def test_problems_are_grouped_by_world_map_or_task() -> None:
    study = qrmax.load_study("paper/table4")
    assert [*groups_of(study, "map")] == ["map1", "map2", "map3"]
    assert groups_of(study, "map")["map2"] == tuple(f"office/map2/exp{n}" for n in range(1, 6))
    assert groups_of(study, "task")["exp4"] == tuple(f"office/map{n}/exp4" for n in (1, 2, 3))
    assert [*groups_of(study, "world")] == ["office"]
    continuous = qrmax.load_study("paper/bucket")
    assert [*groups_of(continuous, "world")] == ["continuous/frozen-lake", "continuous/office"]


def test_maps_and_tasks_of_ones_own_are_named_by_their_files(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    study = parsed(tmp_path, problems('{ map = "row.txt", task = "fetch.toml", label = "mine" }'))
    assert groups_of(study, "map") == {"row": ("mine",)}
    assert groups_of(study, "task") == {"fetch": ("mine",)}


def test_a_study_file_names_groups_and_keeps_them_in_its_results(tmp_path: Path) -> None:
    study = parsed(tmp_path, GROUPED)
    expected = {
        "short": tuple(f"office/map{m}/exp{n}" for m in (1, 2) for n in (1, 2)),
        "last": ("office/map2/exp3",),
    }
    assert groups_of(study, "group") == expected
    assert Study.of(study.as_data()).groups == study.groups
    only = study.only(problem=["office/map1/*"])
    assert groups_of(only, "group") == {"short": ("office/map1/exp1", "office/map1/exp2")}


def test_a_study_in_python_has_groups_too() -> None:
    study = qrmax.Study(["office/map1/exp[12]"], ["qrmax"], groups={"first": ["*/exp1"]})
    assert study.groups == {"first": ("office/map1/exp1",)}


def test_studies_without_groups_are_written_as_before_there_were_any(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    data = parsed(tmp_path, GOOD).as_data()
    assert "groups" not in data
    assert Study.of(data).groups == {}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ('short = ["office/map7/*"]', r"groups\.short\[0\]: unknown problem 'office/map7/\*'"),
        ("short = [3]", r"groups\.short\[0\]: is 3; needed: a name or a pattern"),
        ("short = 3", r"groups\.short: is 3; needed: a list"),
    ],
)
def test_mistakes_in_groups_have_a_place(tmp_path: Path, groups: str, message: str) -> None:
    text = GROUPED.replace('short = ["office/*/exp[12]"]', groups)
    with pytest.raises(StudyError, match=message):
        parsed(tmp_path, text)


def test_what_problems_do_not_have_is_refused() -> None:
    study = qrmax.Study(["river-swim/patrol", "office/map1/exp1"], ["qrmax"])
    with pytest.raises(ParameterError, match="'river-swim/patrol' has no map; allowed here: world"):
        groups_of(study, "map")
    with pytest.raises(ParameterError, match="has no groups; give them in the study file"):
        groups_of(study, "group")
    with pytest.raises(ParameterError, match="by is 'colour'; allowed: 'world', 'map', 'task'"):
        groups_of(study, "colour")
