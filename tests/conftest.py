"""Settings for every test, and the order of the files."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from amounts import PLAIN

# Kernels compile within a first example, which is no reason to fail for being slow. The examples
# are the same on every machine; the profile "thorough" looks for new ones.
settings.register_profile(
    "qrmax",
    deadline=None,
    max_examples=20 if PLAIN else 60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("qrmax"), max_examples=2000, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "qrmax"))

# Files that take long, or wait for other processes: a worker that begins with the last of them
# would keep the other one waiting.
LONG = [
    "test_ray_kills.py",
    "test_ray.py",
    "test_kills.py",
    "test_golden.py",
    "cli/test_sweep.py",
    "test_documents.py",
]
WITHOUT_JIT = "small_enough_without_jit"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long, in their order above."""

    def place(item: pytest.Item) -> int:
        return next((i for i, name in enumerate(LONG) if item.path.match(name)), len(LONG))

    items.sort(key=place)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import files without a test for plain Python where those alone are to run."""
    if config.option.markexpr != WITHOUT_JIT or collection_path.suffix != ".py":
        return None
    return WITHOUT_JIT not in collection_path.read_text(encoding="utf-8") or None
