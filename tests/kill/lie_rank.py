#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process of the tenant that writes random words into what its processes share: the yard (states, sleepers, news, bits, shared copies), the pair
rings and the eager pools of a communicator, while its ranks exchange data.

What becomes of these ranks is their own business. Processes of another tenant (if the test may start any) exchange data meanwhile with
right bytes, the daemon lives, and when the liar has ended the next job of its tenant runs, and nothing is left.

usage: lie_rank.py HCCLD HCCLCTL RANK_PROGRAM [--seconds S] [--turns N] [--seed S]
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, run_job, start_job

RANKS = 3
OTHER_USER = 65534
OTHER_ROUNDS = 300
KINDS = ("yard", "pairs", "pool")
YARD_HEAD, YARD_CONTEXT = 64, 128  # bytes; a bit for each context is between them
COPIES = 4096  # of the table of shared copies, which is behind the contexts: the first ones, which are in use


class Liar:
    """Writes by way of the memory of @pid, a rank: that is what a process of the tenant can."""

    def __init__(self, pid, rng):
        self.rng = rng
        self.fd = os.open("/proc/%d/mem" % pid, os.O_RDWR)
        self.areas = []
        with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
            for line in maps:
                fields = line.split()
                if len(fields) > 5 and fields[5].startswith("/memfd:hccld-") and fields[5][13:] in KINDS and fields[1].startswith("rw"):
                    start, end = (int(x, 16) for x in fields[0].split("-"))
                    # of the yard the first contexts, which are in use
                    self.areas.append((fields[5][13:], start, min(end, start + 16384)))
                    if fields[5][13:] == "yard":
                        count = int.from_bytes(os.pread(self.fd, 4, start + 8), "little")
                        copies = start + YARD_HEAD + count // 8 + count * YARD_CONTEXT
                        self.areas.append(("copies", copies, min(end, copies + COPIES)))

    def word(self):
        return self.rng.choice([
            lambda: self.rng.randrange(1 << 64), lambda: self.rng.randrange(64), lambda: (1 << 64) - 1 - self.rng.randrange(64),
            lambda: self.rng.randrange(1 << 24) << 8 | self.rng.randrange(8)])().to_bytes(8, "little")

    def lie(self, seconds):
        count, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            _, start, stop = self.rng.choice(self.areas)
            size = self.rng.choice([4, 8])
            try:
                os.pwrite(self.fd, self.word()[:size], start + self.rng.randrange((stop - start) // 8) * 8)
            except OSError:
                return count  # the rank has ended
            count += 1
        return count

    def close(self):
        os.close(self.fd)


def one_turn(options, daemon, seen):
    rng, problems, others = options.rng, [], []
    if os.geteuid() == 0:
        others = start_job(daemon, options.program, 2, 2, OTHER_ROUNDS, ["ok", "held"], stdin=subprocess.PIPE, user=OTHER_USER)
    job = start_job(daemon, options.program, RANKS, RANKS, 1 << 30, ["survives", "0", "0:0"])
    for process in job + others:
        process.stdout.readline()
    time.sleep(0.1)  # for pools
    liar = Liar(rng.choice(job).pid, rng)
    seen |= {kind for kind, _, _ in liar.areas}
    count = liar.lie(options.seconds)
    liar.close()
    for process in job:
        process.kill()
    # lies are judged, by its partners, too: nobody follows them out of its memory
    results = end_job(job, 30 * options.scale)
    if any(r[0] < 0 and r[0] != -signal.SIGKILL for r in results):
        problems.append("a rank of the communicator crashed: %s" % results)
    for process in others:
        process.stdin.close()
        process.stdin = None
    results = end_job(others, 30 * options.scale)
    if any(r[0] != 0 for r in results):
        problems.append("the other tenant was hurt: %s" % results)
    # its sessions have ended, and so has what the liar wrote about them
    return count, problems + run_job(daemon, options.program, RANKS, RANKS, 60)


def main():
    options = arguments(seconds=1.0, turns=5)
    words, seen = 0, set()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        daemon = Daemon(options, directory, "--no-keeper")
        problems = run_job(daemon, options.program, RANKS, RANKS, 6)
        if os.geteuid() == 0:
            problems += run_job(daemon, options.program, 2, 2, 6, user=OTHER_USER)
        before = daemon.at_rest()
        for turn in range(options.turns):
            count, wrong = one_turn(options, daemon, seen)
            words += count
            problems += ["turn %d: %s" % (turn, p) for p in wrong + daemon.left_over(before)]
            if problems:
                break
        if seen != {*KINDS, "copies"} and not problems:
            problems.append("lies were written to %s only" % seen)
        problems += daemon.end()
        if problems:
            daemon.show_log()
    return report(problems, "%d words" % words)


if __name__ == "__main__":
    sys.exit(main())
