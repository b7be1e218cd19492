"""Learning curves of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import StudyError
from qrmax.studies.event_file import Scalar, read_scalars
from qrmax.studies.foreign_runs import ForeignPoint, read_runs

MONITOR = """#{"t_start": 0.0, "env_id": "CliffWalking-v1"}
r,l,t,is_success
-1.0,40,0.1,False
1.0,70,0.2,True
1.0,100,0.3,True
0.0,500,0.9,False
"""


def logged(folder: Path, values: list[tuple[str, float, int]]) -> Path:
    tensorboard = pytest.importorskip("tensorboardX")
    with tensorboard.SummaryWriter(str(folder)) as writer:
        for tag, value, step in values:
            writer.add_scalar(tag, value, step)
    return next(folder.glob("*tfevents*"))


def test_scalars_are_those_that_were_logged(tmp_path: Path) -> None:
    values = [("rollout/ep_rew_mean", 0.5, 100), ("other", -2.0, 2**40), ("eval/x", 0.0, 0)]
    assert read_scalars(logged(tmp_path, values)) == [Scalar(t, s, v) for t, v, s in values]


def test_a_file_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = logged(tmp_path, [("x", float(i), i) for i in range(5)])
    path.write_bytes(path.read_bytes()[:-3])
    assert [scalar.step for scalar in read_scalars(path)] == [0, 1, 2, 3]


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = logged(tmp_path, [("x", 1.0, 1)])
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(StudyError, match="checksum"):
        read_scalars(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    path = Path(__file__).with_name("never-written")
    from qrmax.studies import event_file

    try:
        for record in event_file._records(data, str(path)):
            list(event_file._scalars(record))
    except StudyError:
        pass
    list(event_file._scalars(data))


def test_tensorboard_tags_of_sb3_are_known(tmp_path: Path) -> None:
    values = [("rollout/ep_rew_mean", 0.5, 100), ("rollout/success_rate", 0.25, 100)]
    (run,) = read_runs([logged(tmp_path, values)], every=100)
    assert run.curve == (ForeignPoint(100, 0.25, 0.5),)
    with pytest.raises(StudyError, match=r"has none of the scalars .*it has loss"):
        read_runs([logged(tmp_path / "b", [("loss", 1.0, 1)])], every=100)


def test_a_monitor_file_is_averaged_over_the_episodes_between_checks(tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_text(MONITOR)  # episodes end at 40, 110, 210 and 710
    (run,) = read_runs([path], every=100)
    assert run.curve == (
        ForeignPoint(100, 0.0, -1.0),
        ForeignPoint(200, 1.0, 1.0),
        ForeignPoint(300, 1.0, 1.0),
        ForeignPoint(800, 0.0, 0.0),
    )
    (run,) = read_runs([path], every=200)
    assert run.curve[0] == ForeignPoint(200, 0.5, 0.0)


def test_no_point_of_a_monitor_file_precedes_its_episodes(tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_text("#{}\nr,l\n" + "".join(f"{n},2500\n" for n in range(1, 6)))
    (run,) = read_runs([path], every=1000)
    steps = [(point.step, point.episode_return) for point in run.curve]
    assert steps == [(3000, 1.0), (5000, 2.0), (8000, 3.0), (10000, 4.0), (13000, 5.0)]


def test_episodes_after_the_last_check_have_a_point(tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_text("#{}\nr,l\n1,1000\n5,300\n7,300\n")
    (run,) = read_runs([path], every=1000)
    assert [*run.curve] == [ForeignPoint(1000, None, 1.0), ForeignPoint(2000, None, 6.0)]


def test_a_tidy_file_has_a_run_for_each_seed(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("seed,step,success\n7,100,0.5\n7,200,1\n8,100,0\n")
    runs = read_runs([path], every=100)
    assert [run.seed for run in runs] == [0, 1]
    assert runs[0].curve == (ForeignPoint(100, 0.5, None), ForeignPoint(200, 1.0, None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no points"),
        ("step,success\nx,1\n", "line 2: step is 'x'"),
        ("success\n1\n", "line 2: has no column step"),
        ("step,loss\n1,2\n", "neither a success nor a return"),
        ("step,success\n1,nan\n", "success is 'nan'"),
        ("#{}\nr,t\n1,2\n", "line 3: has no column l"),
        ("#{}\nr,l\n1,2\nx,2\n1,200\n", "line 4: r is 'x'"),
    ],
)
def test_bad_files_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        read_runs([path], every=100)
