#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon's worker under its keeper while a job is in the middle of transfers.

The worker comes back with all sessions, communicators and memory, and its engine goes on from the words in shared memory: every rank
finishes all its rounds with the right bytes. Afterwards nothing of the job is left in the daemon.

usage: kill_worker.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--ranks N]
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

from kill_rank import Daemon, end_job, settled, start_job


def worker_pid(daemon, hcclctl, other_than, seconds):
    """The pid of the worker that serves now, once it is another one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            pid = daemon.status(hcclctl)["pid"]
            if pid != other_than:
                return pid
        except (ValueError, KeyError):
            pass
        time.sleep(0.02)
    return None


def one_turn(options, turn, directory, rng, scale):
    failures = 0
    daemon = Daemon(options.hccld, directory, ["--keeper"])
    pid = worker_pid(daemon, options.hcclctl, None, 10 * scale)
    end_job(start_job(daemon, options.program, directory, options.ranks, 8, 6, ["ok"]), 60 * scale)
    before = settled(daemon, options.hcclctl, None, 0.5)
    # rounds enough to be in the middle of when the worker dies; each is a mesh of 8 B to 3 MiB
    job = start_job(daemon, options.program, directory, options.ranks, 8, 600, ["ok"])
    for process in job:
        process.stdout.readline()
    for _ in range(2):
        time.sleep(rng.random() * 0.3)
        if any(p.poll() is not None for p in job):
            break
        os.kill(pid, signal.SIGKILL)
        pid = worker_pid(daemon, options.hcclctl, pid, 20 * scale)
        if pid is None:
            print("turn %d: the worker did not come back" % turn)
            failures += 1
            break
    results = end_job(job, 120 * scale if not failures else 1)
    if any(r[0] != 0 for r in results):
        failures += 1
        print("turn %d: %s" % (turn, results))
    after = settled(daemon, options.hcclctl, before, 5.0 * scale) if not failures else before
    if {k: after[k] for k in after if k != "fds"} != {k: before[k] for k in before if k != "fds"}:
        failures += 1
        print("turn %d: before %s, after %s" % (turn, before, after))
    if daemon.process.poll() is not None or daemon.stop() != 0:
        failures += 1
        print("turn %d: the daemon did not end well" % turn)
    if failures:
        print("log of the daemon:\n" + open(daemon.log.name).read()[-6000:])
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    failures = 0
    for turn in range(options.times):
        # a daemon of its own: three deaths within 10 s of a start each would drop the registry, and are to
        with tempfile.TemporaryDirectory() as directory:
            failures += one_turn(options, turn, directory, rng, scale)
        if failures:
            break
    print("%d turns, %d failures" % (options.times, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
