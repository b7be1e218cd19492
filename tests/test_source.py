"""Texts with names: what can be read, how an error points into one, and how files are written."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import QRMaxError, SourceError, UnknownNameError
from qrmax.source import EXCERPT_WIDTH, MAX_BYTES, Source, builtin_names, write_whole


def test_a_text_is_read_without_its_byte_order_mark_and_with_plain_line_ends(
    tmp_path: Path,
) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffone\r\ntw\u00f6\r\n".encode())
    source = Source.read(path)
    assert source == Source(str(path), "one\ntw\u00f6\n")
    assert source.lines() == ["one", "tw\u00f6", ""]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \r\n\t\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"abc\xff", "not UTF-8 text (byte 0xff at offset 3)"),
        ("start: 0,0".encode("utf-16"), "not UTF-8 text (byte 0xff at offset 0)"),
    ],
)
def test_a_file_that_is_no_text_says_why(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    with pytest.raises(SourceError) as caught:
        Source.read(path)
    assert str(caught.value) == f"{path}: {words}"
    assert isinstance(caught.value, OSError)


def test_a_file_larger_than_allowed_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    started = time.process_time()
    with pytest.raises(SourceError, match=r"64 MiB; the largest allowed is 64 MiB"):
        Source.read(path)
    assert time.process_time() - started < 0.1


def test_a_directory_and_a_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a directory"):
        Source.read(tmp_path)
    with pytest.raises(SourceError, match="is not a regular file"):
        Source.read("/dev/null")


@pytest.mark.parametrize("path", ["nowhere.txt", "a\0b.txt", "x" * 5000 + ".txt", "a/b/c.txt"])
def test_a_path_that_leads_nowhere_says_so(path: str) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        Source.read(path)
    with pytest.raises(SourceError, match="cannot be read"):
        Source.find(path, "map", Path("/nonexistent"), ".txt")


def test_a_built_in_name_wins_over_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "built_in" / "sub").mkdir(parents=True)
    (tmp_path / "built_in" / "one.txt").write_text("built in")
    (tmp_path / "built_in" / "sub" / "two.txt").write_text("below")
    (tmp_path / "one").write_text("mine")
    (tmp_path / "three").write_text("mine")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "built_in"
    assert builtin_names(folder, ".txt") == ["one", "sub/two"]
    assert Source.find("one", "map", folder, ".txt").text == "built in"
    assert Source.find("sub/two", "map", folder, ".txt").text == "below"
    assert Source.find("./one", "map", folder, ".txt").text == "mine"
    assert Source.find(Path("three"), "map", folder, ".txt").text == "mine"
    with pytest.raises(UnknownNameError) as caught:
        Source.find("onne", "map", folder, ".txt")
    assert str(caught.value).split("\n  ") == [
        "unknown map 'onne'",
        "did you mean 'one'?",
        "known: one, sub/two",
        "a file of your own is given by its path, such as my.txt",
    ]


@pytest.mark.parametrize("spec", ["", "a\0b", "x" * 5000, "\ud800"])
def test_a_name_that_can_be_no_path_is_an_unknown_name(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown map"):
        Source.find(spec, "map", tmp_path, ".txt")


def test_an_error_shows_the_line_and_a_caret_under_the_column() -> None:
    source = Source("my.txt", "one\ntwo three\nfour")
    error = source.error(ValueError, "odd word", line=2, column=5, note="allowed: none")
    assert str(error) == (
        "my.txt, line 2, column 5: odd word\n  2 | two three\n          ^\n  allowed: none"
    )
    assert str(source.error(ValueError, "odd")) == "my.txt: odd"
    assert str(source.error(ValueError, "odd", line=3)) == "my.txt, line 3: odd\n  3 | four"


@given(st.integers(1, 300), st.integers(1, 301), st.none() | st.just(1))
def test_the_caret_stands_under_the_character_however_long_the_line(
    length: int, column: int, line: int | None
) -> None:
    column = min(column, length + 1)
    text = "".join("x" if i + 1 == column else "." for i in range(length))
    _, shown, caret = str(
        Source("t", text).error(ValueError, "here", line=line, column=column)
    ).split("\n")
    assert len(shown) <= EXCERPT_WIDTH + len("  1 | ")
    assert shown[len(caret) - 1 :][:1] == ("x" if column <= length else "")
    assert caret.strip() == "^"


def test_characters_that_would_move_the_cursor_are_not_printed() -> None:
    error = Source("t", "a\t\x1b[2Jx").error(ValueError, "here", column=7)
    assert str(error).split("\n")[1:] == ["  a??[2Jx", "        ^"]


@pytest.mark.parametrize(
    "target",
    [
        lambda folder: folder,
        lambda folder: folder / "missing" / "file",
        lambda folder: folder / ("x" * 300),
        lambda folder: f"{folder}/a\0b",
        lambda _: "",
        lambda _: ".",
        lambda _: "/",
    ],
    ids=["directory", "missing folder", "long name", "NUL", "empty", "dot", "root"],
)
def test_a_write_that_fails_says_so_and_leaves_nothing_behind(
    tmp_path: Path, target: Callable[[Path], str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(SourceError, match="cannot be written"):
        write_whole(target(folder), b"data")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_a_write_replaces_a_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x" * 10_000)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [path]


def test_the_longest_name_that_the_file_system_allows_can_be_written(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 255), b"data")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"data"


def test_writing_to_a_pipe_or_device_does_not_replace_it_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # stands for /dev/null, which root could lose this way
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with suppress(QRMaxError):
            write_whole(pipe, b"data")
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    finally:
        os.close(reader)
