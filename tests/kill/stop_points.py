#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of a rank that drives its own context, at numbered points of the executor in clients (engine/point.h).

It delays its partners, and nobody else: another job runs to its end meanwhile. After SIGCONT all goes on, with the right bytes.

usage: stop_points.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--each N] [--seed S]
"""
import signal
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job
from kill_points import points, with_points

RANKS = 3
ROUNDS = 400


def is_stopped(process):
    try:
        with open("/proc/%d/stat" % process.pid, encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def one_stop(options, daemon, victim, point):
    """None: the point was not reached. Else the list of what is wrong."""
    problems = []
    job = start_job(daemon, options.program, RANKS, RANKS, ROUNDS, ["survives", str(victim), point + ":stop"],
                    more=with_points(options, victim))
    while not is_stopped(job[victim]) and job[victim].poll() is None:
        time.sleep(0.005)
    reached = job[victim].poll() is None
    if reached:
        problems += run_job(daemon, options.program, 2, 2, 20, 20)
        job[victim].send_signal(signal.SIGCONT)
    results = end_job(job, 60 * options.scale)
    if any(r[0] != 0 for r in results):
        problems.append("rank %d was stopped: %s" % (victim, results))
    return problems if reached or problems else None


def main():
    options = arguments("library", each=4)
    rng, stops = options.rng, 0
    numbers = list(points())
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options, directory, "--no-keeper")
        problems = run_job(daemon, options.program, RANKS, RANKS, 6)
        before = daemon.at_rest()
        for number in numbers[rng.randrange(options.each)::options.each]:
            point = "%d:%d" % (number, rng.randrange(1, 20))
            wrong = one_stop(options, daemon, rng.randrange(RANKS), point)
            stops += wrong is not None
            problems += ["point %s: %s" % (point, p) for p in (wrong or []) + daemon.left_over(before)]
            if problems:
                break
        if stops < len(numbers) // options.each // 2 and not problems:
            problems.append("only %d points were reached" % stops)
        problems += daemon.end()
        if problems:
            daemon.show_log()
    return report(problems, "%d stops" % stops)


if __name__ == "__main__":
    sys.exit(main())
