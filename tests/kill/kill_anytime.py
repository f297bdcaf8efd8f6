#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any number of the ranks of short jobs, at any moment: while they start, join, allocate, exchange, destroy.

Who is left ends well or with a named error, nothing stays in the daemon, and the next job works. With --worker the daemon's worker
is killed too, under its keeper.

usage: kill_anytime.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--worker]
"""
import os
import signal
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job

# three deaths within 10 s of a start each drop the registry, and are to
WORKER_PAUSE_S, WORKER_TURNS = 11, 2
CONNECT_TIMEOUT_MS = "5000"


def is_named(result):
    """Wrong bytes are 9, an error without text is 4, and what else there is is none of ours."""
    status, text = result
    # rank 0 may die before it has told the others where to meet: that is between them
    return status in (0, 3) or (status == 1 and ("(EI00" in text or ": no root info:" in text))


def one_turn(options, daemon):
    rng = options.rng
    ranks = rng.randrange(2, 9)
    # who is left alone by ranks that died before they joined waits for all of it; who is only slow gives up with a text, too
    job = start_job(daemon, options.program, ranks, 8, rng.choice([3, 20]), ["any"],
                    more=lambda rank: {"HCCLD_CONNECT_TIMEOUT_MS": CONNECT_TIMEOUT_MS})
    victims = rng.sample(range(ranks), rng.randrange(1, ranks + 1))
    for victim in victims:
        time.sleep(rng.random() * 0.03)
        job[victim].kill()
    if options.worker:
        os.kill(daemon.status()["pid"], signal.SIGKILL)
    results = end_job(job, 150 * options.scale)
    return ["rank %d of %d, killed %s: %s" % (i, ranks, victims, r) for i, r in enumerate(results)
            if not is_named(r) and not (i in victims and r[0] == -signal.SIGKILL)]


def main():
    options = arguments(times=40, worker=False)
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options, directory, "--keeper" if options.worker else "--no-keeper")
        problems = run_job(daemon, options.program, 8, 8, 6)
        before = daemon.at_rest()
        for turn in range(options.times):
            problems += ["turn %d: %s" % (turn, p) for p in one_turn(options, daemon)]
            # another process has other descriptors
            problems += ["turn %d: %s" % (turn, p) for p in daemon.left_over(before, ["fds"] if options.worker else [])]
            if options.worker and turn % WORKER_TURNS == WORKER_TURNS - 1:
                time.sleep(WORKER_PAUSE_S)
            if problems:
                break
        problems += run_job(daemon, options.program, 8, 8, 12) + daemon.end()
        if problems:
            daemon.show_log()
    return report(problems, "%d turns" % options.times)


if __name__ == "__main__":
    sys.exit(main())
