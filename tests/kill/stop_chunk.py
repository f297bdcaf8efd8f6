#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of a rank that is in the middle of a chunk of a large copy (engine/direct_help.c), and what can happen meanwhile: nothing, another
rank is killed, the daemon's worker is killed, the daemon is told to end.

It holds up that copy and nobody else: another job runs to its end. Afterwards all goes on with the right bytes, or the named error.

usage: stop_chunk.py HCCLD HCCLCTL RANK_PROGRAM POINTS_LIBRARY [--times N] [--seed S]
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
from kill_worker import worker_pid
from stop_points import is_stopped

RANKS = 3
ROUNDS = 600
OWNS_CHUNK = 137  # a point
DEAD = 0
TRIES = 5  # the others may be faster


def start(options, daemon, directory, victim, rng):
    path = os.path.join(directory, "root.%d" % time.monotonic_ns())
    job = []
    for rank in range(RANKS):
        env = daemon.environment(RANK_ID=str(rank), RANK_SIZE=str(RANKS), DEVICE_ID=str(rank))
        if rank == victim:
            env["LD_LIBRARY_PATH"] = os.path.dirname(options.library)
            env["HCCLD_CRASH_POINT"] = "%d:%d:stop" % (OWNS_CHUNK, rng.randrange(1, 20))
        job.append(subprocess.Popen([options.program, path, str(ROUNDS), "survives", str(DEAD), "0:0"], env=env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return job


def wait_stopped(process, seconds):
    end = time.monotonic() + seconds
    while not is_stopped(process) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    return is_stopped(process)


def bystanders(options, daemon, directory, scale):
    results = end_job(start_job(daemon, options.program, directory, 2, 2, 20, ["ok"]), 30 * scale)
    return ["the others were hurt: %s" % results] if any(r[0] != 0 for r in results) else []


def one_turn(options, what, directory, rng, scale):
    problems = []
    daemon = Daemon(options.hccld, directory, ["--keeper" if what == "worker" else "--no-keeper"])
    end_job(start_job(daemon, options.program, directory, RANKS, RANKS, 6, ["ok"]), 60 * scale)
    before = settled(daemon, options.hcclctl, None, 0.5)
    pid = daemon.status(options.hcclctl)["pid"]
    victim = rng.randrange(1, RANKS)
    for _ in range(TRIES):
        job = start(options, daemon, directory, victim, rng)
        if wait_stopped(job[victim], 30 * scale):
            break
        problems += ["not stopped: %s" % r for r in end_job(job, 60 * scale) if r[0] != 0]
    else:
        return problems + ["rank %d was not stopped" % victim]
    if what == "peer":
        job[DEAD].kill()
    elif what == "worker":
        os.kill(pid, signal.SIGKILL)
        if worker_pid(daemon, options.hcclctl, pid, 20 * scale) is None:
            problems.append("the worker did not come back")
    elif what == "end":
        problems += [] if daemon.stop() == 0 else ["the daemon did not end well"]
    if what != "end":
        problems += bystanders(options, daemon, directory, scale)
        if job[victim].poll() is not None or (what != "peer" and any(p.poll() is not None for p in job)):
            problems.append("ended while rank %d was stopped" % victim)
    job[victim].send_signal(signal.SIGCONT)
    if what == "end":
        for process in job:
            process.kill()
    results = end_job(job, 60 * scale)
    wanted = [-9 if what == "peer" and rank == DEAD else 0 for rank in range(RANKS)]
    if what == "end":
        return problems
    if [r[0] for r in results] != wanted:
        problems.append("rank %d was stopped: %s" % (victim, results))
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
    parser.add_argument("library")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    problems = []
    for what in ["nothing", "peer", "worker", "end"] * options.times:
        with tempfile.TemporaryDirectory() as directory:
            problems += ["%s: %s" % (what, p) for p in one_turn(options, what, directory, rng, scale)]
        if problems:
            break
    print("\n".join(problems))
    print("%d problems" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
