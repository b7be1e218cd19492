"""Ctrl-C: the first stops after the current step, the second interrupts at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Yield a list that the first Ctrl-C appends to, so that the current step can complete.

    The second Ctrl-C raises a KeyboardInterrupt. Outside the main thread signals are not handled.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def press(number: int, _: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
