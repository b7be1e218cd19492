"""`qrmax run`: what it prints, keeps and refuses."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

import qrmax
from command_line import GOOD_MAP, QRMAX, run
from qrmax.live_line import PlainLine
from small_studies import wait_until

KEYS = {
    "agent",
    "problem",
    "seed",
    "steps",
    "evaluate_every",
    "reason",
    "trained",
    "start_value",
    "gap",
    "best_start_value",
    "success",
    "best_success",
    "episodes",
    "mean_length",
    "nominal_length",
    "seconds",
    "settings",
    "stage_0",
}


def figures(*arguments: str, cwd: Path | None = None) -> dict[str, object]:
    done = run("run", *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def without_time(found: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in found.items() if key != "seconds"}


def test_a_run_says_what_python_says() -> None:
    found = figures("office/map1/exp5", "--agent", "qrmax-rm", "--seed", "7", "--set", "t_env=20")
    assert found.keys() == KEYS
    same = qrmax.train("qrmax-rm", qrmax.make("office/map1/exp5"), seed=7, t_env=20)
    assert (found["steps"], found["gap"]) == (same.steps, same.gap)
    assert found["reason"] == "exact"
    assert found["nominal_length"] == 55
    assert found["stage_0"] is None


HORIZON = ["office/map0/exp0", "--agent", "ucbvi-b-rm", "--horizon", "50"]


def test_a_run_with_stages_is_judged_by_them_and_says_what_the_first_alone_brings() -> None:
    problem = qrmax.make("office/map0/exp0")
    same = qrmax.train("ucbvi-b-rm", problem, horizon=50)
    found = figures(*HORIZON)
    evaluated = qrmax.evaluate(problem, same.recommendation, gamma=1.0)
    alone = qrmax.evaluate(problem, same.policy, gamma=1.0, max_episode_steps=50)
    assert (found["steps"], found["gap"]) == (same.steps, same.gap)
    assert found["start_value"] == evaluated.start_value
    assert found["stage_0"]["start_value"] == alone.start_value
    assert alone.start_value != evaluated.start_value
    text = run("run", *HORIZON, "--show").stdout
    assert re.search(r"^evaluated +with its policy of 50 stages, gamma 1$", text, re.MULTILINE)
    assert re.search(r"^stage 0 alone +\d.\d\d % success", text, re.MULTILINE)
    assert "\nthe policy of stage 0\n" in text


@pytest.mark.parametrize("show", [[], ["--show"]], ids=["plainly", "on the map"])
def test_the_best_for_so_many_steps_is_solved_for(show: list[str]) -> None:
    best = qrmax.solve_horizon(qrmax.make("office/map0/exp0"), 50)
    text = run("solve", "office/map0/exp0", "--horizon", "50", "--gamma", "1", *show).stdout
    assert f"{best.start_value:.6g}  (gamma 1, episodes of 50 steps)" in text
    assert "3.95 %  within 50 steps" in text
    assert ("the policy of stage 0; later stages may differ" in text) == bool(show)


def test_a_horizon_longer_than_the_episodes_of_the_world_is_no_longer() -> None:
    long = ["office/map0/exp0", "--horizon", "99999", "--max-episode-steps", "60", "--json"]
    found = json.loads(run("solve", *long).stdout)
    assert found["max_episode_steps"] == 60
    best = qrmax.solve_horizon(qrmax.make("office/map0/exp0"), 60, 0.9)
    assert found["start_value"] == best.start_value


def test_a_run_for_people_is_a_list_of_facts() -> None:
    done = run("run", "office/map1/exp1", "--agent", "qrmax-rm", "--show")
    assert done.returncode == 0
    assert re.search(r"^steps +[\d,]+  \(checked every 1,000\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^stopped by +exact$", done.stdout, re.MULTILINE)
    assert "task state has_coffee" in done.stdout  # the moves on the map


def test_shares_are_written_with_a_space_before_the_sign() -> None:
    done = run("run", "office/map1/exp1", "--agent", "qrmax-rm")
    assert re.search(r"^gap +\d+\.\d\d % to the optimum$", done.stdout, re.MULTILINE)
    assert re.search(r"^success +\d+\.\d\d %$", done.stdout, re.MULTILINE)
    assert not re.search(r"\d%", done.stdout + done.stderr)


@pytest.mark.parametrize("arguments", [["--agent", "qrmax"], HORIZON[1:]], ids=["qrmax", "ucbvi"])
def test_a_task_that_has_no_success_is_not_said_to_fail(arguments: list[str]) -> None:
    done = run("run", "river-swim/patrol", *arguments, "--max-steps", "2000")
    assert done.returncode == 0
    assert re.search(r"^success +the task has no success state$", done.stdout, re.MULTILINE)
    assert "nominal length" not in done.stdout
    assert "% success" not in done.stdout


def test_the_readme_shows_what_the_command_prints() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    command, shown = re.findall(
        r"^    \$ qrmax (run \S+ .*)\n((?:    \w.*\n)+)", readme, re.MULTILINE
    )[0]
    printed = run(*command.split()).stdout
    *facts, seconds = printed.splitlines()
    assert [line.strip() for line in shown.splitlines()][:-1] == facts
    assert seconds.startswith("seconds  ")


def test_a_run_that_hits_its_budget_says_so() -> None:
    budget = ["office/map1/exp5", "--agent", "q-learning", "--max-steps", "5000"]
    assert figures(*budget)["reason"] == "budget"
    assert "5,000, the budget: the rule 'exact' was not met" in run("run", *budget).stdout
    plain = run("run", *budget, "--stop", "budget").stdout
    assert re.search(r"^steps +5,000, the budget$", plain, re.MULTILINE)


def test_a_run_that_stays_near_the_optimum_says_from_where_to_where() -> None:
    options = ["--agent", "qrmax-rm", "--stop", "stays", "--max-steps", "60000"]
    found = figures("office/map1/exp5", *options)
    assert (found["reason"], found["trained"]) == ("stays", 60_000)
    said = rf"^steps +{found['steps']:,}, and on to the end at 60,000  \(checked every 1,000\)$"
    assert re.search(said, run("run", "office/map1/exp5", *options).stdout, re.MULTILINE)


def test_the_published_rules_are_agents_of_their_own() -> None:
    short = ["office/map1/exp1", "--max-steps", "2000", "--agent", "qrmax-published"]
    assert figures(*short)["agent"] == "qrmax-published"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["office/map1/exp1", "--agent", "qrmx"], "did you mean 'qrmax'?"),
        (["office/map1/exp1", "--set", "t_enw=3"], "did you mean 't_env'?"),
        (["office/map1/exp1", "--set", "t_env"], "not of the form NAME=VALUE"),
        (["office/map1/exp1", "--set", "t_env=0"], "t_env is 0"),
        (["office/map1/exp1", "--set", "t_env=many"], "t_env is 'many'"),
        (["office/map1/exp1", "--max-steps", "0"], "--max-steps is 0"),
        (["office/map1/exp1", "--agent", "psrl", "--set", "horizon=0"], "horizon is 0"),
        (["office/map1/exp1", "--agent", "psrl", "--set", "gamma=1.5"], "gamma is 1.5"),
        (["office/map1/exp1", "--agent", "opsrl", "--set", "sample=3"], "did you mean 'samples'?"),
        (["office/map1/exp1", "--seed", "-1"], "seed is -1"),
        (["office/map1/exp1", "--stop", "nominal", "--within", "0.1"], "is for --stop exact"),
        (["office/map1/exp1", "--agent", "qrm", "--alpha", "0.3"], "is --set alpha="),
        (["office/map1/exp1", "--agent", "qrm-published"], "did you mean 'qrmax-published'?"),
        (["office/map1/exp1", "--set", "gamma=0.5", "--gamma", "0.9"], "give one of them"),
        (["office/map1/exp1", "--agent", "psrl", "--horizon", "0"], "horizon is 0"),
        (["office/map1/exp1", "--horizon", "9"], "unknown setting of qrmax 'horizon'"),
        (["--resume", "nothing.run", "--set", "gamma=0.5"], "leave --set out"),
        (["office/map1/exp1", "--save", "no/such/folder/x"], "there is no folder"),
        (["--resume", "nothing.run"], "there is no such file"),
        (["office/map1/exp1", "--resume", "nothing.run"], "leave PROBLEM out"),
        (["--resume", "nothing.run", "--agent", "qrm"], "leave --agent out"),
        ([], "Give a PROBLEM"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_an_error_before_any_work(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = run("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert [*tmp_path.iterdir()] == []


def test_a_saved_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    whole = figures("office/map1/exp1", "--agent", "rmax", "--seed", "3")
    short = figures(
        *["office/map1/exp1", "--agent", "rmax", "--seed", "3"],
        *["--max-steps", "12345", "--save", "some.run"],
        cwd=tmp_path,
    )
    assert short["reason"] == "budget"
    resumed = figures("--resume", "some.run", "--max-steps", "1000000", cwd=tmp_path)
    assert without_time(resumed) == without_time(whole)
    assert qrmax.load(tmp_path / "some.run").steps == whole["steps"]  # it was saved again
    again = run("run", "--resume", "some.run", cwd=tmp_path)
    assert again.returncode == 0
    assert "has met its stopping rule; there is nothing to resume" in again.stderr


def test_going_on_without_steps_left_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    figures("office/map1/exp1", "--max-steps", "3000", "--save", "some.run", cwd=tmp_path)
    before = (tmp_path / "some.run").read_bytes()
    for more in ([], ["--max-steps", "2000"]):
        done = run("run", "--resume", "some.run", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "the run has taken 3000 steps" in done.stderr
    assert (tmp_path / "some.run").read_bytes() == before


@pytest.mark.filterwarnings("ignore:'q-learning' has spent")  # it depends on when it was stopped
def test_ctrl_c_saves_and_exits_with_130(tmp_path: Path) -> None:
    command = ["run", "office/map1/exp5", "--agent", "q-learning", "--stop", "budget"]
    command += ["--max-steps", "400000000", "--save", "broken-off.run"]
    command += ["--log", "curve.csv"]
    started = subprocess.Popen(
        [QRMAX, *command], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    log = tmp_path / "curve.csv"
    wait_until(lambda: log.exists() and log.read_text().count("\n") > 1)  # it trains
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert out == ""
    assert "resume with: qrmax run --resume broken-off.run" in err
    kept = qrmax.load(tmp_path / "broken-off.run")
    assert 0 < kept.trained < 400_000_000
    same = qrmax.train(
        "q-learning", qrmax.make("office/map1/exp5"), stop="budget", max_steps=kept.trained
    )
    assert (same.agent.q == kept.agent.q).all()


def test_progress_goes_to_stderr_and_is_plain_where_it_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PlainLine, "first", 0.0)  # seconds: it is ten
    done = run("run", "office/map1/exp1", "--agent", "qrm", "--json")
    json.loads(done.stdout)
    assert re.match(r"[\d,]+ steps  gap ", done.stderr)
    assert "\r" not in done.stderr
    assert "\x1b" not in done.stderr


def test_a_map_and_a_task_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(GOOD_MAP)
    (tmp_path / "my.toml").write_text(
        'initial = "s"\nsuccess = ["t"]\n'
        'edges = [{ from = "s", when = "office", to = "t", reward = 2.0 }]\n'
    )
    found = figures("--map", "my.txt", "--task", "my.toml", cwd=tmp_path)
    assert found["reason"] == "exact"
    settings = found["settings"]
    assert isinstance(settings, dict)
    assert settings["r_max"] == 2.0  # the largest reward of a step


def test_list_agents_tells_what_they_assume_and_can_be_told() -> None:
    shown = run("list", "agents").stdout
    for name in ("q-learning", "qrm", "rmax", "rmax-rm", "qrmax", "qrmax-rm"):
        assert re.search(rf"^{name} ", shown, re.MULTILINE)
    assert "does not know the machine" in shown
    assert "t_env=39" in shown


# --- real positions

LINE = ["continuous/line/ab", "--agent", "bucket-qrmax", "--gamma", "0.95", "--set", "grid=20"]


def test_a_world_with_real_positions_is_learned_and_judged_by_success() -> None:
    found = figures(*LINE, "--set", "t_env=3")
    problem = qrmax.make("continuous/line/ab")
    same = qrmax.train("bucket-qrmax", problem, gamma=0.95, grid=20, t_env=3)
    assert (found["steps"], found["episodes"]) == (same.steps, same.episodes)
    assert (found["reason"], found["success"]) == ("success", 1.0)
    assert found["nominal_length"] is None
    assert found["best_success"] == same.best.success == pytest.approx(1.0)
    gap = 1.0 - found["start_value"] / found["best_start_value"]
    assert found["gap"] == pytest.approx(gap)


def test_what_real_positions_bring_is_shown_beside_the_optimum_and_on_the_map() -> None:
    text = run("run", *LINE[:1], *LINE[3:], "--set", "t_env=3", "--show").stdout
    assert re.search(r"^agent +bucket-qrmax$", text, re.MULTILINE)
    assert re.search(r"^gap +\S+ % to the optimum: 0\.3\d+ of 0\.3495$", text, re.MULTILINE)
    assert re.search(
        r"^success +100\.00 %, sampled; the optimum has 100\.00 %$", text, re.MULTILINE
    )
    assert re.search(r"^mean length +\d\d\.\d steps, of successful episodes$", text, re.MULTILINE)
    assert re.search(r"^buckets +12$", text, re.MULTILINE)  # B is in the 12th
    assert "at the centre of each cell\n\ntask state start\n" in text


def test_the_best_moves_between_real_positions_are_shown_on_the_map() -> None:
    text = run("solve", "continuous/line/ab", "--show").stdout
    # to A, which ends 0.45 from the left, then to B, which begins there
    start, visited = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    assert re.sub(r"[^<>]", "", start) == ">" * 9 + "<" * 11
    assert re.sub(r"[^<>]", "", visited) == ">" * 12 + "<" * 8
    assert "> A> A>" in start


def test_a_saved_run_in_buckets_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    file = str(tmp_path / "line.run")
    short = figures(*LINE, "--max-episodes", "3", "--stop", "budget", "--save", file)
    assert 3 <= short["episodes"] <= 40
    done = run("run", "--resume", file)
    assert done.returncode == 2
    assert f"begun {short['episodes']} episodes, and --max-episodes is 3; give more" in done.stderr
    longer = figures("--resume", file, "--max-episodes", "90")
    assert longer["episodes"] >= 90
    assert longer["trained"] > short["trained"]
    whole = figures(*LINE, "--max-episodes", "90", "--stop", "budget")
    assert without_time(longer) == without_time(whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*LINE[:1], "--agent", "qrmax"], "for real-valued observations there are: bucket-qrmax"),
        (["office/map1/exp1", "--agent", "bucket-qrmax"], "for discrete states there are"),
        (
            [*LINE, "--slip", "0.1"],
            "--slip is for office, warehouse, frozen-lake and random-office worlds.",
        ),
        (["office/map1/exp1", "--noise", "0.1"], "--noise is for continuous worlds."),
        ([*LINE, "--noise", "-1"], "noise is -1"),
        ([*LINE, "--stop", "exact"], "are evaluated by sampling"),
        ([*LINE, "--max-episodes", "0"], "--max-episodes is 0"),
        (["continuous/lin/ab"], "did you mean 'continuous/line/ab'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_fit_real_positions_is_told(arguments: list[str], message: str) -> None:
    done = run("run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_plane_whose_task_has_no_success_is_not_said_to_fail(tmp_path: Path) -> None:
    (tmp_path / "again.toml").write_text(
        'initial = "s"\nedges = [{ from = "s", when = "A", to = "s", reward = 1 }]\n'
    )
    done = run("solve", "continuous/line", "--task", "again.toml", cwd=tmp_path)
    assert "success      the task has no success state\n" in done.stdout
    assert "length" not in done.stdout


def test_an_office_map_of_ones_own_is_walked_with_real_positions(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text(GOOD_MAP)
    own = ["continuous/office", "--map", "my.txt", "--task", "exp1", "--json"]
    found = json.loads(run("solve", *own, cwd=tmp_path).stdout)
    assert found["problem"] == "continuous/office/my/exp1"


def test_the_optimum_of_a_plane_is_solved_for() -> None:
    best = qrmax.solve_continuous(qrmax.make("continuous/line/ab"), 0.95)
    found = json.loads(run("solve", "continuous/line/ab", "--gamma", "0.95", "--json").stdout)
    assert found["start_value"] == best.start_value
    assert found["success_error"] == best.error.success
    text = run("solve", "continuous/line/ab", "--gamma", "0.95").stdout
    assert re.search(
        r"^start value +0\.349\d*  \(gamma 0.95; .* at half the resolution\)$", text, re.MULTILINE
    )
