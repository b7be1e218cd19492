"""The machine by kinds of arrivals: given, or estimated from what was observed."""

from __future__ import annotations

import numpy as np

from qrmax.agents.continuous.lookahead import Readings
from qrmax.agents.continuous.transition_log import TransitionLog
from qrmax.machines.machine_table import MachineTable


def given_readings(log: TransitionLog, table: MachineTable, n: int, labels: int) -> Readings:
    """A known machine, for the kinds of the first n transitions and as many labels as that."""
    cases = [*log.kinds][: log.kinds_until(n)]
    read = [label for label, _ in cases]
    next_state = table.next_state[:, :, 0]
    return Readings(
        np.ascontiguousarray(next_state[:, read, None]),
        np.ones((len(next_state), len(read), 1)),
        np.ascontiguousarray(table.reward[:, read, 0]),
        np.array([ended for _, ended in cases]),
        table.terminal.copy(),
        np.ascontiguousarray(next_state[:, :labels]),
        np.ascontiguousarray(table.reward[:, :labels, 0]),
    )


def observed_readings(log: TransitionLog, n: int) -> Readings:
    """Frequencies of the machine's transitions by (q, kind), and mean rewards."""
    states, kinds = log.sizes.task_states, log.kinds_until(n)
    q, kind, q_next = log.q[:n], log.kind[:n], log.q_next[:n]
    count = np.zeros((states, kinds, states))
    np.add.at(count, (q, kind, q_next), 1.0)
    total = np.zeros((states, kinds))
    np.add.at(total, (q, kind), log.r_task[:n])
    whole = np.maximum(count.sum(axis=2), 1.0)
    width = max(int((count > 0.0).sum(axis=2).max(initial=1)), 1)
    order = np.argsort(-count, axis=2, kind="stable")[:, :, :width]
    prob = np.take_along_axis(count, order, axis=2) / whole[:, :, None]
    terminal = np.zeros(states, dtype=np.bool_)
    terminal[q_next[log.over[:n] & ~log.ended[:n]]] = True
    return Readings(
        order.astype(np.int32),
        np.ascontiguousarray(prob),
        total / whole,
        np.array([ended for _, ended in log.kinds][:kinds]),
        terminal,
        np.zeros((states, 0), dtype=np.int32),
        np.zeros((states, 0)),
    )
