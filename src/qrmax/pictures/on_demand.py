"""Pictures of our objects, drawn by `qrmax.report`, which is loaded when the first one is drawn.

Problems, machines and solutions can be drawn, but know nothing of pictures: `report` knows them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def drawn(drawer: str, *given: Any, **options: Any) -> Any:
    """Call a function of `qrmax.report`, named `module:function`.

    >>> import qrmax
    >>> drawn("machine_picture:draw_machine", qrmax.load_task("exp1")).title
    'exp1'
    """
    module, _, name = drawer.partition(":")
    return getattr(import_module(f"qrmax.report.{module}"), name)(*given, **options)
