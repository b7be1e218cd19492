"""A worker process: assignments come in on stdin, reports go out on stdout.

It is started as `python -m qrmax.studies.worker`, not by multiprocessing, which would import the
user's script again: a sweep may be started from a notebook, or from a script without a main guard.
A worker has a process session of its own, so that Ctrl-C reaches only the driver. It exits at the
end of stdin, so no worker outlives its driver.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any

from qrmax.planning.compile_notice import compile_notice
from qrmax.studies.work import Assignment, Report, advance

_LENGTHS = struct.Struct("<QQ")  # of the JSON and of the bytes that follow


def send_assignment(stream: IO[bytes], assignment: Assignment) -> None:
    """Send an assignment to a worker."""
    message = [assignment.config, assignment.seconds, [*assignment.folders]]
    _send(stream, message, assignment.checkpoint)


def send_stop(stream: IO[bytes]) -> None:
    """Request that a worker checkpoint its run and report."""
    _send(stream, "stop")


def receive_report(stream: IO[bytes]) -> Report:
    """Receive the report of a worker; raise an EOFError if it has died."""
    (kind, data, *times), blob = _receive(stream)
    return Report(kind, data, blob, *times)


@compile_notice(False)  # its stderr is the driver's, which shows the notice
def main() -> None:
    """Execute assignments until stdin ends."""
    # redirect prints to stderr: stdout is for reports
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    assignments: SimpleQueue[Assignment] = SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(assignments, stop), daemon=True).start()
    try:
        while True:
            report = advance(assignments.get(), stop.is_set)
            times = report.seconds, report.cpu_seconds
            _send(reports, [report.kind, report.data, *times], report.blob)
    except BrokenPipeError:
        os._exit(0)  # the driver is gone, and closing the pipe would fail again


def _listen(assignments: SimpleQueue[Assignment], stop: threading.Event) -> None:
    """Receive messages of the driver, and exit at once when it is gone."""
    try:
        while True:
            message, checkpoint = _receive(sys.stdin.buffer)
            if message == "stop":
                stop.set()
            else:
                config, seconds, folders = message
                assignments.put(Assignment(config, checkpoint, seconds, folders))
    except EOFError:
        os._exit(0)


def _send(stream: IO[bytes], data: object, blob: bytes = b"") -> None:
    text = json.dumps(data).encode()
    stream.write(_LENGTHS.pack(len(text), len(blob)) + text + blob)
    stream.flush()


def _receive(stream: IO[bytes]) -> tuple[Any, bytes]:
    lengths = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    text, blob = (_exactly(stream, length) for length in lengths)
    return json.loads(text), blob


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


if __name__ == "__main__":
    main()
