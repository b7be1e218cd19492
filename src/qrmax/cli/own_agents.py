"""Agents in the modules of a folder, found in their source for completion: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MOST_FILES = 50
MOST_BYTES = 1_000_000
AGENT = "Agent"
REGISTER = "register_agent"


def agents_in(folder: Path, incomplete: str) -> list[str]:
    """The agents, as `module:Class`, whose references begin with `incomplete`."""
    module = incomplete.partition(":")[0]
    paths = sorted(path for path in folder.glob("*.py") if path.stem.startswith(module))
    found = [f"{path.stem}:{name}" for path in paths[:MOST_FILES] for name in _agents(path)]
    return [reference for reference in found if reference.startswith(incomplete)]


def _agents(path: Path) -> Iterator[str]:
    """The classes of a module that are registered, or derive from a class named ...Agent."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # no module that could be imported
    known = set[str]()
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = {_last_name(base) for base in node.bases}
        registered = any(_last_name(each) == REGISTER for each in node.decorator_list)
        if registered or bases & known or any(base.endswith(AGENT) for base in bases):
            known.add(node.name)
            yield node.name


def _last_name(node: ast.expr) -> str:
    """The last part of a dotted name; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
