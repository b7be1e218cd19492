"""A worker process: assignments come in on stdin, reports go out on stdout.

It is started as `python -m qrmax.studies.worker`, not by multiprocessing, which would import the
user's script again: a sweep may be started from anywhere, a notebook or a script without a guard.
It ends when stdin does, so no worker outlives its driver.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import threading
from queue import SimpleQueue
from typing import IO

from qrmax.studies.work import Assignment, Report, advance

_LENGTHS = struct.Struct("<QQ")  # of the JSON and of the bytes that follow


def send(stream: IO[bytes], data: object, blob: bytes) -> None:
    """Write a message."""
    text = json.dumps(data).encode()
    stream.write(_LENGTHS.pack(len(text), len(blob)) + text + blob)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[object, bytes]:
    """Read a message; an EOFError where the other side has gone."""
    lengths = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    text, blob = (_exactly(stream, length) for length in lengths)
    return json.loads(text), blob


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def send_assignment(stream: IO[bytes], assignment: Assignment) -> None:
    """Tell a worker what to do."""
    send(stream, [assignment.config, assignment.seconds], assignment.checkpoint)


def receive_report(stream: IO[bytes]) -> Report:
    """What a worker says it has done."""
    data, blob = receive(stream)
    assert isinstance(data, list)
    kind, found, seconds = data
    return Report(kind, found, blob, seconds)


def main() -> None:
    """Work until no more is asked for."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())  # hand over what there is
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see LocalBackend
    # whatever prints goes to stderr: stdout is for reports
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    assignments: SimpleQueue[Assignment] = SimpleQueue()
    threading.Thread(target=_listen, args=(assignments,), daemon=True).start()
    while True:
        report = advance(assignments.get(), stop.is_set)
        send(reports, [report.kind, report.data, report.seconds], report.blob)


def _listen(assignments: SimpleQueue[Assignment]) -> None:
    """Take assignments, and end the process when the driver has gone, whatever is under way."""
    try:
        while True:
            data, checkpoint = receive(sys.stdin.buffer)
            assert isinstance(data, list)
            config, seconds = data
            assignments.put(Assignment(config, checkpoint, seconds))
    except EOFError:
        os._exit(0)


if __name__ == "__main__":
    main()
