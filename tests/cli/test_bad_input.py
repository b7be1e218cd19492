"""Bad input on the command line: one message, exit code 2, nothing written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from command_line import GOOD_TASK, QRMAX, run

BAD_FILES = {
    "ragged.txt": "start: 0,0\n\n. . .\n\n. .\n",
    "tile.txt": "start: 0,0\n\n. X .\n",
    "outside.txt": "start: 9,9\n\n. . .\n",
    "solid.txt": "start: 0,0\n\n# .\n",
    "no_start.txt": "# nothing\n\n. .\n",
    "header.txt": "strat: 0,0\n\n. .\n",
    "empty.txt": "",
    "syntax.toml": "initial = ",
    "key.toml": GOOD_TASK + "inital = 1\n",
    "guard.toml": GOOD_TASK.replace("coffee", "coffee & )"),
    "state.toml": GOOD_TASK + 'states = ["s"]\n',
    "number.toml": GOOD_TASK.replace(" }", f", reward = {'1' * 5000} }}"),
}
SOLVE = ("solve", "office/map1/exp1")
PLAN = ("plan", "office/map1/exp1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "map", "ragged.txt"], "ragged.txt, line 5, column 4"),
        (["show", "map", "tile.txt"], "tile.txt, line 3, column 3: unknown tile 'X'"),
        (["show", "map", "outside.txt"], "the start 9,9 is outside"),
        (["show", "map", "solid.txt"], "on a wall"),
        (["show", "map", "no_start.txt"], "no start"),
        (["show", "map", "header.txt"], "not a header line"),
        (["show", "map", "empty.txt"], "is empty"),
        (["solve", "office/map1/exp1", "--show", "--json"], "give one of them"),
        (["show", "map", "."], "is a directory"),
        (["show", "map", "nowhere.txt"], "No such file"),
        (["show", "map", "bytes.txt"], "not UTF-8"),
        (["show", "map", "large.txt"], "100 MiB"),
        (["show", "map", "mapp1"], "did you mean 'map1'?"),
        (["show", "map", "map1", "-o", "."], "cannot be written"),
        (["show", "map", "map1", "-o", "/"], "cannot be written"),
        (["show", "task", "exp1", "-o", "missing/"], "'missing/' is a folder and cannot be"),
        (["show", "map", "map1", "-o", "missing/map.png"], "cannot be written"),
        (["show", "task", "syntax.toml"], "syntax.toml: not valid TOML"),
        (["show", "task", "key.toml"], "did you mean 'initial'?"),
        (["show", "task", "guard.toml"], "edges[0].when: guard, column 10"),
        (["show", "task", "state.toml"], "not among the declared states"),
        (["show", "task", "number.toml"], "number.toml"),
        (["show", "task", "expp1"], "did you mean 'exp1'?"),
        (["solve", "--map", "decorated.txt", "--task", "exp1"], "the start is a decoration"),
        (["solve", "--map", "map1", "--task", "guard.toml"], "guard.toml, edges[0].when"),
        (["solve"], "or --map and --task"),
        (["solve", "office/map1"], "such as 'office/map1/exp0', or --task"),
        (["solve", "office//exp1"], "map"),
        (["solve", "ofice/map1/exp5"], "did you mean 'office/map1/exp5'?"),
        (["solve", "office/map1/exp1", "--map", "map2"], "already has a map"),
        (["solve", "office/map1/exp1", "--task", "exp2"], "give office/map1 and --task."),
        (["solve", "frozen-lake/ab", "--task", "F A"], "give frozen-lake and --task."),
        (
            ["solve", "river-swim/patrol", "--slip", "0"],
            "for office, warehouse, frozen-lake and random-office",
        ),
        *(([*SOLVE, "--gamma", g], f"gamma is {float(g)}") for g in ("0", "1", "1.5", "nan")),
        *(([*SOLVE, "--slip", p], f"slip is {p}") for p in ("-0.1", "1.1", "nan")),
        ([*SOLVE, "--slip", "x"], "'x' is not a valid float"),
        ([*SOLVE, "--slips", "up"], "'up' is not one of 'perpendicular', 'any'"),
        ([*SOLVE, "--decoration-penalty", "inf"], "error: --decoration-penalty is inf"),
        ([*SOLVE, "--max-episode-steps", "0"], "error: --max-episode-steps is 0"),
        ([*SOLVE, "--max-episode-steps", "x"], "'x' is neither a whole number nor 'none'"),
        ([*SOLVE, "--max-episode-steps", "9" * 20], "--max-episode-steps"),
        ([*SOLVE, "--gama", "0.5"], "No such option"),
        (["plan"], "or --map and --task"),
        ([*PLAN, "--agent", "qmax"], "did you mean 'qrmax'?"),
        ([*PLAN, "--epsilon", "0"], "epsilon is 0.0; allowed: numbers above 0.0, below 10.0"),
        ([*PLAN, "--epsilon", "x"], "'x' is not a valid float"),
        ([*PLAN, "--delta", "1"], "delta is 1.0"),
        ([*PLAN, "--gamma", "nan"], "gamma is nan"),
        ([*PLAN, "--r-max", "-1"], "--r-max is -1.0"),
        ([*PLAN, "--horizon", "0"], "horizon is 0"),
        (["slove"], "No such command 'slove'; did you mean 'solve'?"),
        (["show", "mpa"], "No such command 'mpa'"),
        (["show", "map"], "Missing argument"),
        (["list", "colours"], "'colours' is not one of"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_bad_input_is_one_message_exit_code_2_and_no_file(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    for name, text in BAD_FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "decorated.txt").write_text("start: 0,0\n\n* c O\n")
    (tmp_path / "bytes.txt").write_bytes(b"start: 0,0\n\n. \xff")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(100 * 2**20)
    before = sorted(tmp_path.iterdir())
    done = run(*arguments, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.lower().count("error: ") == 1
    assert words in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_bad_discount_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [QRMAX, *SOLVE, "--gamma", "1.5"], stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    process.kill()
    process.communicate()
    assert first.startswith("error: --gamma is 1.5")
