#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of a rank that drives its own context, at numbered points of the executor in clients (engine/point.h).

It delays its partners, and nobody else: another job runs to its end meanwhile. After SIGCONT all goes on, with the right bytes.

usage: stop_points.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--each N] [--seed S]
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from kill_points import points
from kill_rank import Daemon, end_job, settled, start_job

RANKS = 3
ROUNDS = 400


def is_stopped(process):
    try:
        with open("/proc/%d/stat" % process.pid, encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def one_stop(options, daemon, directory, victim, point, scale):
    """None: the point was not reached. Else the list of what is wrong."""
    path = os.path.join(directory, "root.%d" % time.monotonic_ns())
    job, problems = [], []
    for rank in range(RANKS):
        env = daemon.environment(RANK_ID=str(rank), RANK_SIZE=str(RANKS), DEVICE_ID=str(rank))
        if rank == victim:
            env["LD_LIBRARY_PATH"] = os.path.dirname(options.library)
        job.append(subprocess.Popen([options.program, path, str(ROUNDS), "survives", str(victim), point + ":stop"], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    while not is_stopped(job[victim]) and job[victim].poll() is None:
        time.sleep(0.005)
    reached = job[victim].poll() is None
    if reached:
        bystanders = end_job(start_job(daemon, options.program, directory, 2, 2, 20, ["ok"]), 20 * scale)
        if any(r[0] != 0 for r in bystanders):
            problems.append("the others were hurt: %s" % bystanders)
        job[victim].send_signal(signal.SIGCONT)
    results = end_job(job, 60 * scale)
    if any(r[0] != 0 for r in results):
        problems.append("rank %d was stopped: %s" % (victim, results))
    return problems if reached or problems else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    problems, stops = [], 0
    numbers = list(points(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../engine/point.h")))
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options.hccld, directory, ["--no-keeper"])
        end_job(start_job(daemon, options.program, directory, RANKS, RANKS, 6, ["ok"]), 60 * scale)
        before = settled(daemon, options.hcclctl, None, 0.5)
        for number in numbers[rng.randrange(options.each)::options.each]:
            point = "%d:%d" % (number, rng.randrange(1, 20))
            wrong = one_stop(options, daemon, directory, rng.randrange(RANKS), point, scale)
            stops += wrong is not None
            problems += ["point %s: %s" % (point, p) for p in wrong or []]
            after = settled(daemon, options.hcclctl, before, 5.0 * scale)
            if after != before:
                problems.append("point %s: before %s, after %s" % (point, before, after))
            if problems:
                break
        if stops < len(numbers) // options.each // 2 and not problems:
            problems.append("only %d points were reached" % stops)
        if daemon.process.poll() is not None or daemon.stop() != 0:
            problems.append("the daemon did not end well")
        if problems:
            print("log of the daemon:\n" + open(daemon.log.name, encoding="utf-8").read()[-4000:])
    print("\n".join(problems))
    print("%d stops, %d problems" % (stops, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
