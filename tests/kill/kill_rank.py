#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one of 8 ranks at random moments, again and again.

The other ranks must be told which rank died, within seconds; afterwards the daemon's memory, sessions, communicators and
descriptors are what they were before, and another job runs to its end.

usage: kill_rank.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--ranks N]
"""
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job


def one_turn(options, daemon, before):
    victim = options.rng.randrange(options.ranks)
    job = start_job(daemon, options.program, options.ranks, 8, 1 << 30, ["death", str(victim)])
    job[victim].stdout.readline()  # it is in its rounds
    time.sleep(options.rng.random() * 0.05)
    job[victim].kill()
    results = end_job(job, 30 * options.scale)
    bad = [(i, r) for i, r in enumerate(results) if r[0] != (-9 if i == victim else 0)]
    problems = ["rank %d killed: %s" % (victim, bad)] if bad else []
    return problems + daemon.left_over(before)


def main():
    options = arguments(times=20, ranks=8)
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options, directory, "--no-keeper")
        # one job first: what the daemon makes once (tables, regions of the tenant) is there afterwards
        problems = run_job(daemon, options.program, options.ranks, 8, 6)
        before = daemon.at_rest()
        for turn in range(options.times):
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, daemon, before)]
            if turn % 10 == 9:
                problems += run_job(daemon, options.program, options.ranks, 8, 12)
        problems += daemon.end()
        if problems:
            daemon.show_log()
    return report(problems, "%d kills" % options.times)


if __name__ == "__main__":
    sys.exit(main())
