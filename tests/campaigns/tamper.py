"""Tampered files of runs, with a checksum that fits: each is refused, or trains on to its end.

    PYTHONPATH=tests python -m campaigns.tamper             all of them, with checks of all indices
    PYTHONPATH=tests python -m campaigns.tamper --of qrmax --seed 3 --count 200

Every array and every number of the description of a small run of every agent is changed, an entry
or all of them: to 0, -1, the ends of what its type can hold, infinities, NaN, another order; counts
also together with what they have to add up to. Files are loaded and trained on in a process of
their own, which is watched: one that hangs or dies is an error, as is any exception but ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import qrmax
from damage import Tables, write_changed
from qrmax.errors import QRMaxError, QRMaxWarning
from small_runs import LEARNERS, corridor

FURTHER = 120  # steps to train on
SECONDS = 20.0  # that a file may take, once everything is compiled
NUMBERS = (0, -1, 1, 2, 7, 1000, 2**31 - 1, -(2**31), 2**63, 10**30, 0.5, -0.5, 1e-300, 1e300)
NUMBERS += (float("nan"), float("inf"), -float("inf"), None)


class Tampering(NamedTuple):
    """A change of a run's file."""

    of: str  # the name of a run
    what: str
    change: Callable[[dict[str, Any], Tables], object]


class Trouble(NamedTuple):
    """A file that was neither refused nor trained on with."""

    of: str
    what: str
    happened: str


class Found(NamedTuple):
    """What has become of all files."""

    outcomes: Counter[str]  # "refused", "trained on", and what should not be
    troubles: list[Trouble]


def make_run(name: str) -> qrmax.Run:
    """A small run, in the middle of an episode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)
        if name in LEARNERS:
            problem = corridor(length=4, start=1, bonus=0.01)
            return LEARNERS[name].train(problem, max_steps=70, evaluate_every=50)
        lake = qrmax.make("continuous/frozen-lake/abc", step=0.9, noise=0.2)
        settings: dict[str, Any] = {"t_env": 2, "grid": 10}
        if name.startswith("dqn"):
            settings = {"hidden": 8, "learning_starts": 20, "buffer_size": 100}
        options = {"stop": "budget", "evaluate_every": 1000, **settings}
        return qrmax.train(name, lake, max_steps=70, **options)


def run_names() -> list[str]:
    """The runs whose files are tampered with."""
    names = [*LEARNERS, "bucket-qrmax", "bucket-qrmax-rm", "bucket-rmax"]
    if importlib.util.find_spec("stable_baselines3") is not None:
        names += ["dqn", "dqn-rm"]
    return names


# --- what is changed


def tamperings(name: str, path: Path, seed: int = 0) -> list[Tampering]:
    """All changes of the file of this run."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[dict[str, Any], Tables]] = []
    write_changed(path, lambda described, arrays: kept.append((described, arrays)))
    described, arrays = kept[0]
    found = [
        Tampering(name, f"{array}{what}", change)
        for array in arrays
        for what, change in _of_array(array, arrays[array], rng)
    ]
    found += [
        Tampering(name, f"{'.'.join(map(str, keys))} = {number}", _setting(keys, number))
        for keys in _numbers_in(described)
        for number in NUMBERS
        if not (keys[-1] == "evaluate_every" and number in (1, 2, 7))  # as slow in any run
    ]
    return found + [Tampering(name, what, change) for what, change in _of_counts(arrays)]


def _of_array(
    name: str, array: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[str, Callable[..., object]]]:
    if array.size == 0:
        return
    filled = np.flatnonzero(np.isfinite(array.ravel()) & (array.ravel() != 0))
    places = {0, array.size - 1, int(rng.integers(array.size))}
    if len(filled):
        places |= {int(filled[0]), int(filled[-1]), int(rng.choice(filled))}
    for value in _values(array.dtype):
        for place in sorted(places):
            yield f"[{place}] = {value}", _writing(name, place, value)
        yield f"[:] = {value}", _writing(name, slice(None), value)
    yield " permuted", _reordering(name, rng.permutation(array.size))
    yield " reversed", _reordering(name, np.arange(array.size)[::-1])
    if array.dtype.kind in "if":
        yield " doubled", _scaling(name, 2)
        yield " negated", _scaling(name, -1)


def _values(dtype: np.dtype[Any]) -> Sequence[Any]:
    if dtype.kind == "b":
        return (False, True)
    if dtype.kind == "f":
        largest = float(np.finfo(dtype).max)
        return (0.0, -1.0, 1.0, 1e-30, 1e30, largest, -largest, np.nan, np.inf, -np.inf)
    limits = np.iinfo(dtype)
    return (0, -1, 1, 2, 1000, int(limits.max), int(limits.min))


def _writing(name: str, place: int | slice, value: Any) -> Callable[..., object]:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        array = arrays[name].copy()
        array.reshape(-1)[place] = value
        arrays[name] = array

    return change


def _reordering(name: str, order: np.ndarray) -> Callable[..., object]:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        arrays[name] = arrays[name].ravel()[order].reshape(arrays[name].shape)

    return change


def _scaling(name: str, factor: int) -> Callable[..., object]:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        arrays[name] = (arrays[name] * factor).astype(arrays[name].dtype)

    return change


def _numbers_in(data: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers are; of a learning curve, only the first row."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _numbers_in(value, (*keys, key))
    elif isinstance(data, list):
        for i, value in enumerate(data[:1] if keys == ("curve",) else data):
            yield from _numbers_in(value, (*keys, i))
    elif isinstance(data, int | float) and keys[0] not in ("schema", "version"):
        yield keys


def _setting(keys: tuple[Any, ...], number: Any) -> Callable[..., object]:
    def change(described: dict[str, Any], _: Tables) -> None:
        place: Any = described
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = number

    return change


def _of_counts(arrays: Tables) -> Iterator[tuple[str, Callable[..., object]]]:
    """Counts out of range that add up: how often a pair was tried, and what that led to."""
    for name in arrays:
        if not name.endswith(".tau"):
            continue
        tried = name.removesuffix("tau") + "n"
        for value in (2, 50, 10**6, 10**9, 2**31 - 1, -5):
            yield f"{name} and {tried} = {value}", _adding_up(name, tried, value)


def _adding_up(tau: str, tried: str, value: int) -> Callable[..., object]:
    def change(_: dict[str, Any], arrays: Tables) -> None:
        counts, n = arrays[tau].copy(), arrays[tried].copy()
        pair = tuple(int(i) for i in np.argwhere(n)[0])
        k = int(counts[pair].argmax())
        n[pair] += value - counts[(*pair, k)]
        counts[(*pair, k)] = value
        arrays[tau], arrays[tried] = counts, n

    return change


# --- what comes of it


def try_all(
    name: str, *, seed: int = 0, count: int | None = None, seconds: float = SECONDS
) -> Found:
    """Tamper with the file of a run in all ways, or in so many of them; in another process."""
    found = Found(Counter(), [])
    begin, context = 0, multiprocessing.get_context("spawn")
    while begin >= 0:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_work, args=(theirs, name, seed, count, begin), daemon=True)
        child.start()
        theirs.close()
        begin = _watch(ours, child, name, seconds, found)
    return found


def _watch(
    reports: Connection, child: multiprocessing.process.BaseProcess, name: str, seconds: float,
    found: Found,
) -> int:  # fmt: skip
    """Note what the other process says; returns where the next one is to begin, or -1."""
    current, what, patience = -1, "while getting ready", 600.0
    while True:
        try:
            happened = "hangs" if not reports.poll(patience) else ""
            message = reports.recv() if not happened else None
        except EOFError:
            child.join()
            happened, message = f"dies (exit code {child.exitcode})", None
        if happened:
            child.kill()
            child.join()
            found.outcomes[happened.partition(" ")[0]] += 1
            found.troubles.append(Trouble(name, what, happened))
            return current + 1 if current >= 0 else -1
        kind, *rest = message
        if kind == "begin":
            (current, what), patience = rest, seconds
        elif kind == "end":
            found.outcomes[rest[0]] += 1
            if rest[1]:
                found.troubles.append(Trouble(name, what, rest[1]))
        else:
            child.join()
            return -1


def _work(reports: Connection, name: str, seed: int, count: int | None, begin: int) -> None:
    """Try the changes of a run's file, from the given one on."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 (to the end of the process)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        make_run(name).save(path)
        whole = path.read_bytes()
        _try(path)  # compiles
        path.write_bytes(whole)
        changes = tamperings(name, path, seed)
        if count is not None:
            chosen = np.random.default_rng(seed).permutation(len(changes))[:count]
            changes = [changes[i] for i in sorted(chosen.tolist())]
        for number, (_, what, change) in enumerate(changes):
            if number < begin:
                continue
            reports.send(("begin", number, what))
            path.write_bytes(whole)
            try:
                write_changed(path, change)
            except (ValueError, OverflowError, LookupError):
                reports.send(("end", "no such file", ""))
                continue
            reports.send(("end", *_try(path)))
    reports.send(("over",))


def _try(path: Path) -> tuple[str, str]:
    """Load a run, train on and save it; returns what happened, and what should not have."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QRMaxWarning)
            run = qrmax.load(path)
            if run.reason == "budget":
                run.resume(run.trained + FURTHER)
            run.save(path)
    except QRMaxError:
        return "refused", ""
    except Exception as error:
        return "crashes", f"{type(error).__name__}: {error}"
    return "trained on", ""


def main() -> None:
    """Try all of it, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--of", nargs="*", help="runs of these agents only", default=run_names())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="so many changes of each run, by chance")
    parser.add_argument("--unchecked", action="store_true", help="as users run it: indices too")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    troubles: list[Trouble] = []
    with tempfile.TemporaryDirectory() as cache:
        if not options.unchecked:  # compiled anew, with checks; nothing of it is kept
            os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        for name in options.of:
            began = time.monotonic()
            found = try_all(name, seed=options.seed, count=options.count)
            total += found.outcomes
            troubles += found.troubles
            shown = ", ".join(f"{n:,} {what}" for what, n in found.outcomes.most_common())
            print(f"{name}: {shown}; {time.monotonic() - began:.0f} s", flush=True)
            for trouble in found.troubles:
                print(f"  {trouble.what}: {trouble.happened}", flush=True)
    print(json.dumps({"files": total.total(), **total}))
    sys.exit(bool(troubles))


if __name__ == "__main__":
    main()
