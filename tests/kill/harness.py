# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: a daemon of their own, jobs of tests/kill/rank.c, and what a daemon must be back to afterwards."""
import argparse
import json
import os
import random
import subprocess
import sys
import time

REST_S = 0.25  # two looks this far apart that agree


class Daemon:
    """Serves in @directory until end() or stop()."""

    def __init__(self, options, directory, *arguments_of_hccld):
        self.hcclctl = options.hcclctl
        self.scale = options.scale
        self.socket = os.path.join(directory, "hccld.sock")
        self.directory = directory
        ready, told = os.pipe()
        self.log = open(os.path.join(directory, "hccld.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [options.hccld, "--socket", self.socket, "--ready-fd", str(told), "--device-memory", "1G", *arguments_of_hccld],
            pass_fds=[told], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(told)
        if os.read(ready, 2) != b"1\n":
            sys.exit("the daemon did not start: " + self.read_log())
        os.close(ready)

    def environment(self, **more):
        return dict(os.environ, HCCLD_SOCKET=self.socket, **more)

    def status(self):
        out = subprocess.run([self.hcclctl, "status", "--json"], env=self.environment(), capture_output=True, text=True, check=False)
        return json.loads(out.stdout)

    def worker_pid(self, other_than=None):
        """The pid of the worker that serves, once it is another one; None: it did not come."""
        end = time.monotonic() + 20 * self.scale
        while time.monotonic() < end:
            try:
                pid = self.status()["pid"]
                if pid != other_than:
                    return pid
            except (ValueError, KeyError):
                pass
            time.sleep(0.02)
        return None

    def snapshot(self):
        status = self.status()
        return {
            "fds": fd_count(status["pid"]),
            "sessions": status["sessions"],
            "comms": status["comms"],
            "streams": status["streams"],
            "memory": sum(d["memory_used"] for d in status["devices"]),
        }

    def at_rest(self):
        """What the daemon has when its jobs have ended: no session is left, and nothing changes any more."""
        end = time.monotonic() + 10 * self.scale
        last = None
        while time.monotonic() < end:
            now = self.snapshot()
            if now == last and now["sessions"] == 0:
                return now
            last = now
            time.sleep(REST_S)
        sys.exit("the daemon does not come to rest: %s; its log:\n%s" % (last, self.read_log()))

    def left_over(self, before, but=()):
        """A list that names what differs from @before once the daemon had the time to let go, without the words in @but."""
        end = time.monotonic() + 6 * self.scale
        while True:
            after = self.snapshot()
            if all(after[k] == before[k] for k in before if k not in but):
                return []
            if time.monotonic() > end:
                return ["before %s, after %s" % (before, after)]
            time.sleep(0.02)

    def stop(self):
        self.process.terminate()
        return self.process.wait(20 * self.scale)

    def end(self):
        """A list: it may have ended before, or not well."""
        return ["the daemon did not end well"] if self.process.poll() is not None or self.stop() != 0 else []

    def read_log(self):
        with open(self.log.name, encoding="utf-8") as log:
            return log.read()

    def show_log(self):
        print("log of the daemon:\n" + self.read_log()[-6000:])


def fd_count(pid):
    """Without that of the connection that has just asked for the status, which the daemon may have open for a moment."""
    count = len(os.listdir("/proc/%d/fd" % pid))
    for _ in range(10):
        time.sleep(0.005)
        count = min(count, len(os.listdir("/proc/%d/fd" % pid)))
    return count


def start_job(daemon, program, ranks, devices, rounds, expect, stdin=subprocess.DEVNULL, user=None, more=None):
    """@more: of a rank -> what its environment has besides, if anything."""
    path = os.path.join(daemon.directory, "root.%d" % time.monotonic_ns())
    job = []
    for rank in range(ranks):
        env = daemon.environment(RANK_ID=str(rank), RANK_SIZE=str(ranks), DEVICE_ID=str(rank % devices), **(more(rank) if more else {}))
        if user is not None:
            env["RANK_USER"] = str(user)
        job.append(subprocess.Popen([program, path, str(rounds), *expect], env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return job


def end_job(job, timeout):
    """(status or "hangs", text) of each."""
    results = []
    deadline = time.monotonic() + timeout
    for process in job:
        try:
            _, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            results.append((process.returncode, err.decode(errors="replace")))
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            results.append(("hangs", err.decode(errors="replace")))
    return results


def run_job(daemon, program, ranks, devices, rounds, seconds=60, **more):
    """A list: what is wrong with a job that nobody disturbs."""
    results = end_job(start_job(daemon, program, ranks, devices, rounds, ["ok"], **more), seconds * daemon.scale)
    return ["a job that nobody disturbs: %s" % results] if any(r[0] != 0 for r in results) else []


def arguments(*more, **defaults):
    """HCCLD HCCLCTL PROGRAM @more, --seed, and an option for each of @defaults; seeds @options.rng and prints the seed."""
    parser = argparse.ArgumentParser()
    for name in ("hccld", "hcclctl", "program", *more):
        parser.add_argument(name)
    for name, value in defaults.items():
        if value is False:
            parser.add_argument("--" + name.replace("_", "-"), action="store_true")
        else:
            parser.add_argument("--" + name, type=type(value), default=value)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1 << 30)
    options.scale = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
    options.rng = random.Random(options.seed)
    print("seed %d" % options.seed)
    return options


def report(problems, counted):
    print("\n".join(problems))
    print("%s, %d problems" % (counted, len(problems)))
    return 1 if problems else 0
