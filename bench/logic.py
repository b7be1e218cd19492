"""Formulas to minimal automata: n visits in order, and in any order.

    python bench/logic.py [n ...]

From text to the minimal DFA, on one core, the best of three. ltlf2dfa (which runs MONA) and flloat
are measured beside ours where they are installed, each in a process of its own that is stopped
after a minute; once a peer was stopped, it is not asked for more.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter

from qrmax import compile_formula

SIZES = (2, 4, 6, 8, 10, 12)
LONGEST = 20  # of the sequences
REPEATS = 3
PATIENCE = 60.0  # seconds
TARGETS = {("any order", 8): 1.0, ("any order", 12): 15.0, ("in order", 20): 0.2}  # at most

# What each peer is asked to do; the time is printed without that of its imports.
PEERS = {
    "ltlf2dfa": """
from ltlf2dfa.parser.ltlf import LTLfParser
parse = LTLfParser()
started = perf_counter()
assert "MONA" in parse(text).to_dfa()
""",
    "flloat": """
from flloat.parser.ltlf import LTLfParser
parse = LTLfParser()
started = perf_counter()
parse(text).to_automaton()
""",
}


def in_order(count: int) -> str:
    """Visit a0, then a1 (perhaps at once), and so on."""
    text = f"F(a{count - 1})"
    for number in reversed(range(count - 1)):
        text = f"F(a{number} & {text})"
    return text


def in_any_order(count: int) -> str:
    """Visit all of them."""
    return " & ".join(f"F(a{number})" for number in range(count))


def ours(text: str) -> tuple[float, int]:
    """Seconds, and states."""
    times = []
    for _ in range(REPEATS):
        started = perf_counter()
        dfa = compile_formula(text)
        times.append(perf_counter() - started)
    return min(times), len(dfa.states)


def peer(name: str, text: str) -> float | None:
    """Seconds, or None where the peer did not finish."""
    script = (
        f"from time import perf_counter\ntext = {text!r}\n{PEERS[name]}"
        "print(perf_counter() - started)"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    return float(done.stdout.split()[-1])


def installed() -> list[str]:
    found = [name for name in PEERS if importlib.util.find_spec(name)]
    if "ltlf2dfa" in found and shutil.which("mona") is None:
        print("ltlf2dfa is left out: it needs the program mona")
        found.remove("ltlf2dfa")
    return found


def measure(task: str, write: Callable[[int], str], sizes: tuple[int, ...]) -> bool:
    """Print a table; whether the targets are met."""
    peers = installed()
    print(f"\n{task}\n{'n':>4} {'states':>7} {'qrmax':>10}", *(f"{name:>10}" for name in peers))
    met, gave_up = True, set()
    for size in sizes:
        seconds, states = ours(write(size))
        row = [f"{size:>4} {states:>7} {seconds:>9.4f}s"]
        for name in peers:
            time = None if name in gave_up else peer(name, write(size))
            if time is None:
                gave_up.add(name)
            row.append(f"{'-':>10}" if time is None else f"{time:>9.4f}s")
        if (target := TARGETS.get((task, size))) is not None:
            met &= seconds < target
            row.append(f"  target {target:g} s: {'met' if seconds < target else 'MISSED'}")
        print(*row, flush=True)
    return met


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    met = measure("any order", in_any_order, sizes)
    met &= measure("in order", in_order, sizes if sys.argv[1:] else (*SIZES, LONGEST))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
