#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of a rank that is in the middle of a chunk of a large copy (engine/direct_help.c), and what can happen meanwhile: nothing, another
rank is killed, the daemon's worker is killed, the daemon is told to end.

It holds up that copy and nobody else: another job runs to its end. Afterwards all goes on with the right bytes, or the named error.

usage: stop_chunk.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--times N] [--seed S]
"""
import os
import signal
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job
from kill_points import with_points
from stop_points import is_stopped

RANKS = 3
ROUNDS = 600
OWNS_CHUNK = 137  # a point
DEAD = 0
TRIES = 5  # the others may be faster


def start(options, daemon, victim):
    point = "%d:%d:stop" % (OWNS_CHUNK, options.rng.randrange(1, 20))
    return start_job(daemon, options.program, RANKS, RANKS, ROUNDS, ["survives", str(DEAD), "0:0"],
                     more=with_points(options, victim, HCCLD_CRASH_POINT=point))


def wait_stopped(process, seconds):
    end = time.monotonic() + seconds
    while not is_stopped(process) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    return is_stopped(process)


def one_turn(options, what, directory):
    scale = options.scale
    daemon = Daemon(options, directory, "--keeper" if what == "worker" else "--no-keeper")
    problems = run_job(daemon, options.program, RANKS, RANKS, 6)
    before = daemon.at_rest()
    pid = daemon.worker_pid()
    victim = options.rng.randrange(1, RANKS)
    for _ in range(TRIES):
        job = start(options, daemon, victim)
        if wait_stopped(job[victim], 30 * scale):
            break
        problems += ["not stopped: %s" % r for r in end_job(job, 60 * scale) if r[0] != 0]
    else:
        return problems + ["rank %d was not stopped" % victim]
    if what == "peer":
        job[DEAD].kill()
    elif what == "worker":
        os.kill(pid, signal.SIGKILL)
        if daemon.worker_pid(pid) is None:
            problems.append("the worker did not come back")
    elif what == "end":
        problems += daemon.end()
    if what != "end":
        problems += run_job(daemon, options.program, 2, 2, 20, 30)
        if job[victim].poll() is not None or (what != "peer" and any(p.poll() is not None for p in job)):
            problems.append("ended while rank %d was stopped" % victim)
    job[victim].send_signal(signal.SIGCONT)
    if what == "end":
        for process in job:
            process.kill()
    results = end_job(job, 60 * scale)
    wanted = [-9 if what == "peer" and rank == DEAD else 0 for rank in range(RANKS)]
    if what != "end":
        if [r[0] for r in results] != wanted:
            problems.append("rank %d was stopped: %s" % (victim, results))
        problems += daemon.left_over(before, ["fds"]) + daemon.end()
    if problems:
        daemon.show_log()
    return problems


def main():
    options = arguments("library", times=2)
    problems, turns = [], 0
    for what in ["nothing", "peer", "worker", "end"] * options.times:
        with tempfile.TemporaryDirectory() as directory:
            problems += ["%s: %s" % (what, p) for p in one_turn(options, what, directory)]
        turns += 1
        if problems:
            break
    return report(problems, "%d turns" % turns)


if __name__ == "__main__":
    sys.exit(main())
