#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of one rank in the middle of a job, and a daemon that is told to end in the middle of one.

A stopped process delays its partners and nobody else: another job runs to its end meanwhile, hcclctl says who is stopped, and after
SIGCONT all goes on with the right bytes. When the daemon ends, the ranks get a named error.

usage: stop_rank.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S]
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from kill_rank import Daemon, end_job, settled, start_job


def verdict_names(daemon, hcclctl, pid, seconds):
    end = time.monotonic() + seconds
    out = ""
    while time.monotonic() < end:
        out = subprocess.run([hcclctl, "waiting"], env=daemon.environment(), capture_output=True, text=True, check=False).stdout
        if "stopped" in out and str(pid) in out:
            return None
        time.sleep(0.05)
    return out


def one_turn(options, daemon, directory, rng, scale):
    problems = []
    job = start_job(daemon, options.program, directory, 4, 4, 300, ["ok", "held"], subprocess.PIPE)
    for process in job:
        process.stdout.readline()
    time.sleep(rng.random() * 0.1)
    victim = rng.randrange(4)
    job[victim].send_signal(signal.SIGSTOP)
    for process in job:
        process.stdin.close()  # the victim has its last round before it, so nobody can end
        process.stdin = None
    bystanders = end_job(start_job(daemon, options.program, directory, 2, 2, 60, ["ok"]), 20 * scale)
    if any(r[0] != 0 for r in bystanders):
        problems.append("the others were hurt: %s" % bystanders)
    ended = [p.poll() for p in job]
    if ended != [None] * 4:
        problems.append("ended while rank %d was stopped: %s" % (victim, ended))
    else:
        out = verdict_names(daemon, options.hcclctl, job[victim].pid, 5 * scale)
        if out is not None:
            problems.append("hcclctl does not say that pid %d is stopped: %s" % (job[victim].pid, out))
    job[victim].send_signal(signal.SIGCONT)
    results = end_job(job, 60 * scale)
    if any(r[0] != 0 for r in results):
        problems.append("after SIGCONT of rank %d: %s" % (victim, results))
    return problems


def stop_daemon(options, daemon, directory, scale):
    job = start_job(daemon, options.program, directory, 4, 4, 1 << 30, ["any"])
    for process in job:
        process.stdout.readline()
    status = daemon.stop()
    results = end_job(job, 20 * scale)
    problems = [] if status == 0 else ["the daemon ended with %s" % status]
    # 3: an error with a text
    if any(r[0] != 3 for r in results):
        problems.append("after the daemon's end: %s" % results)
    if os.path.exists(daemon.socket):
        problems.append("the socket file is left")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    problems = []
    for keeper in ("--no-keeper", "--keeper"):
        with tempfile.TemporaryDirectory() as directory:
            daemon = Daemon(options.hccld, directory, [keeper])
            end_job(start_job(daemon, options.program, directory, 4, 4, 3, ["ok"]), 60 * scale)
            before = settled(daemon, options.hcclctl, None, 0.5)
            for _ in range(options.times):
                problems += one_turn(options, daemon, directory, rng, scale)
            after = settled(daemon, options.hcclctl, before, 5.0 * scale)
            if after != before:
                problems.append("before %s, after %s" % (before, after))
            problems += stop_daemon(options, daemon, directory, scale)
            if problems:
                print("log of the daemon:\n" + open(daemon.log.name, encoding="utf-8").read()[-3000:])
                break
    print("\n".join(problems))
    print("%d problems" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
