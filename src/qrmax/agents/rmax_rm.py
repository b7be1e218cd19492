"""R-MaxRM: R-Max that is given the machine.

Each real step counts once for every machine state that is not terminal, as if the machine had been
there.

Assumes: knows the machine, its rewards and which of its states end the episode.
"""

from __future__ import annotations

from qrmax.agents.rmax import RMax


class RMaxRM(RMax):
    """R-Max that knows the machine and learns for all its states at once."""

    name = "rmax-rm"
    knows_machine = True
