#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of one rank in the middle of a job, and a daemon that is told to end in the middle of one.

A stopped process delays its partners and nobody else: another job runs to its end meanwhile, hcclctl says who is stopped, and after
SIGCONT all goes on with the right bytes. When the daemon ends, the ranks get a named error.

usage: stop_rank.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S]
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job


def verdict_names(daemon, pid):
    """None, or what hcclctl says instead of that @pid is stopped."""
    end = time.monotonic() + 5 * daemon.scale
    out = ""
    while time.monotonic() < end:
        out = subprocess.run([daemon.hcclctl, "waiting"], env=daemon.environment(), capture_output=True, text=True, check=False).stdout
        if "stopped" in out and str(pid) in out:
            return None
        time.sleep(0.05)
    return out


def one_turn(options, daemon):
    job = start_job(daemon, options.program, 4, 4, 300, ["ok", "held"], subprocess.PIPE)
    for process in job:
        process.stdout.readline()
    time.sleep(options.rng.random() * 0.1)
    victim = options.rng.randrange(4)
    job[victim].send_signal(signal.SIGSTOP)
    for process in job:
        process.stdin.close()  # the victim has its last round before it, so nobody can end
        process.stdin = None
    problems = run_job(daemon, options.program, 2, 2, 60, 20)
    ended = [p.poll() for p in job]
    if ended != [None] * 4:
        problems.append("ended while rank %d was stopped: %s" % (victim, ended))
    else:
        out = verdict_names(daemon, job[victim].pid)
        if out is not None:
            problems.append("hcclctl does not say that pid %d is stopped: %s" % (job[victim].pid, out))
    job[victim].send_signal(signal.SIGCONT)
    results = end_job(job, 60 * options.scale)
    if any(r[0] != 0 for r in results):
        problems.append("after SIGCONT of rank %d: %s" % (victim, results))
    return problems


def stop_daemon(options, daemon):
    job = start_job(daemon, options.program, 4, 4, 1 << 30, ["any"])
    for process in job:
        process.stdout.readline()
    problems = daemon.end()
    results = end_job(job, 20 * options.scale)
    # 3: an error with a text
    if any(r[0] != 3 for r in results):
        problems.append("after the daemon's end: %s" % results)
    if os.path.exists(daemon.socket):
        problems.append("the socket file is left")
    return problems


def main():
    options = arguments(times=5)
    problems = []
    for keeper in ("--no-keeper", "--keeper"):
        with tempfile.TemporaryDirectory() as directory:
            daemon = Daemon(options, directory, keeper)
            problems += run_job(daemon, options.program, 4, 4, 3)
            before = daemon.at_rest()
            for _ in range(options.times):
                problems += one_turn(options, daemon)
            problems += daemon.left_over(before) + stop_daemon(options, daemon)
            if problems:
                daemon.show_log()
                break
    return report(problems, "%d stops" % options.times)


if __name__ == "__main__":
    sys.exit(main())
