"""The origin of a world from outside the library, for the ids of runs: its code can change."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

_LIBRARY = __name__.partition(".")[0]


def source_of(make: Callable[..., Any], version: int | None) -> dict[str, str] | None:
    """Return the module that makes a world, with the version declared or a hash of its source.

    None for a world of this library.
    """
    function = inspect.unwrap(getattr(make, "func", make))  # of a partial
    name = getattr(function, "__module__", None) or type(function).__module__
    if name.partition(".")[0] == _LIBRARY:
        return None
    if version is not None:
        return {"module": name, "version": str(version)}
    return {"module": name, "sha256": hashlib.sha256(_text(name, function)).hexdigest()}


def _text(module: str, function: Any) -> bytes:
    """The source of a module; in a notebook, the code of the function."""
    try:
        return inspect.getsource(sys.modules[module]).encode(errors="surrogatepass")
    except (OSError, TypeError, KeyError):
        code = getattr(function, "__code__", None)
        return repr(function if code is None else (code.co_code, code.co_consts)).encode()
