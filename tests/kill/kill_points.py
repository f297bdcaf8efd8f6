#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of a rank that drives its own context, at each numbered point of the executor in clients (engine/point.h).

One rank has a client library that kills it when it comes by point N for the COUNT-th time. The others must be told which rank and
process died, with right bytes until then, and go on in a communicator without it; the daemon has afterwards what it had before. Every
point must be reached at least once.

usage: kill_points.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--counts N] [--seed S] [--point N:COUNT]
"""
import os
import re
import sys
import tempfile

from harness import Daemon, arguments, end_job, report, run_job, start_job

RANKS = 3
ROUNDS = 3000
TRIES = 4  # of a point that was not reached


def points():
    header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../engine/point.h")
    with open(header, encoding="utf-8") as file:
        numbers = {name: int(n) for name, n in re.findall(r"#define (DIRECT_POINT_\w+) (\d+)", file.read())}
    return range(numbers["DIRECT_POINT_FIRST"], numbers["DIRECT_POINT_END"])


def with_points(options, victim, **more):
    """For start_job(): the library that has them is @victim's only."""
    return lambda rank: {"LD_LIBRARY_PATH": os.path.dirname(options.library), **more} if rank == victim else {}


def one_kill(options, daemon, victim, point):
    """None: the point was not reached. Else the list of what is wrong."""
    job = start_job(daemon, options.program, RANKS, RANKS, ROUNDS, ["survives", str(victim), point], more=with_points(options, victim))
    results = end_job(job, 30 * options.scale)
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
    options = arguments("library", counts=2, point="")
    rng = options.rng
    kills = 0
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options, directory, "--no-keeper")
        problems = run_job(daemon, options.program, RANKS, RANKS, 6)
        before = daemon.at_rest()
        for number in points():
            reached = 0
            for turn in range(options.counts + TRIES):
                if turn >= options.counts and reached:
                    break
                point = options.point or "%d:%d" % (number, 1 if turn == 0 or turn >= options.counts else rng.randrange(2, 40))
                wrong = one_kill(options, daemon, rng.randrange(RANKS), point)
                reached += wrong is not None
                problems += ["point %s: %s" % (point, p) for p in (wrong or []) + daemon.left_over(before)]
                if problems:
                    break
            kills += reached
            if not reached:
                problems.append("point %d was never reached" % number)
            if problems:
                break
        problems += daemon.end()
        if problems:
            daemon.show_log()
    return report(problems, "%d kills" % kills)


if __name__ == "__main__":
    sys.exit(main())
