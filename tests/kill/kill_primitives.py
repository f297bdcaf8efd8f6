#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon's worker under its keeper while ranks run random primitives: each is done once, and all memory is right.

usage: kill_primitives.py HCCLD HCCLCTL PRIMITIVES_PROGRAM [--times N] [--seed S] [--windows N]
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from kill_rank import Daemon, settled
from kill_worker import worker_pid

# three deaths within 10 s of a start each drop the registry, and are to
KILLS = 2


def start(options, daemon, seed, windows):
    return subprocess.Popen([options.program, "--windows", str(windows), "--seed", str(seed)], env=daemon.environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def one_turn(options, directory, rng, scale):
    """What went wrong, or nothing."""
    daemon = Daemon(options.hccld, directory, ["--keeper"])
    pid = worker_pid(daemon, options.hcclctl, None, 10 * scale)
    seed = rng.randrange(1 << 32)
    # what the daemon makes once is there afterwards
    start(options, daemon, seed, 1).communicate()
    before = settled(daemon, options.hcclctl, None, 0.5)
    job = start(options, daemon, seed, options.windows)
    job.stdout.readline()
    kills = 0
    while pid and kills < KILLS and job.poll() is None:
        time.sleep(rng.random() * 0.3)
        os.kill(pid, signal.SIGKILL)
        kills += 1
        pid = worker_pid(daemon, options.hcclctl, pid, 20 * scale)
    text, _ = job.communicate(timeout=120 * scale)
    problems = [] if job.returncode == 0 else ["seed %d, %d kills: status %d: %s" % (seed, kills, job.returncode, text)]
    if not pid:
        problems.append("the worker did not come back")
    else:
        after = settled(daemon, options.hcclctl, before, 5.0 * scale)
        if {k: after[k] for k in after if k != "fds"} != {k: before[k] for k in before if k != "fds"}:
            problems.append("before %s, after %s" % (before, after))
    if daemon.process.poll() is not None or daemon.stop() != 0:
        problems.append("the daemon did not end well")
    if problems:
        print("log of the daemon:\n" + open(daemon.log.name, encoding="utf-8").read()[-4000:])
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--windows", type=int, default=1500)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    problems = []
    for turn in range(options.times):
        with tempfile.TemporaryDirectory() as directory:
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, directory, rng, scale)]
        if problems:
            break
    print("\n".join(problems))
    print("%d turns, %d problems" % (turn + 1, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
