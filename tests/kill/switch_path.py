#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""local_path switched between direct and engine, by SIGHUP, while ranks exchange data: all bytes are right, nothing is lost.

Counts how often contexts have changed hands: the version in a context's state word grows with each take and leave (proto/yard.h).

usage: switch_path.py HCCLD HCCLCTL RANK_PROGRAM [--changes N] [--no-switch] [--seed S]
"""
import os
import signal
import struct
import sys
import tempfile
import time

from harness import Daemon, arguments, end_job, report, start_job

RANKS = 3
ROUNDS = 1000
WORDS = 128  # bytes of a context in the yard
CONTEXTS = 64  # as many as can be in use here


def changes(process):
    """Of all contexts of the tenant, as rank @process has them mapped; 0: it has ended."""
    try:
        with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
            line = next((line for line in maps if "memfd:hccld-yard" in line), None)
        if not line:
            return 0
        start = int(line.split("-")[0], 16)
        with open("/proc/%d/mem" % process.pid, "rb", buffering=0) as memory:
            # 64 bytes of head, then a bit for each context, then two lines for each
            memory.seek(start + 8)
            count = struct.unpack("<I", memory.read(4))[0]
            memory.seek(start + 64 + count // 8)
            words = memory.read(CONTEXTS * WORDS)
        return sum(struct.unpack_from("<Q", words, at)[0] >> 8 for at in range(0, len(words), WORDS))
    except OSError:
        return 0


def main():
    options = arguments(changes=20000, no_switch=False)
    problems, switches, changed, jobs = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "hccld.conf")

        def write(path):
            with open(config + ".new", "w", encoding="utf-8") as file:
                file.write("[daemon]\nlocal_path = %s\n" % path)
            os.rename(config + ".new", config)

        write("direct")
        daemon = Daemon(options, directory, "--no-keeper", "--config", config)
        while changed < options.changes and not problems:
            # kinds of rounds: tests/kill/rank.c
            job = start_job(daemon, options.program, RANKS, RANKS, ROUNDS, ["survives", "0", "0:0"])
            for process in job:
                process.stdout.readline()
            jobs += 1
            first = last = changes(job[0])
            deadline = time.monotonic() + 60 * options.scale
            while job[0].poll() is None and time.monotonic() < deadline:
                time.sleep(options.rng.random() * 0.05)
                last = max(last, changes(job[0]))
                if not options.no_switch:
                    switches += 1
                    write("engine" if switches % 2 else "direct")
                    daemon.process.send_signal(signal.SIGHUP)
            changed += last - first
            results = end_job(job, 60 * options.scale)
            if any(r[0] != 0 for r in results):
                problems.append("after %d switches: %s" % (switches, results))
        problems += daemon.end()
        log = daemon.read_log()
        if not options.no_switch and ("local_path is engine now" not in log or "local_path is direct now" not in log):
            problems.append("the path was not switched")
        if problems:
            daemon.show_log()
    return report(problems, "%d jobs, %d changes of hands, %d switches" % (jobs, changed, switches))


if __name__ == "__main__":
    sys.exit(main())
