"""Whatever text a parser is given, it makes something of it or says what is wrong with it.

    python fuzz/parsers.py [-max_total_time=SECONDS] [folder of texts to begin with]

Atheris changes texts at random and keeps those that reach new code. The first byte of an input says
which parser reads the rest. Anything but a `QRMaxError`, and anything that takes longer than ten
seconds or a gigabyte, ends the search; the input that did it is left in a file `crash-...` or
`timeout-...`, and `python fuzz/parsers.py FILE` does it again. All options are those of libFuzzer.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["qrmax"]):
    from qrmax.errors import QRMaxError
    from qrmax.logic.compiler import compile_formula
    from qrmax.logic.formula import LOGICS
    from qrmax.logic.guards import Guard
    from qrmax.machines.task_files import load_task, read_task, task_names, write_task
    from qrmax.problems.formats import drn
    from qrmax.problems.labelled import LabelledMDP
    from qrmax.source import Source
    from qrmax.worlds.catalog import make
    from qrmax.worlds.grid import MAPS, map_names, parse_map

LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=4096", "-len_control=0"]
SMALL = ("river-swim/patrol", "river-swim/noisy-patrol")  # problems, as models
WRITTEN = (".toml", ".json", ".dot", ".mmd", ".hoa")
FORMULAS = {
    "ltlf": ("F(a & F b) & G !c", "(a U b) R (c W d) -> X WX last", 'a M "b c" <-> N true'),
    "ldlf": ("<((a*;b)*;c)*>end", "[(true;a?)* + !b]<a>tt & ff", "<(<a*>b)?;c>last"),
    "ppltl": ("O(a & Y H b)", "(a S b) & !WY c", "a -> O(b & Y O c)"),
}
TORO_ICARTE = (
    "0\n[1]\n(0,0,'!f&!n',ConstantRewardFunction(0))\n(0,1,'f|g',ConstantRewardFunction(1))"
)
RMSPEC = (
    '{"initial_state": "s", "terminal_states": ["t"], "transitions": '
    '[{"from_state": "s", "event": "coffee", "to_state": "t", "reward": 1}]}'
)


def _task_reader(suffix: str) -> Callable[[str], object]:
    return lambda text: read_task(Source(f"fuzz{suffix}", text))


def _compiler(logic: str) -> Callable[[str], object]:
    return lambda text: compile_formula(text, logic, max_states=200)


PARSERS: list[Callable[[str], object]] = [
    Guard.parse,
    lambda text: parse_map(Source("fuzz.txt", text)),
    *map(_compiler, LOGICS),
    *map(_task_reader, (*WRITTEN, ".txt")),
    lambda text: drn.parse(Source("fuzz.drn", text)),
]


def read(data: bytes) -> None:
    """Give an input to the parser that its first byte names."""
    parse = PARSERS[data[0] % len(PARSERS)] if data else Guard.parse
    with suppress(QRMaxError):
        parse(data[1:].decode("utf-8", "replace"))


def seeds() -> list[tuple[int, str]]:
    """Texts that are as they should be, each with the number of its parser."""
    maps = [(1, (MAPS / f"{name}.txt").read_text()) for name in map_names()]
    formulas = [
        (2 + number, text) for number, logic in enumerate(LOGICS) for text in FORMULAS[logic]
    ]
    first = 2 + len(LOGICS)
    tasks = [
        (first + number, write_task(load_task(name), suffix))
        for name in task_names()
        for number, suffix in enumerate(WRITTEN)
        if suffix != ".hoa" or not load_task(name).is_stochastic
    ]
    others = [(first + 1, RMSPEC), (first + len(WRITTEN), TORO_ICARTE), (0, 'a & !(b | "c d")')]
    models = [(len(PARSERS) - 1, drn.format(LabelledMDP.of(make(name)))) for name in SMALL]
    return [*maps, *formulas, *tasks, *others, *models]


def main() -> None:
    """Search, from good texts on."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, (parser, text) in enumerate(seeds()):
            Path(corpus, str(number)).write_bytes(bytes([parser]) + text.encode())
        given = sys.argv[1:]
        is_replay = any(Path(argument).is_file() for argument in given)
        folders = [] if is_replay else [corpus]
        atheris.Setup([sys.argv[0], *LIMITS, *given, *folders], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
