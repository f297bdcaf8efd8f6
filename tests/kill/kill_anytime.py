#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any number of the ranks of short jobs, at any moment: while they start, join, allocate, exchange, destroy.

Who is left ends well or with a named error, nothing stays in the daemon, and the next job works. With --worker the daemon's worker
is killed too, under its keeper.

usage: kill_anytime.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--worker]
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

from kill_rank import Daemon, end_job, settled, start_job

# three deaths within 10 s of a start each drop the registry, and are to
WORKER_PAUSE_S, WORKER_TURNS = 11, 2
CONNECT_TIMEOUT_MS = "5000"


def is_named(result):
    """Wrong bytes are 9, an error without text is 4, and what else there is is none of ours."""
    status, text = result
    # rank 0 may die before it has told the others where to meet: that is between them
    return status in (0, 3) or (status == 1 and ("(EI00" in text or ": no root info:" in text))


def one_turn(options, daemon, directory, rng, scale):
    ranks = rng.randrange(2, 9)
    # who is left alone by ranks that died before they joined waits for all of it; who is only slow gives up with a text, too
    os.environ["HCCLD_CONNECT_TIMEOUT_MS"] = CONNECT_TIMEOUT_MS
    job = start_job(daemon, options.program, directory, ranks, 8, rng.choice([3, 20]), ["any"])
    del os.environ["HCCLD_CONNECT_TIMEOUT_MS"]
    victims = rng.sample(range(ranks), rng.randrange(1, ranks + 1))
    for victim in victims:
        time.sleep(rng.random() * 0.03)
        job[victim].kill()
    if options.worker:
        os.kill(daemon.status(options.hcclctl)["pid"], signal.SIGKILL)
    results = end_job(job, 150 * scale)
    return ["rank %d of %d, killed %s: %s" % (i, ranks, victims, r) for i, r in enumerate(results)
            if not is_named(r) and not (i in victims and r[0] == -signal.SIGKILL)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options.hccld, directory, ["--keeper" if options.worker else "--no-keeper"])
        end_job(start_job(daemon, options.program, directory, 8, 8, 6, ["ok"]), 60 * scale)
        before = settled(daemon, options.hcclctl, None, 0.5)
        for turn in range(options.times):
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, daemon, directory, rng, scale)]
            after = settled(daemon, options.hcclctl, before, 6 * scale)
            if options.worker:
                after["fds"] = before["fds"]  # another process
            if after != before:
                problems.append("turn %d: before %s, after %s" % (turn, before, after))
            if options.worker and turn % WORKER_TURNS == WORKER_TURNS - 1:
                time.sleep(WORKER_PAUSE_S)
            if problems:
                break
        results = end_job(start_job(daemon, options.program, directory, 8, 8, 12, ["ok"]), 60 * scale)
        if any(r[0] != 0 for r in results):
            problems.append("the next job: %s" % results)
        if daemon.process.poll() is not None or daemon.stop() != 0:
            problems.append("the daemon did not end well")
        if problems:
            print("log of the daemon:\n" + open(daemon.log.name, encoding="utf-8").read()[-4000:])
    print("\n".join(problems))
    print("%d turns, %d problems" % (options.times, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
