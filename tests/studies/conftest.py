"""A Ray cluster for the tests of one file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ray_clusters import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started_here:
        yield started_here
