"""Formulas as tasks: as text, and in files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import FormulaError, ParameterError, QRMaxError, UnknownNameError
from qrmax.machines.task_files import SUFFIXES, load_task, read_task
from qrmax.source import Source

BRING = "F(coffee & F office) & G !decoration"
SAME = {
    "ltlf": BRING,
    "ldlf": "<true*;coffee;true*;office>tt | <true*;coffee & office>tt",
    "ppltl": "O(office & O coffee)",
}


def test_a_formula_is_a_task() -> None:
    task = load_task(BRING)
    assert task == qrmax.RewardMachine.from_ltlf(BRING, name=BRING)
    assert qrmax.make("office/map1", task=BRING).name == f"office/map1/{BRING}"


def test_other_logics_are_named() -> None:
    anyhow = qrmax.RewardMachine.from_ltlf("F(coffee & F office)")
    for logic in ("ldlf", "ppltl"):
        assert load_task(f"{logic}: {SAME[logic]}").equivalent(anyhow)
    assert load_task("ltlf:F(coffee & F office)").equivalent(anyhow)


@pytest.mark.parametrize("logic", SAME)
def test_a_file_has_its_logic_as_suffix(logic: str, tmp_path: Path) -> None:
    path = tmp_path / f"bring.{logic}"
    path.write_text(f"# what is wanted\n{SAME[logic]}\n  # and no more\n")
    task = load_task(path)
    assert task.name == "bring"
    assert task.equivalent(load_task(f"{logic}: {SAME[logic]}"))
    assert path.suffix in SUFFIXES


def test_quoted_names_keep_their_signs(tmp_path: Path) -> None:
    path = tmp_path / "odd.ltlf"
    path.write_text('F "hot  # coffee"\n')
    assert load_task(path).propositions == {"hot  # coffee"}


def test_a_name_that_is_none_is_no_formula() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'exp5'"):
        load_task("exp55")
    with pytest.raises(QRMaxError, match=r"my tasks/none\.toml"):
        load_task("my tasks/none.toml")


def test_mistakes_are_shown_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(FormulaError, match=r"^formula, column 3: '\(' without its '\)'"):
        load_task("G (coffee")
    path = tmp_path / "wrong.ltlf"
    path.write_text("# a comment\nF coffee\n  & & office\n")
    with pytest.raises(FormulaError, match=r"wrong.ltlf, line 3, column 5: unexpected '&'"):
        load_task(path)
    with pytest.raises(ParameterError, match=r"letters and compat are for \.txt files"):
        load_task(BRING, compat=True)


@given(st.sampled_from(sorted(SAME)), st.text(max_size=40))
def test_any_text_is_a_task_or_an_error_of_ours(logic: str, text: str) -> None:
    with suppress(QRMaxError):
        read_task(Source(f"any.{logic}", text))


def test_a_problem_with_real_positions_takes_a_formula() -> None:
    assert qrmax.make("continuous/line", task="F(A & F B)").machine.propositions == {"A", "B"}


def test_a_study_takes_a_formula(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        f'problems = [{{ map = "map1", task = "{BRING}" }}]\nagents = ["qrmax"]\nmax_steps = 3000\n'
        "seeds = 1\n"
    )
    study = qrmax.load_study(str(path))
    assert study.cells[0].problem.make().machine == load_task(BRING)


@pytest.mark.parametrize(
    ("text", "logic"), [("O(office & Y O coffee)", "ppltl"), ("<true*;coffee>tt", "ldlf")]
)
def test_a_formula_of_another_logic_is_told_so(text: str, logic: str) -> None:
    with pytest.raises(FormulaError, match=f"it is valid {logic.upper()}: write '{logic}: "):
        load_task(text)
    assert load_task(f"{logic}: {text}").success
