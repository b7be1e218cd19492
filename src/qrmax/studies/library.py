"""The studies and protocols that come with the library, by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

from qrmax.source import Source, builtin_names

STUDIES = Path(__file__).parent / "built_in"
PROTOCOLS = Path(__file__).parent / "protocols"
SUFFIX = ".toml"


def study_names() -> list[str]:
    """The names of the built-in studies."""
    return builtin_names(STUDIES, SUFFIX)


def protocol_names() -> list[str]:
    """The names of the built-in protocols."""
    return builtin_names(PROTOCOLS, SUFFIX)


def study_title(name: str) -> str:
    """The title of a built-in study."""
    title: str = tomllib.loads(Source.read(STUDIES / f"{name}{SUFFIX}").text)["title"]
    return title
