"""Pictures of maps and tasks: real SVG, PNG and PDF files that show the same."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pypdf import PdfReader

import qrmax
from qrmax.errors import MapError, QRMaxWarning, SourceError, UnknownNameError
from qrmax.pictures.drawing import FORMATS, Font, Look, Picture, Point, Shape, Text, disc, rectangle
from qrmax.report.machine_picture import draw_machine
from qrmax.report.map_picture import MOST_CELLS, draw_map
from qrmax.report.signs import sign
from qrmax.source import Source
from qrmax.worlds.grid import TILES, GridMap, map_names, parse_map
from qrmax.worlds.map_catalog import any_map, cell_size, other_map_names

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: Picture) -> list[str]:
    tree = ElementTree.fromstring(picture.svg())
    return [element.text or "" for element in tree.iter(f"{SVG}text")]


def kinds(picture: Picture) -> list[str]:
    return [item.kind for item in picture.items]


def drawn(text: str) -> Picture:
    return draw_map(parse_map(Source("my.txt", text)))


@pytest.fixture(scope="module")
def map1() -> Picture:
    return draw_map(qrmax.load_map("map1"))


@pytest.mark.parametrize("name", [*map_names(), *other_map_names()])
def test_every_map_has_a_title_a_legend_and_all_of_its_places(name: str) -> None:
    grid = any_map(name)
    shown = texts(draw_map(grid, cell=cell_size(name)))
    assert shown[0] == name
    assert "start" in shown
    for tile, proposition in grid.tiles.items():
        if any(tile in row for row in grid.rows):
            assert (tile if tile == proposition else proposition) in shown


def test_a_pdf_has_a_page_with_the_texts_in_fonts_that_are_embedded(map1: Picture) -> None:
    for picture in (map1, draw_machine(qrmax.load_task("exp1"))):
        (page,) = PdfReader(io.BytesIO(picture.data("pdf"))).pages
        words = page.extract_text()
        assert all(word in words for text in texts(picture) for word in text.split())
        assert float(page.mediabox.width) == pytest.approx(picture.width, abs=0.1)
        fonts = [font.get_object() for font in page["/Resources"]["/Font"].values()]
        assert fonts
        for font in fonts:
            (inner,) = font.get("/DescendantFonts", [font])
            assert "/FontFile2" in inner.get_object()["/FontDescriptor"].get_object()  # TrueType


def test_a_png_has_the_proportions_of_the_picture(map1: Picture) -> None:
    data = map1.data("png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width == pytest.approx(2 * map1.width, abs=1)
    assert height == pytest.approx(2 * map1.height, abs=1)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_picture_makes_the_same_file(kind: str) -> None:
    machine = qrmax.load_task("exp1")
    assert draw_machine(machine).data(kind) == draw_machine(machine).data(kind)


def test_a_file_is_written_whole_in_the_format_of_its_name(map1: Picture, tmp_path: Path) -> None:
    map1.save(tmp_path / "map.SVG")
    assert (tmp_path / "map.SVG").read_text() == map1.svg() == map1._repr_svg_()
    with pytest.raises(UnknownNameError, match="unknown picture format 'gif'"):
        map1.save(tmp_path / "map.gif")
    with pytest.raises(SourceError, match="cannot be written"):
        map1.save(tmp_path / "no" / "map.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["map.SVG"]


def test_every_sign_has_a_shape_of_its_own() -> None:
    outlines = {}
    for tile, proposition in {**TILES, "H": "hole", "p": "printer", "c": "cat"}.items():
        items = sign(proposition, tile, Point(0.0, 0.0), 20.0)
        colourless = [item.outline if isinstance(item, Shape) else item.text for item in items]
        outlines[proposition] = repr(colourless)
    assert len({*outlines.values()}) == len(outlines)


def test_the_start_hides_nothing_and_the_walker_does_not_hide_the_start() -> None:
    grid = parse_map(Source("my.txt", "start: 0,0\n\nA .\n"))
    plain, walked = draw_map(grid), draw_map(grid, walker=0)
    assert texts(plain).count("A") == 2  # on the map and in the legend
    assert kinds(walked).count("walker") == 1
    frame = next(item for item in walked.items if item.kind == "start")
    walker = next(item for item in walked.items if item.kind == "walker")
    assert extent(frame) > extent(walker) > 0.0


def extent(item: Shape | Text) -> float:
    assert isinstance(item, Shape)
    xs = [point.x for part in item.outline for point in part.points]
    return max(xs) - min(xs)


def test_walls_and_solid_cells_are_where_the_map_has_them() -> None:
    picture = drawn("start: 0,0\n\n. .|.\n  -\n. # #\n")
    (walls,) = (item for item in picture.items if item.kind == "wall")
    assert isinstance(walls, Shape)
    lines = [part.points[0] for part in walls.outline[:4]]
    assert lines == [(80.0, 0.0), (80.0, 40.0), (40.0, 40.0), (80.0, 40.0)]
    (solid,) = (item for item in picture.items if item.kind == "solid")
    assert extent(solid) == 80.0  # two neighbours are one


def test_narrow_cells_share_one_sign_in_the_middle_of_their_region() -> None:
    picture = draw_map(any_map("corridor"), cell=cell_size("corridor"))
    assert texts(picture).count("B") == 1
    (letter,) = (i for i in picture.items if isinstance(i, Text) and i.text == "B")
    assert letter.at.x == pytest.approx(24 * 10.0)  # columns 22 to 25, of 10 each
    assert "40 x 10 cells of 0.025 x 0.1, start 0,5" in texts(picture)


def test_a_map_of_many_cells_is_coloured_and_one_of_too_many_is_refused() -> None:
    rows = "\n\n".join([" ".join("." * 100 + "c" * 50)] * 100)
    picture = drawn(f"start: 0,0\n\n{rows}\n")
    assert kinds(picture).count("coffee") == 100  # a stretch in each row
    assert "coffee" in texts(picture)
    side = int(MOST_CELLS**0.5) + 1
    wide = GridMap(
        name="wide", text="", rows=("." * side,) * side, tiles={}, start=(0, 0),
        wall_right=qrmax.load_map("map1").wall_right, wall_below=qrmax.load_map("map1").wall_below,
    )  # fmt: skip
    with pytest.raises(MapError, match="at most 1000000 can be drawn"):
        draw_map(wide)


def test_text_is_shown_as_it_is_and_never_read_as_mathematics_or_markup() -> None:
    shapes = (
        Shape(
            disc(Point(5.0, 5.0), 3.0), Look(fill="#000000", stroke="#ff0000", dashes=(2.0, 1.0))
        ),
        Shape(rectangle(Point(5.0, 5.0), 8.0, 8.0, corner=2.0), Look(stroke="#0000ff")),
    )
    words = Text(Point(30.0, 9.0), "$x$ <b>&\n\x00", Font(9.0, monospaced=True))
    picture = Picture("a & <b>", 0.0, 0.0, 90.0, 12.0, (*shapes, words))
    assert texts(picture) == ["$x$ <b>&  "]
    (page,) = PdfReader(io.BytesIO(picture.data("pdf"))).pages
    assert "$x$ <b>&" in page.extract_text()


def test_characters_that_the_font_does_not_have_are_told() -> None:
    picture = Picture("name", 0.0, 0.0, 60.0, 20.0, (Text(Point(30.0, 14.0), "\u65e5"),))
    assert "\u65e5" in picture.svg()
    with pytest.warns(QRMaxWarning, match="not in the font of PNG pictures"):
        picture.data("png")
