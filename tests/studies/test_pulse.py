"""Whether a cluster is still there: what has not answered for long is gone."""

from __future__ import annotations

import socket

import pytest

from qrmax.errors import ClusterError, QRMaxError
from qrmax.studies import ray_backend
from qrmax.studies.ray_backend import Pulse


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "PROBE_EVERY", 0.0)


def test_a_server_that_is_silent_for_a_moment_is_in_doubt_and_then_steady_again() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()
    pulse = Pulse({"raylet": address})
    pulse.check()
    assert pulse.is_steady
    server.close()
    pulse.check()
    assert not pulse.is_steady
    with socket.create_server(address):
        pulse.check()
    assert pulse.is_steady


def test_a_server_that_is_silent_for_long_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        socket.create_server(("127.0.0.1", 0)) as s,
    ):
        gone = s.getsockname()
        s.close()
        monkeypatch.setattr(ray_backend, "GRACE", 0.0)
        pulse = Pulse({"head (GCS)": there.getsockname(), "raylet": gone})
        with pytest.raises(ClusterError) as caught:
            pulse.check()
    assert f"the Ray cluster is gone: its raylet at 127.0.0.1:{gone[1]} does not" in str(
        caught.value
    )
    assert isinstance(caught.value, QRMaxError)
    assert isinstance(caught.value, ConnectionError)


def test_a_cluster_that_is_asked_by_a_client_only_has_nothing_to_probe() -> None:
    pulse = Pulse({})
    pulse.check()
    assert pulse.is_steady
