"""Random signals to a sweep and to its workers: the results are those of an undisturbed sweep.

    PYTHONPATH=tests python -m campaigns.kill          5 campaigns of 45 runs, 30 signals each
    PYTHONPATH=tests python -m campaigns.kill --campaigns 1 --signals 6 --seeds 1 --seed 3

SIGKILL, SIGTERM, SIGINT and SIGSTOP go, at random moments, to the driver or to one of its workers;
what was stopped goes on after a moment, and a driver that has ended is started again, with the same
command. In the end every file of every run is compared, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from small_studies import (
    assert_same_results,
    complete,
    is_alive,
    record,
    started,
    wait_until,
    workers_of,
    write_study,
)

STUDY = """
problems = ["office/map1/exp1", "office/map1/exp5", "office/map2/exp3"]
agents = ["q-learning", "qrm", {{ agent = "qrmax-rm", t_env = 300 }}]
seeds = {seeds}
stop = "budget"
max_steps = {steps}
evaluate_every = 1000
"""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP)
RUNS_A_SEED = 9  # of that study
OFTEN = ("--checkpoint-every", "0.3", "--workers", "2", "--quiet")
LONGEST_PAUSE = 2.0  # seconds between two signals
LONGEST_STOP = 1.5  # seconds that a process is stopped
MINUTES = 15  # that a campaign may take


def campaign(folder: Path, signals: int, seed: int) -> Counter[str]:
    """Sweep the study of a folder to its end, under so many signals; returns what was sent."""
    chance = random.Random(seed)
    plan = [SIGNALS[i % len(SIGNALS)] for i in range(signals)]
    chance.shuffle(plan)
    sent: Counter[str] = Counter()
    until = time.monotonic() + 60 * MINUTES
    while sent.total() < signals and time.monotonic() < until:
        with started(folder, *OFTEN) as process:
            wait_until(lambda process=process: _is_under_way(process))
            while process.poll() is None and sent.total() < signals:
                time.sleep(chance.uniform(0.0, LONGEST_PAUSE))
                _send_one(process, plan[sent.total()], chance, sent)
                if sent.total() % 10 == 0:
                    print(f"  {sent.total()} signals, {len(complete(folder))} complete", flush=True)
            if process.poll() is None:
                break  # the rest is swept without
            if _exit_code(process) == 0:
                break  # all is done
    if sweep_to_the_end(folder, *OFTEN) == 1:  # a run whose worker was killed three times
        assert sweep_to_the_end(folder, *OFTEN) == 0
    assert time.monotonic() < until, "the campaign has taken too long"
    return sent


def sweep_to_the_end(folder: Path, *arguments: str, **environment: str) -> int:
    """Sweep the study of a folder without any signals; returns the exit code, 0 or 1."""
    with started(folder, *arguments, **environment) as process:
        _, err = process.communicate(timeout=60 * MINUTES)
    assert process.returncode in (0, 1), (process.returncode, err)
    return process.returncode


def _is_under_way(process: subprocess.Popen[str]) -> bool:
    return process.poll() is not None or bool(workers_of(process.pid))


def _send_one(
    process: subprocess.Popen[str],
    number: signal.Signals,
    chance: random.Random,
    sent: Counter[str],
) -> None:
    """A signal to the driver or to a worker; whoever is stopped goes on soon."""
    workers = sorted(workers_of(process.pid))
    to_driver = not workers or chance.random() < 0.4
    pid = process.pid if to_driver else chance.choice(workers)
    pause = chance.uniform(0.1, LONGEST_STOP)
    with suppress(ProcessLookupError):  # it may have ended meanwhile
        os.kill(pid, number)
        sent[f"{number.name} to {'driver' if to_driver else 'worker'}"] += 1
        if number == signal.SIGSTOP:
            time.sleep(pause)
            os.kill(pid, signal.SIGCONT)
        elif to_driver:
            process.wait(timeout=60)
            wait_until(lambda: not any(map(is_alive, workers)), seconds=30)  # none outlives it


def _exit_code(process: subprocess.Popen[str]) -> int:
    """A driver ends by a signal, because it was asked to, or because all is done."""
    _, err = process.communicate(timeout=60)
    allowed = (0, 1, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
    assert process.returncode in allowed, (process.returncode, err)
    return process.returncode


def check(folder: Path, reference: Path, runs: int) -> None:
    """All runs are there, none has failed, and all are as they were without signals."""
    found = record(folder)
    assert len(found) == runs, f"{len(found)} of {runs} runs"
    assert all(data["status"] == "done" for data in found.values())
    assert_same_results(folder / "results", reference / "results")


def campaigns(
    options: argparse.Namespace, disturb: Callable[[Path, int], Counter[str]], *undisturbed: str
) -> Counter[str]:
    """Sweep a study once undisturbed and then in each campaign, to the same results."""
    text = STUDY.format(seeds=options.seeds, steps=options.steps)
    runs, total = RUNS_A_SEED * options.seeds, Counter[str]()
    with tempfile.TemporaryDirectory() as where:
        reference = Path(where) / "reference"
        reference.mkdir()
        write_study(reference, text)
        began = time.monotonic()
        assert sweep_to_the_end(reference, *undisturbed) == 0
        print(f"undisturbed: {runs} runs in {time.monotonic() - began:.0f} s", flush=True)
        for number in range(options.campaigns):
            folder = Path(where) / f"campaign{number}"
            folder.mkdir()
            write_study(folder, text)
            began = time.monotonic()
            total += disturb(folder, options.seed + number)
            check(folder, reference, runs)
            print(f"campaign {number}: the same, {time.monotonic() - began:.0f} s", flush=True)
    return total


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the campaigns, and say what was sent."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--campaigns", type=int, default=5)
    parser.add_argument("--signals", type=int, default=30, help="in each campaign")
    parser.add_argument("--seeds", type=int, default=5, help="of the study: 9 runs for each")
    parser.add_argument("--steps", type=int, default=1_500_000, help="of each run")
    parser.add_argument("--seed", type=int, default=0, help="of the first campaign")
    options = parser.parse_args(arguments)
    sent = campaigns(options, lambda folder, seed: campaign(folder, options.signals, seed), *OFTEN)
    print(", ".join(f"{n} {what}" for what, n in sorted(sent.items())))
    runs = options.campaigns * RUNS_A_SEED * options.seeds
    print(f"{sent.total()} signals; {runs} runs, all as without any")


if __name__ == "__main__":
    sys.exit(main())
