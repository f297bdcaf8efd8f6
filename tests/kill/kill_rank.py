#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one of 8 ranks at random moments, again and again.

The other ranks must be told which rank died, within seconds; afterwards the daemon's memory, sessions, communicators and
descriptors are what they were before, and another job runs to its end.

usage: kill_rank.py HCCLD HCCLCTL RANK_PROGRAM [--times N] [--seed S] [--ranks N]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time


class Daemon:
    def __init__(self, hccld, directory, extra=()):
        self.socket = os.path.join(directory, "hccld.sock")
        ready, told = os.pipe()
        self.log = open(os.path.join(directory, "hccld.log"), "w+")
        self.process = subprocess.Popen([hccld, "--socket", self.socket, "--ready-fd", str(told), "--device-memory", "1G", *extra],
                                        pass_fds=[told], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(told)
        if os.read(ready, 2) != b"1\n":
            sys.exit("the daemon did not start: " + open(self.log.name).read())
        os.close(ready)

    def environment(self, **more):
        return dict(os.environ, HCCLD_SOCKET=self.socket, **more)

    def status(self, hcclctl):
        out = subprocess.run([hcclctl, "status", "--json"], env=self.environment(), capture_output=True, text=True)
        return json.loads(out.stdout)

    def stop(self):
        self.process.terminate()
        return self.process.wait(20)


def start_job(daemon, program, directory, ranks, devices, rounds, expect, stdin=subprocess.DEVNULL, user=None):
    path = os.path.join(directory, "root.%d" % time.monotonic_ns())
    job = []
    for rank in range(ranks):
        env = daemon.environment(RANK_ID=str(rank), RANK_SIZE=str(ranks), DEVICE_ID=str(rank % devices))
        if user is not None:
            env["RANK_USER"] = str(user)
        job.append(subprocess.Popen([program, path, str(rounds), *expect], env=env, stdin=stdin,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return job


def end_job(job, timeout):
    results = []
    deadline = time.monotonic() + timeout
    for process in job:
        try:
            out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            results.append((process.returncode, err.decode(errors="replace")))
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            results.append(("hangs", err.decode(errors="replace")))
    return results


def fd_count(pid):
    """Without that of the connection that has just asked for the status, which the daemon may have open for a moment."""
    count = len(os.listdir("/proc/%d/fd" % pid))
    for _ in range(10):
        time.sleep(0.005)
        count = min(count, len(os.listdir("/proc/%d/fd" % pid)))
    return count


def snapshot(daemon, hcclctl):
    status = daemon.status(hcclctl)
    return {
        "fds": fd_count(status["pid"]),
        "sessions": status["sessions"],
        "comms": status["comms"],
        "streams": status["streams"],
        "memory": sum(d["memory_used"] for d in status["devices"]),
    }


def settled(daemon, hcclctl, before, seconds=5.0):
    end = time.monotonic() + seconds
    while True:
        after = snapshot(daemon, hcclctl)
        if after == before or time.monotonic() > end:
            return after
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hccld")
    parser.add_argument("hcclctl")
    parser.add_argument("program")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    rng = random.Random(seed)
    print("seed %d" % seed)
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        daemon = Daemon(options.hccld, directory, ["--no-keeper"])
        # one job first: what the daemon makes once (tables, regions of the tenant) is there afterwards
        results = end_job(start_job(daemon, options.program, directory, options.ranks, 8, 6, ["ok"]), 60 * scale)
        if any(r[0] != 0 for r in results):
            print("the first job failed:", results)
            failures += 1
        before = settled(daemon, options.hcclctl, None, 0.5)
        for turn in range(options.times):
            victim = rng.randrange(options.ranks)
            job = start_job(daemon, options.program, directory, options.ranks, 8, 1 << 30, ["death", str(victim)])
            job[victim].stdout.readline()  # it is in its rounds
            time.sleep(rng.random() * 0.05)
            job[victim].kill()
            results = end_job(job, 30 * scale)
            bad = [(i, r) for i, r in enumerate(results) if r[0] != (-9 if i == victim else 0)]
            after = settled(daemon, options.hcclctl, before, 5.0 * scale)
            if bad or after != before:
                failures += 1
                print("turn %d, rank %d killed: bad %s; before %s, after %s" % (turn, victim, bad, before, after))
            if turn % 10 == 9:
                results = end_job(start_job(daemon, options.program, directory, options.ranks, 8, 12, ["ok"]), 60 * scale)
                if any(r[0] != 0 for r in results):
                    failures += 1
                    print("the next job failed:", results)
        if daemon.process.poll() is not None or daemon.stop() != 0:
            failures += 1
            print("the daemon did not end well; its log:\n" + open(daemon.log.name).read()[-4000:])
        elif failures:
            print("log of the daemon:\n" + open(daemon.log.name).read()[-4000:])
    print("%d kills, %d failures" % (options.times, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
