"""Rows of a table of action values as lists, for methods in Python.

Compiled code works on arrays. Python reads and writes single numbers of an array several times more
slowly than those of a list, and methods in Python do little else. So the rows of the states that
are played are kept as lists, and written back before anyone looks at the array.
"""

from __future__ import annotations

from qrmax.planning.arrays import FloatArray


class ValueRows(dict[int, list[list[float]]]):
    """The rows `[q][a]` of a table `[s, q, a]`, taken from it when first asked for.

    >>> import numpy as np
    >>> rows = ValueRows(np.zeros((5, 1, 2)))
    >>> rows[3][0][1] = 7.0
    >>> rows.written_back()[3].tolist()
    [[0.0, 7.0]]
    """

    def __init__(self, table: FloatArray) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, s: int) -> list[list[float]]:
        row: list[list[float]] = self._table[s].tolist()
        self[s] = row
        return row

    def written_back(self) -> FloatArray:
        """The table, with all that was changed; from now on it may be changed itself."""
        for s, row in self.items():
            self._table[s] = row
        self.clear()
        return self._table
