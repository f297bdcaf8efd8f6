#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon's worker under its keeper while ranks run random primitives: each is done once, and all memory is right.

usage: kill_primitives.py HCCLD HCCLCTL PRIMITIVES_PROGRAM [--times N] [--seed S] [--windows N]
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from harness import Daemon, arguments, report

# three deaths within 10 s of a start each drop the registry, and are to
KILLS = 2


def start(options, daemon, seed, windows):
    return subprocess.Popen([options.program, "--windows", str(windows), "--seed", str(seed)], env=daemon.environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def one_turn(options, directory):
    """What went wrong, or nothing."""
    daemon = Daemon(options, directory, "--keeper")
    pid = daemon.worker_pid()
    seed = options.rng.randrange(1 << 32)
    # what the daemon makes once is there afterwards
    start(options, daemon, seed, 1).communicate()
    before = daemon.at_rest()
    job = start(options, daemon, seed, options.windows)
    job.stdout.readline()
    kills = 0
    while pid and kills < KILLS and job.poll() is None:
        time.sleep(options.rng.random() * 0.3)
        os.kill(pid, signal.SIGKILL)
        kills += 1
        pid = daemon.worker_pid(pid)
    text, _ = job.communicate(timeout=120 * options.scale)
    problems = [] if job.returncode == 0 else ["seed %d, %d kills: status %d: %s" % (seed, kills, job.returncode, text)]
    problems += daemon.left_over(before, ["fds"]) if pid else ["the worker did not come back"]
    problems += daemon.end()
    if problems:
        daemon.show_log()
    return problems


def main():
    options = arguments(times=4, windows=1500)
    problems = []
    for turn in range(options.times):
        with tempfile.TemporaryDirectory() as directory:
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, directory)]
        if problems:
            break
    return report(problems, "%d turns" % (turn + 1))


if __name__ == "__main__":
    sys.exit(main())
