#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a rank that drives its own context, at each numbered point of the executor in clients (engine/point.h).

One rank has a client library that kills it when it comes by point N for the COUNT-th time. The others must be told which rank and
process died, with right bytes until then, and go on in a communicator without it; the daemon has afterwards what it had before. Every
point must be reached at least once.

usage: kill_points.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--counts N] [--seed S] [--point N:COUNT]
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from kill_rank import Daemon, end_job, settled, start_job

RANKS = 3
ROUNDS = 3000
TRIES = 4  # of a point that was not reached


def points(header):
    numbers = {name: int(n) for name, n in re.findall(r"#define (DIRECT_POINT_\w+) (\d+)", open(header, encoding="utf-8").read())}
    return range(numbers["DIRECT_POINT_FIRST"], numbers["DIRECT_POINT_END"])


def one_kill(options, daemon, directory, victim, point, scale):
    """None: the point was not reached. Else the list of what is wrong."""
    path = os.path.join(directory, "root.%d" % time.monotonic_ns())
    job = []
    for rank in range(RANKS):
        env = daemon.environment(RANK_ID=str(rank), RANK_SIZE=str(RANKS), DEVICE_ID=str(rank))
        if rank == victim:
            env["LD_LIBRARY_PATH"] = os.path.dirname(options.library)
        job.append(subprocess.Popen([options.program, path, str(ROUNDS), "survives", str(victim), point], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    results = end_job(job, 30 * scale)
    if [r[0] for r in results] == [0] * RANKS:
        return None
    problems = []
    for rank, (status, text) in enumerate(results):
        if status != (-9 if rank == victim else 0):
            problems.append("rank %d ended with %s: %s" % (rank, status, text))
        elif rank != victim and "rank %d, pid %d" % (victim, job[victim].pid) not in text:
            problems.append("rank %d was not told of rank %d, pid %d: %s" % (rank, victim, job[victim].pid, text))
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--counts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--point")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../engine/point.h")
    problems, kills = [], 0
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options.hccld, directory, ["--no-keeper"])
        end_job(start_job(daemon, options.program, directory, RANKS, RANKS, 6, ["ok"]), 60 * scale)
        before = settled(daemon, options.hcclctl, None, 0.5)
        for number in points(header):
            reached = 0
            for turn in range(options.counts + TRIES):
                if turn >= options.counts and reached:
                    break
                point = "%d:%d" % (number, 1 if turn == 0 or turn >= options.counts else rng.randrange(2, 40))
                if options.point:
                    point = options.point
                wrong = one_kill(options, daemon, directory, rng.randrange(RANKS), point, scale)
                reached += wrong is not None
                problems += ["point %s: %s" % (point, p) for p in wrong or []]
                after = settled(daemon, options.hcclctl, before, 5.0 * scale)
                if after != before:
                    problems.append("point %s: before %s, after %s" % (point, before, after))
                if problems:
                    break
            kills += reached
            if not reached:
                problems.append("point %d was never reached" % number)
            if problems:
                break
        if daemon.process.poll() is not None or daemon.stop() != 0:
            problems.append("the daemon did not end well")
        if problems:
            print("log of the daemon:\n" + open(daemon.log.name, encoding="utf-8").read()[-4000:])
    print("\n".join(problems))
    print("%d kills, %d problems" % (kills, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
