"""QR-MaxRM: QR-Max that is given the machine.

Each arrival in s' gives the machine's transition from every one of its states, so that the machine
needs no exploration. A real sample of the world counts once.

Assumes: knows the machine, its rewards and which of its states end the episode.
"""

from __future__ import annotations

from qrmax.agents.qrmax import QRMax


class QRMaxRM(QRMax):
    """QR-Max that knows the machine and learns for all its states at once."""

    name = "qrmax-rm"
    knows_machine = True
