import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import qrmax
from qrmax.errors import SourceError
from qrmax.worlds.picture import draw, save_png, write


def test_a_png_holds_the_pixels_of_the_image(tmp_path: Path) -> None:
    image = draw(qrmax.load_map("map1"), 3)
    save_png(image, tmp_path / "map1.png")
    data = (tmp_path / "map1.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert (height, width) == image.shape[:2]
    length = struct.unpack(">I", data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), dtype=np.uint8)
    pixels = rows.reshape(height, 1 + 3 * width)[:, 1:].reshape(image.shape)
    np.testing.assert_array_equal(pixels, image)


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be written"):
        save_png(draw(qrmax.load_map("map1")), tmp_path / "no" / "map1.png")
    assert not list(tmp_path.iterdir())


def test_every_tile_looks_different_from_the_floor() -> None:
    grid = qrmax.load_map("map4")
    image = draw(grid)
    for tile in (*grid.tiles, "."):
        cells = np.argwhere([[mark == tile for mark in row] for row in grid.rows])
        if len(cells):
            y, x = cells[0] * 32 + 16
            area = image[y - 8 : y + 8, x - 8 : x + 8].reshape(-1, 3)
            assert (len(np.unique(area, axis=0)) > 1) == (tile != ".")


def test_a_map_without_a_walker_is_written_as_in_its_file() -> None:
    grid = qrmax.load_map("map2")
    assert write(grid) == grid.text
    assert write(grid, grid.start_state).count("@") == 1
