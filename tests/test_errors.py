"""What an unknown name is answered with."""

from __future__ import annotations

import pytest

import qrmax
from qrmax.errors import UnknownNameError, did_you_mean


def test_a_few_names_are_all_listed() -> None:
    error = UnknownNameError("colour", "grene", ["red", "green", "blue"])
    assert str(error).split("\n  ") == [
        "unknown colour 'grene'",
        "did you mean 'green'?",
        "known: blue, green, red",
    ]


def test_of_many_names_the_nearest_are_listed() -> None:
    names = [f"{world}/{number}" for world in ("hill", "lake") for number in range(20)]
    error = UnknownNameError("place", "lak/7", names, hint="a map shows all")
    first, question, some, hint = str(error).split("\n  ")
    assert (first, question) == ("unknown place 'lak/7'", "did you mean 'lake/7'?")
    assert some.startswith("known: lake/7, lake/")
    assert some.endswith(", ... (40 in all)")
    assert some.count("lake") == 5
    assert hint == "a map shows all"


def test_of_many_names_some_are_listed_where_none_is_near() -> None:
    names = [f"name{number:02}" for number in range(30)]
    message = str(UnknownNameError("name", "?", names))
    assert message == (
        "unknown name '?'\n  known: name00, name01, name02, name03, name04, ... (30 in all)"
    )


@pytest.mark.parametrize("name", ["ofice/map1/exp5", "river-swim/patrole", "continuous/lin/ab"])
def test_an_unknown_problem_says_how_to_see_all_and_stays_short(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        qrmax.make(name)
    assert str(caught.value).endswith("all names: qrmax list")
    assert len(str(caught.value)) < 400


def test_names_that_are_not_near_are_not_suggested() -> None:
    assert did_you_mean("tea", ["a", "item", "mail"]) == ""
    assert did_you_mean("Cofee", ["coffee", "office"]) == "did you mean 'coffee'?"
