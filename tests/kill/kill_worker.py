#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon's worker under its keeper while a job is in the middle of transfers.

The worker comes back with all sessions, communicators and memory, and its engine goes on from the words in shared memory: every rank
finishes all its rounds with the right bytes. Afterwards nothing of the job is left in the daemon.

usage: kill_worker.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--ranks N]
"""
import os
import signal
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job


def one_turn(options, directory):
    daemon = Daemon(options, directory, "--keeper")
    pid = daemon.worker_pid()
    problems = run_job(daemon, options.program, options.ranks, 8, 6)
    before = daemon.at_rest()
    # rounds enough to be in the middle of when the worker dies; each is a mesh of 8 B to 3 MiB
    job = start_job(daemon, options.program, options.ranks, 8, 600, ["ok"])
    for process in job:
        process.stdout.readline()
    for _ in range(2):
        time.sleep(options.rng.random() * 0.3)
        if any(p.poll() is not None for p in job):
            break
        os.kill(pid, signal.SIGKILL)
        pid = daemon.worker_pid(pid)
        if pid is None:
            problems.append("the worker did not come back")
            break
    results = end_job(job, 120 * options.scale if not problems else 1)
    if any(r[0] != 0 for r in results):
        problems.append("%s" % results)
    if not problems:
        problems += daemon.left_over(before, ["fds"])
    problems += daemon.end()
    if problems:
        daemon.show_log()
    return problems


def main():
    options = arguments(times=6, ranks=4)
    problems = []
    for turn in range(options.times):
        # a daemon of its own: three deaths within 10 s of a start each would drop the registry, and are to
        with tempfile.TemporaryDirectory() as directory:
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, directory)]
        if problems:
            break
    return report(problems, "%d turns" % options.times)


if __name__ == "__main__":
    sys.exit(main())
