"""Models in files of model checkers: round trips, what Storm makes of them, what is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from command_line import run
from qrmax.errors import ModelError, ParameterError, QRMaxError, SourceError, UnknownNameError
from qrmax.problems.formats import drn
from qrmax.problems.labelled import world_of
from qrmax.source import Source
from small_problems import errand

GAMMA = 0.9


@st.composite
def models(draw: st.DrawFn) -> qrmax.LabelledMDP:
    """Small models of every kind: random starts, ends, rewards, labels and names."""
    states, actions, width = (
        draw(st.integers(1, 6)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (states, actions, width)
    start = rng.dirichlet(np.ones(states)) if draw(st.booleans()) else 0
    mdp = qrmax.TabularMDP(
        rng.integers(states, size=shape),
        rng.dirichlet(np.ones(width), size=shape[:2]),
        rng.normal(size=shape) * 10.0 ** rng.integers(-8, 8, size=shape),
        terminal=rng.random(states) < 0.2,
        start=start,
    )
    names = ["goal", "key 2", "a-b", "ä"]
    return qrmax.LabelledMDP(
        mdp,
        [[name for name in names if rng.random() < 0.5] for _ in range(3)],
        rng.integers(3, size=states),
        state_names=[f"cell {s}" for s in range(states)] if draw(st.booleans()) else None,
        action_names=[f"act-{a}" for a in range(actions)] if draw(st.booleans()) else None,
    )


@given(models())
@settings(max_examples=60, deadline=None)
def test_a_model_is_read_back_as_it_was(model: qrmax.LabelledMDP) -> None:
    again = drn.parse(Source("again.drn", drn.format(model)))
    ours, theirs = model.mdp, again.mdp
    assert again.state_names == model.state_names
    if not ours.terminal.all():
        assert again.action_names == model.action_names
    assert (theirs.terminal == ours.terminal).all()
    np.testing.assert_allclose(theirs.start, ours.start, rtol=0.0, atol=1e-15)
    live = ~ours.terminal
    if live.any():
        assert theirs.expected_reward()[live] == pytest.approx(ours.expected_reward()[live])
        assert dense(theirs)[live] == pytest.approx(dense(ours)[live], abs=1e-15)
    for s in range(ours.n_states):
        assert again.labels[again.label[s]] == model.labels[model.label[s]]
    assert drn.format(drn.parse(Source("twice.drn", drn.format(again)))) == drn.format(again)


def dense(mdp: qrmax.TabularMDP) -> Any:
    """Probabilities [s, a, s']."""
    chance = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states))
    s, a, _ = np.indices(mdp.succ.shape)
    np.add.at(chance, (s, a, mdp.succ), mdp.prob)
    return chance


def test_numbers_are_exact_to_the_last_digit(tmp_path: Path) -> None:
    prob = [[[0.1 + 0.2, 1.0 - (0.1 + 0.2)]], [[1.0, 0.0]]]
    mdp = qrmax.TabularMDP([[[0, 1]], [[1, 0]]], prob, [[[1e-300 / 3, 1e-300 / 3]], [[2 / 3, 0.0]]])
    qrmax.save_model(mdp, tmp_path / "exact.drn")
    again = qrmax.load_model(tmp_path / "exact.drn").mdp
    assert again.prob.tolist() == prob
    assert again.expected_reward().tolist() == mdp.expected_reward().tolist()


# --- beside Storm


def storm_value(path: Path, formula: str) -> float:
    stormpy = pytest.importorskip("stormpy")
    model = stormpy.build_model_from_drn(str(path))
    environment = stormpy.environments.Environment()
    environment.solver().min_max().precision = stormpy.Rational(1e-12)
    checked = stormpy.model_checking(
        model, stormpy.parse_property(formula), environment=environment
    )
    return float(checked.get_value_vector()[model.initial_states[0]])


@pytest.mark.parametrize("name", ["office/map1/exp3", "river-swim/noisy-patrol"])
def test_storm_finds_the_same_optimum(name: str, tmp_path: Path) -> None:
    problem = qrmax.make(name)
    qrmax.save_model(problem, tmp_path / "problem.drn")
    ours = qrmax.solve(problem, GAMMA).start_value
    assert storm_value(
        tmp_path / "problem.drn", f'R{{"reward"}}max=? [ Cdiscount={GAMMA} ]'
    ) == pytest.approx(ours, rel=1e-6)
    read = qrmax.load_model(tmp_path / "problem.drn").problem()
    assert qrmax.solve(read, GAMMA).start_value == pytest.approx(ours, rel=1e-12)


def test_storm_finds_the_same_chance_of_success(tmp_path: Path) -> None:
    problem = qrmax.make("office/map1/exp1")
    qrmax.save_model(problem, tmp_path / "problem.drn")
    theirs = storm_value(tmp_path / "problem.drn", 'Pmax=? [ F "success" ]')
    paid_for = qrmax.solve(problem, 0.9999999).start_value  # 1 for success, nothing else
    assert theirs == pytest.approx(paid_for, rel=1e-4)


PRISM = """mdp
module walk
  x : [0..3] init 0;
  wet : bool init false;
  [go] x<3 -> 2/3 : (x'=x+1) + 1/3 : (wet'=true);
  [jump] x<2 -> 1/7 : (x'=x+2) + 6/7 : (x'=0);
  [] x=3 & !wet -> 1 : (x'=0);
endmodule
label "goal" = x=3;
rewards "cost"
  wet : 1.5;
  [go] true : 0.25;
endrewards
rewards "other"
  x=3 : 1;
endrewards
"""


def test_a_file_that_storm_writes_is_read_with_the_same_values(tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    from stormpy.io import DirectEncodingExporterOptions, export_to_drn

    (tmp_path / "walk.prism").write_text(PRISM)
    program = stormpy.parse_prism_program(str(tmp_path / "walk.prism"))
    options = stormpy.BuilderOptions(build_full=True)
    options.set_build_state_valuations(True)
    options.set_build_choice_labels(True)
    digits = DirectEncodingExporterOptions()
    for precision in (10, 17):
        digits.output_precision = precision
        built = stormpy.build_model(program, options=options)
        export_to_drn(built, str(tmp_path / "walk.drn"), options=digits)
        model = qrmax.load_model(tmp_path / "walk.drn", reward="cost")
        assert model.propositions == ["goal"]
        assert model.state_names is not None
        assert "x=0" in model.state_names[0]
        for reward in ("cost", "other"):  # the deadlock pays "other" for ever
            read = qrmax.load_model(tmp_path / "walk.drn", reward=reward).problem()
            theirs = storm_value(tmp_path / "walk.drn", f'R{{"{reward}"}}max=? [ Cdiscount=0.9 ]')
            assert qrmax.solve(read, GAMMA).start_value == pytest.approx(theirs, rel=1e-6)
        reach = storm_value(tmp_path / "walk.drn", 'Pmax=? [ F "goal" ]')
        assert reach == pytest.approx(1.0)
        assert model.mdp.n_states == built.nr_states
    with pytest.raises(ModelError, match=r"several reward models, 'cost', 'other'; choose one"):
        qrmax.load_model(tmp_path / "walk.drn")
    with pytest.raises(ModelError, match="no reward model 'costs'"):
        qrmax.load_model(tmp_path / "walk.drn", reward="costs")


def test_a_random_start_is_drawn_in_a_state_of_its_own(tmp_path: Path) -> None:
    mdp = qrmax.TabularMDP(
        [[[0]], [[1]]], [[[1.0]], [[1.0]]], [[[1.0]], [[3.0]]], start=[0.25, 0.75]
    )
    qrmax.save_model(mdp, tmp_path / "random.drn")
    assert qrmax.load_model(tmp_path / "random.drn").mdp.start.tolist() == [0.25, 0.75]
    theirs = storm_value(tmp_path / "random.drn", 'R{"reward"}max=? [ Cdiscount=0.5 ]')
    assert theirs == pytest.approx(0.5 * (0.25 * 2.0 + 0.75 * 6.0))  # a step later


# --- what is refused

GOOD = drn.format(qrmax.LabelledMDP.of(errand()))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("@type: MDP", "@type: CTMC", "line 1: a model of type 'CTMC'; allowed: MDP, DTMC"),
        ("@parameters\n", "@parameters\np", "line 3: the model has parameters"),
        ("@nr_states\n12", "@nr_states\nx", "'x' is not a whole number"),
        ("@nr_states\n12", "@nr_states\n13", "@nr_states is 13, and 12 are listed"),
        ("state 1 ", "state 2 ", "state 2; states are numbered: 1 is next"),
        ("\t1 : 1\n", "\t1 : one\n", "expected 'state N', 'action NAME' or 'N : PROBABILITY'"),
        ("\t1 : 1\n", "\t1 : 1/0\n", "'1/0' is not a number"),
        ("\t1 : 1\n", "\t1 : -1\n", "a probability of -1; allowed: 0 to 1"),
        ("\t1 : 1\n", "\t1 : 0.5\n", "the probabilities of a choice sum to 0.5; needed: 1"),
        ("\t1 : 1\n", "\t77 : 1\n", "this choice leads to state 77; there are 12 states"),
        ("action 0 [0]", "action 0 [0, 1]", "2 rewards, and 1 reward models"),
        ("action 0 [0]", "action 0 [1e999]", "'1e999' is not finite"),
        (" init", "", "0 states are labelled 'init'"),
        ("@model", "@odd", "'@odd' is not known"),
    ],
)
def test_what_is_wrong_with_a_file_is_shown(old: str, new: str, words: str) -> None:
    changed = GOOD.replace(old, new, 1)
    assert changed != GOOD
    with pytest.raises(ModelError) as caught:
        drn.parse(Source("mine.drn", changed))
    assert words in str(caught.value)
    assert str(caught.value).startswith("mine.drn")


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_text_is_read_or_refused(data: st.DataObject) -> None:
    lines = GOOD.split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        other = st.sampled_from(
            [*lines, "state 0 {", "\taction [", "9999999999 : 1", "//", '"', ""]
        )
        lines[at] = data.draw(other | st.text(max_size=20))
    with contextlib.suppress(QRMaxError):
        drn.parse(Source("fuzz.drn", "\n".join(lines)))


LISTED = """@type: MDP
@parameters

@reward_models

@nr_states
3
@model
state 0 init
\taction a|b
\t\t1 : 1/2
\t\t2 : 0.5
state 1 "my goal"
\taction a|b
\t\t0 : 1
\taction c
\t\t1 : 1
state 2 deadlock
\taction x
\t\t2 : 1
\taction y
\t\t2 : 1
\taction z
\t\t2 : 1
"""


def test_states_may_have_choices_of_their_own() -> None:
    model = drn.parse(Source("mine.drn", LISTED))
    assert model.mdp.succ[:2].tolist() == [[[1, 2], [1, 2]], [[0, 0], [1, 0]]]
    assert model.mdp.terminal.tolist() == [False, False, True]
    assert model.propositions == ["my goal"]
    assert model.action_names is None  # a|b is none of ours
    unnamed = drn.parse(Source("mine.drn", LISTED.replace("a|b", "0").replace(" c\n", " 1\n")))
    assert (unnamed.mdp.succ == model.mdp.succ).all()


def test_a_table_that_would_not_fit_is_refused() -> None:
    head = "@type: MDP\n@parameters\n\n@reward_models\n\n@model\nstate 0 init\n"
    wide = "\taction 0\n" + "".join(f"\t\t0 : {1 / 4096!r}\n" for _ in range(4096))
    more = "".join(f"state {s}\n\taction 0\n\t\t0 : 1\n" for s in range(1, 5000))
    with pytest.raises(ModelError, match="5000 states, 1 actions and up to 4096 successors"):
        drn.parse(Source("wide.drn", head + wide + more))


def test_names_that_a_format_cannot_hold_are_refused(tmp_path: Path) -> None:
    mdp = qrmax.TabularMDP([[[0]]], [[[1.0]]])
    with pytest.raises(ModelError, match="the proposition 'init' has a meaning of its own"):
        qrmax.save_model(qrmax.LabelledMDP(mdp, [{"init"}]), tmp_path / "x.drn")
    with pytest.raises(ModelError, match="an action is named 'go left'"):
        qrmax.LabelledMDP(mdp, action_names=["go left"])
    with pytest.raises(ModelError, match="state_names holds 2 entries; needed: 1"):
        qrmax.LabelledMDP(mdp, state_names=["a", "b"])
    with pytest.raises(UnknownNameError, match=r"unknown format of a model '\.xyz'"):
        qrmax.save_model(mdp, tmp_path / "x.xyz")
    with pytest.raises(ParameterError, match="needed: a Problem, a TabularMDP or a LabelledMDP"):
        qrmax.save_model("office/map1/exp1", tmp_path / "x.drn")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="cannot be read"):
        qrmax.load_model(tmp_path / "none.drn")
    assert [*tmp_path.iterdir()] == []


def test_the_world_alone_takes_any_task_again(tmp_path: Path) -> None:
    problem = qrmax.make("office/map1/exp1")
    qrmax.save_model(world_of(problem), tmp_path / "map1.drn")
    model = qrmax.load_model(tmp_path / "map1.drn")
    assert model.action_names == ("up", "right", "down", "left")
    assert model.state_names is not None
    assert model.state_names[13] == "x=1 y=1"
    again = model.problem("exp1", max_episode_steps=1000)
    assert qrmax.solve(again).start_value == pytest.approx(qrmax.solve(problem).start_value)


def test_the_command_line_exports_and_solves_what_it_exported(tmp_path: Path) -> None:
    done = run("export", "office/map1/exp1", "-o", "exp1.drn", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "written to exp1.drn\n")
    solved = run("solve", "exp1.drn", "--json", cwd=tmp_path)
    assert '"start_value": 0.08794625233' in solved.stdout
    for arguments, words in [
        (("export", "office/map1/exp1", "-o", "x.xyz"), "unknown format of a model '.xyz'"),
        (("export", "continuous/line/ab", "-o", "x.drn"), "has no explicit MDP"),
        (("solve", "exp1.drn", "--slip", "0.1"), "leave out --slip"),
        (("solve", "exp1.drn", "--reward", "cost"), "no reward model 'cost'; there are: 'reward'"),
        (("solve", "office/map1/exp1", "--reward", "r"), "--reward is for model files"),
        (("convert", "exp1", "x.drn"), "qrmax export PROBLEM -o FILE.drn"),
    ]:
        refused = run(*arguments, cwd=tmp_path)
        assert refused.returncode == 2
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr
