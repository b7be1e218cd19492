"""Map files of one's own: what is accepted, and where the error points in what is not."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmax.errors import MapError, QRMaxError, SourceError, UnknownNameError
from qrmax.source import Source
from qrmax.worlds.grid import GridMap, format_map, load_map, map_names, parse_map


def error_of(text: str) -> list[str]:
    with pytest.raises(MapError) as caught:
        parse_map(Source("my.txt", text))
    return str(caught.value).split("\n")


def test_a_file_of_ones_own_may_have_its_own_tiles(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(
        "# a comment\nstart: 1,1\ntiles: p=printer, 7=lucky_seven\ntiles: c=tea\nslips: any\n\n"
        "p . c\n\n. . 7\n"
    )
    grid = load_map(path)
    assert (grid.name, grid.start, grid.slips) == ("mine", (1, 1), "any")
    assert grid.propositions == {"printer", "lucky_seven", "tea"}
    assert grid.rows == ("p.c", "..7")
    assert load_map(str(path)).rows == grid.rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_byte_order_marks_and_trailing_space_do_not_matter(
    tmp_path: Path, end: str, mark: bytes
) -> None:
    path = tmp_path / "mine.txt"
    lines = ["start: 0,0  ", "", "", ". .|c   ", "-  ", "m . .", "", ""]
    path.write_bytes(mark + end.join(lines).encode())
    grid = load_map(path)
    assert grid.rows == ("..c", "m..")
    assert grid.wall_right.tolist() == [[False, True, False], [False, False, False]]
    assert grid.wall_below.tolist() == [[True, False, False], [False, False, False]]


def test_a_map_may_be_a_single_cell() -> None:
    grid = parse_map(Source("one", "start: 0,0\n\n."))
    assert grid.targets().tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("picture", "line", "column", "words"),
    [
        (". . .\n\n. .", 5, 4, "a row of 2 cells, but the first row has 3"),
        (". .\n\n. . .", 5, 4, "a row of 3 cells, but the first row has 2"),
        (". .\n\n\n. .", 5, 1, "a row of 0 cells, but the first row has 2"),
        (". . X\n\n. . .", 3, 5, "unknown tile 'X'"),
        (". . .\n\n. Y X", 5, 3, "unknown tile 'Y'"),
        (". . .\n\n  . .", 5, 1, "unknown tile ' '"),
        (". .-.\n\n. . .", 3, 4, "'-' between cells"),
        (".c.c.\n\n. . .", 3, 2, "'c' between cells"),
        (". . .\n| -\n. . .", 4, 1, "'|' between cells"),
        (". . .\n-x-\n. . .", 4, 2, "'x' between cells"),
        (". . .\n- - - -\n. . .", 4, 6, "longer than the rows"),
        (". . .\n\n. . \u00e9", 5, 5, "unknown tile '\u00e9'"),
        (". . .\n\n. .\t.", 5, 4, "between cells"),
    ],
)
def test_an_odd_picture_is_refused_with_line_column_and_caret(
    picture: str, line: int, column: int, words: str
) -> None:
    head, shown, caret, *_ = error_of(f"start: 0,0\n\n{picture}")
    assert head.startswith(f"my.txt, line {line}, column {column}: ")
    assert words in head
    text = picture.split("\n")[line - 3].replace("\t", "?")
    assert shown == f"  {line} | {text}"
    assert caret == " " * (6 + column - 1) + "^"


def test_an_unknown_tile_far_to_the_right_is_still_above_the_caret() -> None:
    row = " ".join("." * 700 + "X" + "." * 300)
    head, shown, caret, note = error_of(f"start: 0,0\n\n{row}")
    assert "line 3, column 1401" in head
    assert shown[len(caret) - 1] == "X"
    assert len(shown) < 100
    assert note == "  allowed: # * . A B C D E O c g m"


@pytest.mark.parametrize("picture", [". .|", ". .|\n\n. .|", ".|", "|. .|"])
def test_a_wall_drawn_at_the_border_is_accepted_or_refused_in_our_words(picture: str) -> None:
    text = f"start: 0,0\n\n{picture}"
    with suppress(MapError):
        grid = parse_map(Source("my.txt", text))
        assert picture.startswith(".")
        assert set("".join(grid.rows)) == {"."}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("start: 3,0\n\n. . .", 1, ["the start 3,0 is outside", "columns 0 to 2, rows 0 to 0"]),
        ("# x\nstart: 0,1\n\n. . .", 2, ["the start 0,1 is outside"]),
        ("start: -1,0\n\n. . .", 1, ["the start -1,0 is outside"]),
        ("start: 1,0\n\n. # .", 1, ["the start 1,0 is on a wall ('#')"]),
        ("# no start\n\n. . .", 1, ["no start", "'start: column,row'"]),
        ("\nstart: 0,0\n\n. .", 1, ["no start"]),
        ("start: 0,0", 1, ["no picture", "blank line"]),
        ("start: 0,0\n\n\n", 2, ["no picture after the blank line"]),
        ("start: 0\n\n. .", 1, ["not a header line: 'start: 0'", "allowed: 'start: column,row'"]),
        ("start: a,b\n\n. .", 1, ["not a header line: 'start: a,b'"]),
        ("start: 0,0,0\n\n. .", 1, ["not a header line"]),
        ("start: 99999999999,0\n\n. .", 1, ["not a header line"]),
        ("start: 0,0\nslips: sideways\n\n. .", 2, ["not a header line: 'slips: sideways'"]),
        ("start: 0,0\nstrat: 1,1\n\n. .", 2, ["not a header line: 'strat: 1,1'"]),
        ("start: 0,0\n. . .\n\n. .", 2, ["not a header line: '. . .'", "a blank line ends"]),
        ("start: 0,0\ntiles: pp=printer\n\n. .", 2, ["not a tile: 'pp=printer'", "p=printer"]),
        ("start: 0,0\ntiles: p=\n\n. .", 2, ["not a tile: 'p='"]),
        ("start: 0,0\ntiles: p=printer,\n\n. .", 2, ["not a tile: ''"]),
        ("start: 0,0\ntiles: #=hole\n\n. .", 2, ["not a tile: '#=hole'"]),
        ("start: 0,0\ntiles: p=two words\n\n. .", 2, ["not a tile: 'p=two words'"]),
    ],
)
def test_a_bad_header_or_start_is_refused_with_its_line(
    text: str, line: int, words: list[str]
) -> None:
    head, shown, *note = error_of(text)
    assert head.startswith(f"my.txt, line {line}: ")
    assert shown.rstrip() == f"  {line} | {text.split(chr(10))[line - 1]}".rstrip()
    for word in words:
        assert word in "\n".join([head, *note])


@pytest.mark.parametrize(
    "header",
    [
        "start: 0,0\nstart: 1,0",
        "start: 0,0\nslips: any\nslips: perpendicular",
        "start: 0,0\ntiles: p=printer, p=scanner",
        "start: 0,0\ntiles: p=true",
    ],
    ids=["start twice", "slips twice", "tile twice", "a tile that no guard can name"],
)
def test_a_header_that_contradicts_itself_is_refused(header: str) -> None:
    assert "my.txt, line" in error_of(f"{header}\n\n. .")[0]


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bytes.txt").write_bytes(b"start: 0,0\n\n. \xff")
    cases = {"empty.txt": "is empty", "bytes.txt": "not UTF-8", "": "a directory"}
    for name, words in cases.items():
        with pytest.raises(SourceError, match=words):
            load_map(tmp_path / name)


def test_an_unknown_map_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown map 'mpa1'\n  did you mean 'map1'\?"):
        load_map("mpa1")


def test_a_line_of_a_hundred_megabytes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    with path.open("wb") as file:
        file.write(b"start: 0,0\n\n")
        file.truncate(100 * 2**20)
    started = time.process_time()
    with pytest.raises(SourceError, match="100 MiB; the largest allowed is 64 MiB"):
        load_map(path)
    assert time.process_time() - started < 0.5


def test_a_long_line_of_an_allowed_size_is_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"start: 0,0\n\n" + b"X" * (8 * 2**20))
    started = time.process_time()
    with pytest.raises(MapError, match="unknown tile 'X'"):
        load_map(path)
    assert time.process_time() - started < 2.0


HEADERS = st.lists(st.sampled_from(["start: 0,0", "start: 1,1", "tiles: p=q", "slips: any", "# x"]))
ROWS = st.lists(st.sampled_from([". ", ".|", "* ", "c ", "# ", "- ", "-+", "p ", "X", " ", ""]))


@given(
    st.text()
    | st.builds(
        lambda header, rows: "\n".join([*header, "", *map("".join, rows)]),
        HEADERS,
        st.lists(ROWS, max_size=4),
    )
)
@settings(max_examples=400)
def test_any_text_is_a_map_or_an_error_of_ours(text: str) -> None:
    started = time.process_time()
    with suppress(QRMaxError):
        grid = parse_map(Source("any", text))
        assert grid.targets().shape == (grid.n_states, 4)
        assert grid.label().shape == (grid.n_states,)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("name", map_names())
def test_a_map_that_is_written_is_read_again(name: str) -> None:
    assert_written_and_read(load_map(name))


def test_tiles_and_slips_of_ones_own_are_written_as_well() -> None:
    text = "start: 1,0\nslips: any\ntiles: p=printer, c=cocoa\n\np . c|.\n-   -\n# * . m\n"
    grid = parse_map(Source("my.own.txt", text))
    assert_written_and_read(grid)
    assert grid.name == "my.own"


def assert_written_and_read(grid: GridMap) -> None:
    again = parse_map(Source(f"{grid.name}.txt", format_map(grid)))
    for field in ("name", "text", "rows", "tiles", "start", "slips"):
        assert getattr(again, field) == getattr(grid, field), field
    assert (again.wall_right == grid.wall_right).all()
    assert (again.wall_below == grid.wall_below).all()
