"""Pictures as PNG and PDF, drawn by matplotlib with the fonts that come with it.

Fonts are embedded in PDF files as TrueType, and the same picture makes the same file.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

from qrmax.errors import warn
from qrmax.pictures.drawing import Outline, Picture, Shape, Text, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

POINTS = 72  # per inch: the unit of a picture here
PIXELS = 144  # per inch, in PNG files
MOST_PIXELS = 16_000  # along a side

_ANCHORS = {"start": "left", "middle": "center", "end": "right"}
_SETTINGS: dict[Any, Any] = {
    "pdf.fonttype": 42,  # TrueType
    "font.sans-serif": ["DejaVu Sans"],
    "font.monospace": ["DejaVu Sans Mono"],
}
_METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}}


def rendered(picture: Picture, kind: str) -> bytes:
    """The bytes of a PNG or PDF file."""
    import matplotlib
    from matplotlib.figure import Figure

    file = io.BytesIO()
    longest = max(picture.width, picture.height) / POINTS
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = Figure(figsize=(picture.width / POINTS, picture.height / POINTS))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(picture.left, picture.left + picture.width)
        axes.set_ylim(picture.top + picture.height, picture.top)
        for order, item in enumerate(picture.items):
            if isinstance(item, Shape):
                _add_shape(axes, item, order)
            else:
                _add_text(axes, item, order)
        figure.savefig(
            file,
            format=kind,
            dpi=min(PIXELS, MOST_PIXELS / longest),
            metadata={"Title": picture.title, **_METADATA[kind]},
        )
    _tell(caught, picture.title, kind)
    return file.getvalue()


def _add_shape(axes: Axes, shape: Shape, order: int) -> None:
    from matplotlib.patches import PathPatch

    look = shape.look
    patch = PathPatch(
        _path(shape.outline),
        facecolor=look.fill,
        edgecolor=look.stroke,
        linewidth=look.width if look.stroke != "none" else 0.0,
        linestyle=(0.0, tuple(part / look.width for part in look.dashes)) if look.dashes else "-",
        capstyle="round",
        joinstyle="round",
        zorder=order,
    )
    axes.add_artist(patch)


def _add_text(axes: Axes, text: Text, order: int) -> None:
    axes.text(
        *text.at,
        printable(text.text),
        fontsize=text.font.size,
        fontfamily="monospace" if text.font.monospaced else "sans-serif",
        fontweight="bold" if text.font.bold else "normal",
        color=text.font.colour,
        ha=_ANCHORS[text.anchor],
        va="baseline",
        parse_math=False,
        zorder=order,
    )


def _path(outline: Outline) -> Path:
    from matplotlib.path import Path

    code = {"M": Path.MOVETO, "L": Path.LINETO, "C": Path.CURVE4, "Z": Path.CLOSEPOLY}
    vertices: list[tuple[float, float]] = []
    codes: list[int] = []
    for command, points in outline:
        vertices += points or [(0.0, 0.0)]
        codes += [int(code[command])] * max(1, len(points))
    return Path(vertices, codes)


def _tell(caught: list[warnings.WarningMessage], title: str, kind: str) -> None:
    """Warn once of missing characters, and pass other warnings on."""
    for warning in caught:
        if "missing from font" not in str(warning.message):
            warnings.warn(warning.message, stacklevel=4)
    if any("missing from font" in str(warning.message) for warning in caught):
        warn(
            f"{printable(title)}: some characters are not in the font of {kind.upper()} pictures; "
            "SVG pictures use the fonts of the viewer"
        )
