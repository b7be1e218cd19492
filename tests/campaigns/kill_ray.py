"""Kills of all kinds in a Ray cluster of two nodes: no run is lost, and none fails of them.

    PYTHONPATH=tests python -m campaigns.kill_ray              3 campaigns of 18 runs and 9 kills
    PYTHONPATH=tests python -m campaigns.kill_ray --campaigns 1 --kills 4 --seeds 1

A kill is SIGKILL to a worker, to the raylet of the second node (which is started again), to the
raylet or the GCS of the head (the cluster is gone: the sweep has to end with one error and exit
code 2; the cluster is started again), or to the driver. A sweep that has ended is started again,
with the same command. In the end every file of every run is compared with those of local workers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from campaigns.kill import RUNS_A_SEED, campaigns, sweep_to_the_end
from ray_clusters import SECRET, Cluster
from small_studies import complete, record, started, wait_until

KINDS = ("worker", "worker", "worker", "node", "raylet of the head", "GCS", "driver")
MOST_KILLS_OF_WORKERS = 2  # in one sweep: three over one run would be that run's fault
LONGEST_PAUSE = 4.0  # seconds between two kills
SOON = 60  # seconds in which a sweep notices that its cluster has gone
MINUTES = 15  # that a campaign may take


def campaign(folder: Path, kills: int, seed: int) -> Counter[str]:
    """Sweep the study of a folder to its end, under so many kills; returns what was killed."""
    chance = random.Random(seed)
    plan = [KINDS[i % len(KINDS)] for i in range(kills)]
    chance.shuffle(plan)
    killed: Counter[str] = Counter()
    until = time.monotonic() + 60 * MINUTES
    with Cluster(cpus=1) as cluster:
        cluster.add_node()
        command = ["--checkpoint-every", "0.5", "--backend", "ray", "--address", cluster.address]
        while plan and time.monotonic() < until:
            with started(folder, *command, "--quiet", **SECRET) as process:
                _disturb(process, cluster, plan, chance, killed)
                if process.poll() is None:
                    break  # all kills are done; the rest is swept without
            _check_nothing_failed(folder)
            done = len(complete(folder))
            print(f"  {killed.total()} kills, {done} complete", flush=True)
            if process.returncode == 0:
                break  # all is done
        assert sweep_to_the_end(folder, *command, "--quiet", **SECRET) == 0
    assert time.monotonic() < until, "the campaign has taken too long"
    return killed


def _disturb(
    process: subprocess.Popen[str],
    cluster: Cluster,
    plan: list[str],
    chance: random.Random,
    killed: Counter[str],
) -> None:
    """Kill one thing after the other, until the sweep ends or all kills are done."""
    workers = 0
    while plan and process.poll() is None:
        with suppress(AssertionError):  # between two stretches of work no one is at work
            wait_until(lambda: cluster.at_work() or process.poll() is not None, seconds=30)
        time.sleep(chance.uniform(0.0, LONGEST_PAUSE))
        if process.poll() is not None:
            return
        kind = plan[-1]
        if kind == "worker":
            if workers == MOST_KILLS_OF_WORKERS:
                os.kill(process.pid, signal.SIGINT)  # begin again, with as many lives as before
                process.communicate(timeout=SOON)
                return
            at_work = cluster.at_work()
            if not at_work:
                continue
            with suppress(ProcessLookupError):
                os.kill(chance.choice(at_work), signal.SIGKILL)
            workers += 1
        elif kind == "node":
            cluster.kill_node()
            time.sleep(chance.uniform(0.0, LONGEST_PAUSE))
            cluster.add_node()
        elif kind == "driver":
            os.kill(process.pid, signal.SIGKILL)
            process.communicate(timeout=SOON)
        else:
            _kill_cluster(process, cluster, "gcs_server" if kind == "GCS" else "raylet")
        plan.pop()
        killed[kind] += 1


def _kill_cluster(process: subprocess.Popen[str], cluster: Cluster, part: str) -> None:
    """The sweep ends with one error, or was done just then; the cluster is started again."""
    os.kill(cluster.part(part), signal.SIGKILL)
    out, err = process.communicate(timeout=SOON)
    gone = process.returncode == 2 and err.count("error: the Ray cluster is gone: ") == 1
    assert gone or process.returncode == 0, (process.returncode, out, err)
    assert "Traceback" not in err, err
    cluster.kill()
    cluster.start()
    cluster.add_node()


def _check_nothing_failed(folder: Path) -> None:
    failed = [data for data in record(folder).values() if data["status"] != "done"]
    assert not failed, failed


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the campaigns, and say what was killed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--campaigns", type=int, default=3)
    parser.add_argument("--kills", type=int, default=9, help="in each campaign")
    parser.add_argument("--seeds", type=int, default=2, help="of the study: 9 runs for each")
    parser.add_argument("--steps", type=int, default=10_000_000, help="of each run")
    parser.add_argument("--seed", type=int, default=0, help="of the first campaign")
    options = parser.parse_args(arguments)
    killed = campaigns(
        options,
        lambda folder, seed: campaign(folder, options.kills, seed),
        "--workers",
        "2",
        "--quiet",
    )
    print(", ".join(f"{n} x {what}" for what, n in sorted(killed.items())))
    runs = options.campaigns * RUNS_A_SEED * options.seeds
    print(f"{killed.total()} kills; {runs} runs, none lost, none failed")


if __name__ == "__main__":
    sys.exit(main())
