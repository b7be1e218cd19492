"""The line that shows how a run is doing: on a terminal, in a notebook, and elsewhere."""

from __future__ import annotations

import os
import queue
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import qrmax
from command_line import QRMAX
from gym_worlds import room
from qrmax import live_line
from qrmax.errors import ParameterError
from small_studies import QUICK, cpu_seconds, wait_until, write_study
from terminal import Seen, Window, on_a_terminal, seen, stderr_on_a_terminal

PROGRESS = re.compile(r"[━╸╺\s]*[\d,]+ (of [\d,]+ )?steps")
FACTS = re.compile(r"[\d,]+ steps  gap \d+\.\d %  success \d+\.\d %  known \d+\.\d %  \d:\d\d")


def drawn(shown: Seen) -> list[str]:
    """Each line of progress that was drawn."""
    return [line for line in shown.rewrites if PROGRESS.match(line)]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lines that are shown at every event, so that a short run has many."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for kind in (live_line.TerminalLine, live_line.PlainLine):
        monkeypatch.setattr(kind, "first", 0.0)
        monkeypatch.setattr(kind, "every", 0.0)
    return


def short_run(**options: Any) -> qrmax.Run:
    return qrmax.train(
        "qrmax", qrmax.make("office/map1/exp1"), **{"max_steps": 8000, "seed": 7, **options}
    )


# --- on a terminal


@pytest.mark.parametrize("columns", [40, 80])
def test_the_command_of_the_readme_leaves_no_line_of_progress_behind(columns: int) -> None:
    command = [QRMAX, "run", "office/map1/exp5", "--agent", "rmax"]
    shown = on_a_terminal(command, columns=columns)
    lines = drawn(shown)
    assert len(lines) > 1
    assert max(map(len, lines)) < columns
    _, _, result = shown.written.rpartition("\x1b[2K")  # after the line was erased the last time
    assert "office/map1/exp5" in result
    assert shown.lines == seen(result, columns).lines


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("columns", [10, 40, 80, 300])
def test_train_shows_what_is_known_in_one_line_as_wide_as_the_window(columns: int) -> None:
    with stderr_on_a_terminal(columns) as look:
        short_run()
        shown = look()
    lines = shown.rewrites
    assert len(lines) >= 8
    assert max(map(len, lines)) < columns
    assert shown.lines == []
    if columns >= 80:
        assert all(FACTS.match(line) for line in lines[1:])
        assert any("at most 0:" in line for line in lines)
    if columns == 40:
        assert all(re.match(r"[\d,]+ steps  gap \d+\.\d %  \S", line) for line in lines[1:])


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("rule", ["budget", "stays"])
def test_a_bar_and_the_time_left_are_there_where_the_budget_will_be_used(rule: str) -> None:
    with stderr_on_a_terminal(140) as look:
        short_run(stop=rule, max_episodes=10_000)
        shown = look()
    line = r"[━╸╺]{24}  [\d,]+ of 8,000 steps  [\d,]+ of 10,000 episodes  gap .* \d:\d\d left"
    assert any(re.match(line, text) for text in drawn(shown))
    assert "at most" not in shown.written


@pytest.mark.usefixtures("eager")
def test_resume_shows_the_line_and_knows_what_was_known() -> None:
    run = short_run(max_steps=2000)
    with stderr_on_a_terminal() as look:
        run.resume(max_steps=2500)  # without a check on the way
        run.resume(max_steps=4000)
        shown = look()
    assert FACTS.match(drawn(shown)[0])
    assert shown.lines == []


@pytest.mark.usefixtures("eager")
def test_an_environment_shows_the_success_of_its_policy() -> None:
    with stderr_on_a_terminal() as look:
        qrmax.train("qrmax-rm", room(), max_steps=4000, t_env=1)
        shown = look()
    assert any("  success 100.0 %  " in line for line in drawn(shown))


@pytest.mark.usefixtures("eager")
def test_what_is_printed_and_warned_of_in_between_comes_out_whole() -> None:
    def tell(_: Any) -> None:
        print("a row of mine", file=sys.stderr)
        odd = UserWarning("something odd " * 8)  # and long
        sys.stderr.write(warnings.formatwarning(odd, UserWarning, "mine.py", 1, "line = 1"))

    with stderr_on_a_terminal() as look:
        short_run(max_steps=3000, on_event=tell)
        shown = look()
    assert len(drawn(shown)) >= 3
    assert not [line for line in shown.lines if PROGRESS.search(line)]
    assert shown.lines.count("a row of mine") >= 3
    assert sum("UserWarning: something odd" in line for line in shown.lines) >= 3
    assert " ".join(shown.lines).count("something odd") >= 3 * 8
    assert shown.lines.count("  line = 1") >= 3


@pytest.mark.usefixtures("eager")
def test_a_run_within_a_run_leaves_the_line_to_the_outer_one() -> None:
    with stderr_on_a_terminal() as look:
        short_run(on_event=lambda _: short_run(max_steps=1500, stop="budget"))
        shown = look()
    assert drawn(shown)
    assert "of 1,500 steps" not in shown.written
    assert shown.lines == []


@pytest.mark.usefixtures("eager")
def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    colours = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
    for wish, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", wish)
        with stderr_on_a_terminal() as look:
            short_run(stop="budget", max_steps=3000)
            assert bool(colours.search(look().written)) is coloured


@pytest.mark.usefixtures("eager")
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with stderr_on_a_terminal() as look:
        short_run(max_steps=3000)
        shown = look()
    assert "\x1b" not in shown.written
    assert shown.lines == shown.rewrites == drawn(shown)


def test_when_the_window_becomes_narrower_so_does_the_line() -> None:
    def narrow(window: Window) -> None:
        window.resize(40, 40)
        worked = cpu_seconds(window.process.pid)
        wait_until(lambda: cpu_seconds(window.process.pid) > worked + 0.5)  # it draws meanwhile
        os.killpg(window.process.pid, signal.SIGINT)

    command = [QRMAX, "run", "office/map1/exp5", "--agent", "q-learning", "--stop", "budget"]
    shown = on_a_terminal(
        [*command, "--max-steps", "900000000"], columns=100, when_shown=narrow, code=130
    )
    widths = [len(line) for line in drawn(shown)]
    assert widths[0] > 40 > widths[-1]
    # the cursor waits at the beginning of the line, wherever a terminal wraps it, and all after it
    # is erased
    assert shown.written.count("\x1b[J") >= len(widths)
    assert shown.lines[0].startswith("interrupted at step ")


# --- where nobody looks


@pytest.mark.usefixtures("eager")
def test_nothing_is_shown_where_that_is_not_wanted_or_nobody_looks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with stderr_on_a_terminal() as look:
        short_run(progress=False).resume(max_steps=9000, progress=False)
        assert look().written == ""
    short_run()
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("eager")
def test_plain_lines_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    short_run(progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) >= 8
    assert all(PROGRESS.match(line) for line in lines)
    assert "\x1b" not in err


def test_progress_is_true_false_or_none() -> None:
    with pytest.raises(ParameterError, match="progress is 'often'; allowed: True, False, None"):
        short_run(progress="often")


# --- a sweep in Python


@pytest.mark.usefixtures("eager")
def test_a_sweep_in_python_shows_its_line_too(tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    with stderr_on_a_terminal() as look:
        summary = qrmax.sweep(tmp_path / "study.toml", folder=tmp_path / "results", workers=1)
        qrmax.sweep(tmp_path / "study.toml", folder=tmp_path / "results", progress=False)
        shown = look()
    lines = [line for line in shown.rewrites if f"of {summary.done} runs" in line]
    assert len(lines) >= summary.done
    assert max(map(len, lines)) < 80
    assert shown.lines == []


# --- in a notebook

CELL = """
import qrmax
from qrmax.live_line import NotebookLine

NotebookLine.first = NotebookLine.every = 0.0
run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7, max_steps=8000)
"""


def test_in_a_notebook_it_is_one_output_that_is_updated_and_stays() -> None:
    outputs = run_cell(CELL)
    assert [kind for kind, _ in outputs if kind != "update_display_data"] == ["display_data"]
    assert len(outputs) >= 8
    texts = [content["data"]["text/plain"] for _, content in outputs]
    assert all(FACTS.match(text) for text in texts[1:])
    assert texts[-1].startswith("8,000 steps")
    assert len({content["transient"]["display_id"] for _, content in outputs}) == 1


def run_cell(code: str) -> list[tuple[str, Any]]:
    """What a notebook shows for a cell: run by a real kernel, in a process of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel()
        try:
            client.execute(code)
            outputs = []
            while True:
                message = client.get_iopub_msg(timeout=60)
                kind, content = message["msg_type"], message["content"]
                if kind == "status" and content["execution_state"] == "idle":
                    return outputs
                if kind not in ("status", "execute_input"):
                    outputs.append((kind, content))
        except queue.Empty:
            pytest.fail("the kernel does not answer")
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
