#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
hcclctl streams, kill, drain, ping, monitor, the verdict of a deadlock, and the completion for bash, with a real daemon and
real programs: test_admin.py SOURCE BUILD [TEST...]
"""
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE, BUILD = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
HCCLD, HCCLCTL = str(BUILD / "daemon/hccld"), str(BUILD / "hcclctl/hcclctl")
RANK, CIRCLE, VALUE_WAIT, TOUCH_BUFFER, NOTIFIES, THREADS, CHANNELS = (
    str(BUILD / "tests/hcclctl" / name) for name in ("admin_rank", "circle", "value_wait", "touch_buffer", "notifies", "threads", "channels"))
COMPLETION = SOURCE / "hcclctl/completion.bash"
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
SCALE = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))


def wait_for(condition, what, seconds=30):
    end = time.monotonic() + seconds * SCALE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds * SCALE} s")
        time.sleep(0.02)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="test-admin-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.socket = os.path.join(self.directory, "s")
        self.env = dict(os.environ, HCCLD_SOCKET=self.socket, XDG_RUNTIME_DIR=self.directory, TMPDIR=self.directory)
        self.jobs = 0

    def start(self, keeper="--no-keeper", more=()):
        ready, told = os.pipe()
        log = open(os.path.join(self.directory, "log"), "a", encoding="utf-8")
        self.addCleanup(log.close)
        daemon = subprocess.Popen([HCCLD, "--socket", self.socket, "--device-memory", "256M", "--ready-fd", str(told), keeper,
                                   *more],
                                  pass_fds=[told], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        os.close(told)
        self.addCleanup(self.stop, daemon)
        self.assertEqual(os.read(ready, 2), b"1\n", self.log())
        os.close(ready)
        return daemon

    def stop(self, daemon):
        if daemon.poll() is None:
            # never to one that ends: the leak checker stops it, and waits for that for ever if it is continued meanwhile
            if re.search(r"^State:\s+T", pathlib.Path(f"/proc/{daemon.pid}/status").read_text(encoding="utf-8"), re.M):
                daemon.send_signal(signal.SIGCONT)
            daemon.terminate()
        daemon.wait(30 * SCALE)

    def log(self):
        return pathlib.Path(self.directory, "log").read_text(encoding="utf-8")

    def job(self, program, ranks, *arguments):
        """The processes, once each has printed its first line."""
        self.jobs += 1
        root = os.path.join(self.directory, f"root.{self.jobs}")
        processes = [subprocess.Popen([program, root, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True,
                                      env=dict(self.env, RANK_ID=str(i), RANK_SIZE=str(ranks), DEVICE_ID=str(i)))
                     for i in range(ranks)]
        for process in processes:
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
        for process in processes:
            self.assertTrue(process.stdout.readline(), "it ended")
        return processes

    def ctl(self, *arguments, **more):
        return subprocess.run([HCCLCTL, *arguments], env=dict(self.env, **more), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60 * SCALE, check=False)

    def json(self, *arguments):
        result = self.ctl(*arguments, "--json")
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)


class Streams(Case):
    def test_what_each_is_at(self):
        self.start()
        self.assertEqual(self.json("streams"), {"streams": []})
        job = self.job(CIRCLE, 3)
        wait_for(lambda: all(s["head"] for s in self.json("streams")["streams"]), "all wait")
        streams = self.json("streams")["streams"]
        self.assertEqual(sorted(s["pid"] for s in streams), sorted(p.pid for p in job))
        for stream in streams:
            rank = [p.pid for p in job].index(stream["pid"])
            self.assertEqual((stream["head"], stream["queued_tasks"], stream["moving"], stream["device"]),
                             ("batch", 1, False, rank))
            self.assertGreater(stream["submitted"], stream["completed"])
            self.assertIn(f"rank {rank} (pid {stream['pid']}) waits for rank {(rank + 2) % 3} ", stream["reason"])
        self.assertEqual([s["pid"] for s in self.json("streams", "--pid", str(job[1].pid))["streams"]], [job[1].pid])
        one = str(streams[2]["session"])
        self.assertEqual([str(s["session"]) for s in self.json("streams", "--session", one)["streams"]], [one])
        self.assertIn("waits for rank", self.ctl("streams").stdout)
        for wanted, says in ((["--session", "99999"], "there is no session 99999"), (["--pid", "1"], "process 1 has no session")):
            for more in ([], ["--json"]):
                result = self.ctl("streams", *wanted, *more)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(says, result.stderr)
        # root and the daemon's user: config says a number, which is not for them
        limits = {limit["name"]: limit for limit in self.json("limits")["tenants"][0]["limits"]}
        self.assertEqual([limits[name].get("exempt") for name in ("connections", "requests", "memory")], [True, True, None])
        self.assertRegex(self.ctl("limits").stdout, r"(?s)memory +\S+ \S+ +unlimited .*connections +\d+ +exempt .* weight +- +1 .*tenant_weights")
        self.assertEqual(self.json("limits")["tenants"][0]["weight"], 1)
        for wrong in (["--pid", "x"], ["--pid", "0"], ["--session", "-1"], ["--session", ""], ["1"]):
            self.assertEqual(self.ctl("streams", *wrong).returncode, 2, wrong)

    def test_notifies(self):
        self.start()
        self.assertEqual(self.json("notifies"), {"notifies": []})
        self.assertEqual(self.ctl("notifies").stdout, "there is no notify\n")
        process = self.job(NOTIFIES, 1)[0]
        wait_for(lambda: "waiter_pid" in self.json("notifies")["notifies"][0], "it waits")
        rows = self.json("notifies")["notifies"]
        self.assertEqual([(r["device"], r["first"], r["count"], r["purpose"], r["value"], r["set"], r["given_back"]) for r in rows],
                         [(0, 0, 1, "acl", 0, 0, False), (0, 1, 1, "counting", 5, 1, False), (0, 2, 1, "acl", 1, 1, False),
                          (1, 0, 1, "acl", 0, 0, False)])
        self.assertEqual((rows[0]["pid"], rows[0]["waiter_pid"], rows[0]["waited_for"]), (process.pid, process.pid, 0))
        self.assertNotIn("waiter_pid", rows[1])
        self.assertFalse({"comm_name", "rank", "peer"} & set(rows[1]))
        waiter = [s for s in self.json("streams")["streams"] if s["head"]][0]
        self.assertEqual(waiter["stream"], rows[0]["waiter_stream"])
        self.assertRegex(self.ctl("notifies").stdout, rf"{process.pid} +\S+ +0 +0 +acl +- +- +- +0 +pid {process.pid} stream {waiter['stream']}")
        self.assertEqual(self.json("notifies", "--pid", str(process.pid))["notifies"], rows)
        self.assertEqual(self.ctl("notifies", "--pid", "1").returncode, 1)
        limits = {limit["name"]: limit for limit in self.json("limits")["tenants"][0]["limits"]}
        self.assertEqual((limits["notifies"]["used"], limits["notifies"]["top_held"]), (4, 4))
        process.kill()
        wait_for(lambda: not self.json("notifies")["notifies"], "nothing stays")

    def test_channels(self):
        self.start()
        self.assertEqual(self.json("channels"), {"channels": []})
        self.assertEqual(self.ctl("channels").stdout, "there is no channel\n")
        memory = self.json("mem")
        self.assertEqual((memory["registrations"], memory["imports"]), ([], []))
        job = self.job(CHANNELS, 2)
        channels = wait_for(lambda: (lambda c: c if len(c) == 3 else None)(self.json("channels")["channels"]), "all are offered")
        pids = [process.pid for process in job]
        complete = {c["rank"]: c for c in channels if c["state"] == "complete"}
        for rank, pid in enumerate(pids):
            c = complete[rank]
            self.assertEqual((c["pid"], c["peer"], c["peer_pid"], c["engine"], c["protocol"], c["notifies"], c["peer_notifies"], c["regions"],
                              c["bytes"], c["buffer"], c["reason"]),
                             (pid, 1 - rank, pids[1 - rank], "AIV", "UB_MEM", 3, 3, 2, (1 << 20) + 4096, 400 << 20, ""))
        waits = [c for c in channels if c["state"] == "offered"][0]
        self.assertEqual((waits["rank"], waits["engine"], waits["protocol"], waits["buffer"]), (0, "CPU", "ROCE", 0))
        words = f"waits for the other end: rank 1 (pid {pids[1]}) lives and has offered only engine AIV with UB_MEM"
        self.assertEqual(waits["reason"], words)
        self.assertRegex(self.ctl("channels").stdout, rf"0 +{pids[0]} +1 +{pids[1]} +AIV +UB_MEM +complete +3 +3 +400 MiB +2 +1\.0 MiB")
        ranks = [line.split()[1] for line in self.ctl("channels").stdout.splitlines()[1:] if line.split()[1] in ("0", "1")]
        self.assertEqual(ranks, ["0", "0", "1"])
        notifies = {n["rank"]: (n["pid"], n["comm_name"], n["peer"], n["purpose"]) for n in self.json("notifies")["notifies"]}
        for rank, pid in enumerate(pids):
            self.assertEqual(notifies[rank], (pid, complete[rank]["comm_name"], 1 - rank, "channel"))
            self.assertRegex(self.ctl("notifies").stdout, rf"{pid} +\S+ .* channel +{re.escape(complete[rank]['comm_name'])} +{rank} +{1 - rank} ")
        memory = self.json("mem")
        text = self.ctl("mem").stdout
        for rank, pid in enumerate(pids):
            regions = [r for r in memory["registrations"] if r["pid"] == pid]
            self.assertEqual([(r["rank"], r["tag"], r["kind"], r["offset"], r["bytes"], r["channels"]) for r in regions],
                             [(rank, "area", "device", 0, 1 << 20, 1), (rank, "area", "device", 1 << 16, 4096, 1)])
            self.assertTrue(regions[0]["segment"] and regions[1]["segment"] and regions[0]["segment"] != regions[1]["segment"])
            for r, size in zip(regions, ("1 MiB", "4 KiB")):
                self.assertRegex(text, rf"{pid} +\S+ +{rank} +{r['registration']} +area +device +{r['segment']} +{r['offset']} +{size} +1\n")
        imports = {(i["pid"], i["what"], i["bytes"]): (i["owner_pid"], i["kind"], i["rank"], i["peer"], i["lingers"])
                   for i in memory["imports"]}
        for rank, pid in enumerate(pids):
            self.assertEqual(imports[pid, "area", 1 << 20], (pids[1 - rank], "device", rank, 1 - rank, False))
            self.assertEqual(imports[pid, "area", 4096], (pids[1 - rank], "device", rank, 1 - rank, False))
            self.assertEqual(imports[pid, "HCCL buffer", 400 << 20], (pids[1 - rank], "device", rank, 1 - rank, False))
            self.assertEqual(imports[pid, "notifies", 192], (pids[1 - rank], "notifies", rank, 1 - rank, False))
        limits = {limit["name"]: limit for limit in self.json("limits")["tenants"][0]["limits"]}
        self.assertEqual((limits["channels"]["used"], limits["registrations"]["used"]), (3, 4))
        # a wait for a peer that does not come is told like any other
        status = wait_for(lambda: (lambda s: s if not s["healthy"] else None)(self.json("status")), "it is stuck")
        self.assertRegex(status["verdict"], rf"^stuck: HcclChannelAcquire: communicator \S+: rank 0 has waited \d+ ms; 1 of 1 channels "
                         rf"\(engine CPU, protocol ROCE\) lack the other end: {re.escape(words[len('waits for the other end: '):])}")
        entry = self.json("waiting")["waiting"][0]
        self.assertEqual((entry["operation"], entry["rank"], entry["pid"], entry["peer"], entry["peer_pid"], entry["comm_name"]),
                         ("channel-acquire", 0, pids[0], 1, pids[1], complete[0]["comm_name"]))
        self.assertRegex(entry["reason"], r"^HcclChannelAcquire: communicator \S+: rank 0 has waited \d+ ms; 1 of 1 channels ")
        self.assertIn(" channels HcclChannelAcquire: ", self.ctl("waiting").stdout)
        # a peer that frees one region
        job[1].send_signal(signal.SIGUSR1)
        lost = wait_for(lambda: [i for i in self.json("mem")["imports"] if i["lingers"]], "the region is gone")
        self.assertEqual([(i["pid"], i["what"], i["bytes"]) for i in lost], [(pids[0], "area", 4096)])
        ends = sorted((c["rank"], c["regions"], c["bytes"]) for c in self.json("channels")["channels"] if c["state"] == "complete")
        self.assertEqual(ends, [(0, 1, 1 << 20), (1, 2, (1 << 20) + 4096)])
        # a peer that only closes its end
        job[1].send_signal(signal.SIGUSR1)
        dead = wait_for(lambda: [c for c in self.json("channels")["channels"] if c["state"] == "dead"], "the other end has gone")
        self.assertIn(f": rank 1, pid {pids[1]}, has closed its end; end this one with HcclChannelDestroy", dead[0]["reason"])
        self.assertEqual([dead[0][n] for n in ("peer_notifies", "buffer", "regions", "bytes")], [0, 0, 0, 0])
        closed = f"rank 1, pid {pids[1]}, has closed its end of the channel"
        imports = self.json("mem")["imports"]
        self.assertEqual([i["lingers"] for i in imports], [True] * 4)
        self.assertEqual([i["reason"] for i in imports if i["bytes"] != 4096], [closed] * 3)
        self.assertRegex(self.ctl("mem").stdout, rf"{pids[0]} +- +device +1 MiB .* lingers +{closed}")
        # what the dead one had is gone, but still mapped by the other
        job[1].kill()
        channels = wait_for(lambda: (lambda c: c if len(c) == 1 else None)(self.json("channels")["channels"]), "its ends are gone")
        job[1].wait()  # not before: how it ended is known as long as nobody has asked for it
        self.assertEqual((channels[0]["state"], channels[0]["rank"]), ("dead", 0))
        self.assertIn(f"rank 1, pid {pids[1]}, killed by signal 9", channels[0]["reason"])
        memory = self.json("mem")
        self.assertEqual([(i["pid"], i["lingers"], "owner_pid" in i) for i in memory["imports"]], [(pids[0], True, False)] * 4)
        self.assertRegex(self.ctl("mem").stdout, rf"{pids[0]} +- +device +1 MiB .* lingers +rank 1, pid {pids[1]}, killed by signal 9")
        job[0].kill()
        job[0].wait()
        wait_for(lambda: not self.json("channels")["channels"] and not self.json("mem")["imports"], "nothing stays")

    def test_threads(self):
        self.start()
        self.assertEqual(self.json("threads"), {"threads": []})
        self.assertEqual(self.ctl("threads").stdout, "there is no thread\n")
        jobs = self.job(THREADS, 1) + self.job(THREADS, 1)
        threads = [t for t in self.json("threads")["threads"] if t["pid"] == jobs[0].pid]
        comm = [c for c in self.json("comms")["comms"] if c["members"][0]["pid"] == jobs[0].pid][0]
        self.assertEqual([(t["engine"], t["comm"], t["comm_name"], t["rank"], t["notifies"], t["own_stream"], t["queued_tasks"])
                          for t in threads],
                         [("AICPU_TS", comm["comm"], comm["name"], 0, 3, True, 2), ("AICPU_TS", comm["comm"], comm["name"], 0, 3, True, 0),
                          ("CPU_TS", comm["comm"], comm["name"], 0, 2, False, 0), ("CPU", 0, "", 0, 7, True, 0)])
        self.assertEqual(len({t["stream"] for t in threads}), 4)
        self.assertEqual([t["head"] for t in threads], ["notify-wait", "", "", ""])
        self.assertRegex(threads[0]["reason"], rf"stream {threads[0]['stream']} of pid {jobs[0].pid} waits .*for notify \d+ of device 0")
        self.assertEqual((threads[0]["process"], threads[0]["device"], threads[0]["moving"]), ("threads", 0, False))
        table = self.ctl("threads").stdout
        self.assertEqual(table.count("AICPU_TS"), 4)
        self.assertIn(comm["name"], table)
        self.assertEqual(len(self.json("threads")["threads"]), 8)
        self.assertEqual({t["pid"] for t in self.json("threads", "--pid", str(jobs[1].pid))["threads"]}, {jobs[1].pid})
        session = str(threads[0]["session"])
        self.assertEqual(len(self.json("threads", "--session", session)["threads"]), 4)
        self.assertEqual(self.ctl("threads", "--pid", "1").returncode, 1)
        self.assertEqual(self.ctl("threads", "--pid", "x").returncode, 2)
        for job in jobs:
            job.kill()
        wait_for(lambda: self.json("threads") == {"threads": []}, "they end with their processes")

    def test_what_is_no_transfer_has_a_name(self):
        self.start()
        process = self.job(VALUE_WAIT, 1)[0]
        stream = wait_for(lambda: [s for s in self.json("streams")["streams"] if s["head"]], "it waits")[0]
        self.assertEqual((stream["head"], stream["queued_tasks"], stream["moving"]), ("value-wait", 1, False))
        self.assertIn("waits", stream["reason"])
        self.assertEqual(self.ctl("kill", str(stream["session"])).returncode, 0)
        self.assertEqual(process.wait(60 * SCALE), 0)

    def test_of_a_buffer_what_was_touched_counts(self):
        self.start()
        process = self.job(TOUCH_BUFFER, 1)[0]
        wait_for(lambda: any(use["buffers"] for use in self.json("mem")["memory"]), "it is touched")
        memory = wait_for(lambda: [m for m in [self.json("mem")] if any(use["buffers"] == 1 << 20 for use in m["memory"])], "all of it")[0]
        use = [use for use in memory["memory"] if use.get("pid") == process.pid][0]
        self.assertEqual((use["buffers"], use["device"]), (1 << 20, 0))
        self.assertEqual(memory["devices"][0]["used"], 1 << 20)
        self.assertEqual(use["total"], sum(use[kind] for kind in ("device", "buffers", "host", "side", "rings", "regions")))
        self.assertRegex(self.ctl("mem").stdout, r"DEVICE +BUFFERS +HOST")
        self.assertIn("buffer 200 MB", self.ctl("comms", "-v").stdout)
        process.kill()
        process.wait()
        wait_for(lambda: self.json("mem")["devices"][0]["used"] == 0, "it is given back")

    def test_a_circle_is_named_whole(self):
        self.start()
        job = self.job(CIRCLE, 4)
        status = wait_for(lambda: (lambda s: s if not s["healthy"] else None)(self.json("status")), "it is stuck")
        # from whichever has waited longest
        ranks = re.search(r"; deadlock: (.*)", status["verdict"])[1]
        order = [int(r) for r in re.findall(r"rank (\d+)", ranks)]
        self.assertEqual(len(order), 5, status["verdict"])
        self.assertEqual(order, [(order[0] - i) % 4 for i in range(5)])
        self.assertIn(f"rank {order[0]} (pid {job[order[0]].pid}) waits for rank {order[1]}", ranks)
        self.assertEqual(self.ctl("status").returncode, 1)


class AnotherUser(Case):
    def other(self, program, *arguments, **more):
        if os.geteuid():
            self.skipTest("needs root: runs as another user")
        os.chmod(self.directory, 0o711)
        env = {**self.env, **more}
        try:
            return subprocess.run([program, *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, user=65534,
                                  timeout=60 * SCALE, check=False)
        except PermissionError:
            self.skipTest("another user cannot read this build")

    def test_what_is_hidden_is_not_denied(self):
        self.start()
        self.job(CIRCLE, 3)
        for command in ("ps", "mem", "waiting", "streams", "limits"):
            self.assertIn("none of yours; 3 sessions of other users are not shown\n", self.other(HCCLCTL, command).stdout, command)
        self.assertEqual(self.other(HCCLCTL, "comms").stdout, "none of yours; 1 communicator of other users is not shown\n")
        self.assertTrue(self.other(HCCLCTL, "resources").stdout.endswith("\n3 sessions of other users are not shown\n"))
        self.assertNotIn("not shown", self.ctl("resources").stdout)
        result = self.other(HCCLCTL, "streams", "--session", "1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))

    def test_advice_without_a_runtime_directory(self):
        self.assertIn("use --socket /absolute/path", self.other(HCCLD, HCCLD_SOCKET="", XDG_RUNTIME_DIR="").stderr)
        result = self.other(HCCLCTL, "status", HCCLD_SOCKET="", XDG_RUNTIME_DIR="")
        self.assertEqual(result.returncode, 3)
        self.assertIn("Start one by: hccld --socket /absolute/path", result.stderr)


class Kill(Case):
    def test_the_process_and_its_peers_are_told(self):
        self.start()
        job = self.job(RANK, 2, "1000000", "any")
        result = self.ctl("kill", f"pid:{job[1].pid}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, rf"^session \d+ of process 'admin_rank' \(pid {job[1].pid}, uid {os.getuid()}\) has ended$")
        words = f"session ended by an administrator (uid {os.getuid()})"
        for rank, process in enumerate(job):
            _, err = process.communicate(timeout=60 * SCALE)
            self.assertEqual(process.returncode, 3, err)
            self.assertIn(words, err)
            self.assertIn("Solution: Ask that user why", err)
            if rank != 1:
                self.assertIn(f"rank 1, pid {job[1].pid}, {words}", err)
        wait_for(lambda: self.json("status")["sessions"] == 0, "all is gone")
        self.assertEqual(sum(d["memory_used"] for d in self.json("status")["devices"]), 0)
        self.assertRegex(self.log(), rf"session \d+ of process 'admin_rank' \(pid {job[1].pid}, .*is ended by uid {os.getuid()} ")

    def counted_sessions(self):
        limits = self.json("limits")["tenants"][0]["limits"]
        return next(limit["used"] for limit in limits if limit["setting"] == "sessions_per_tenant")

    def test_a_process_that_lives_counts(self):
        """A thread of it could still write to its place among the contexts; ps shows no session."""
        self.start()
        job = self.job(CIRCLE, 2)
        for process in job:
            process.send_signal(signal.SIGSTOP)
        self.assertEqual(self.counted_sessions(), 2)
        self.assertEqual(self.ctl("kill", f"pid:{job[0].pid}").returncode, 0)
        self.assertEqual([s["pid"] for s in self.json("ps")["sessions"]], [job[1].pid])
        self.assertEqual(self.counted_sessions(), 2)
        job[0].kill()
        wait_for(lambda: self.counted_sessions() == 1, "it counts no more")

    def test_arguments(self):
        self.start()
        for wrong in ([], ["x"], ["0"], ["pid:"], ["pid:x"], ["-1"], ["1", "y"]):
            self.assertEqual(self.ctl("kill", *wrong).returncode, 2, wrong)
        result = self.ctl("kill", "12345")
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no session 12345", result.stderr)
        self.assertEqual(self.ctl("kill", "pid:1").returncode, 1)
        self.assertEqual(self.ctl("kill", "1", HCCLD_SOCKET=self.socket + "x").returncode, 3)

    def test_several_and_one_that_is_not_there(self):
        self.start()
        # not of one communicator: who loses a peer may end by itself
        job = self.job(CIRCLE, 2) + self.job(CIRCLE, 2)
        numbers = {s["pid"]: str(s["session"]) for s in self.json("ps")["sessions"]}
        numbers = [numbers[job[1].pid], numbers[job[2].pid]]
        result = self.ctl("kill", "--json", numbers[0], "999", numbers[1])
        self.assertEqual(result.returncode, 1)
        self.assertEqual([str(s["session"]) for s in json.loads(result.stdout)["ended"]], numbers)
        for process in job:
            process.wait(60 * SCALE)


class Drain(Case):
    def test_nothing_new_until_undrain(self):
        self.start()
        job = self.job(RANK, 2, "1000000", "any")
        self.assertEqual(self.ctl("drain").returncode, 0)
        self.assertIs(self.json("drain")["draining"], True)
        late = subprocess.run([RANK, self.socket + ".root", "1", "ok"], capture_output=True, text=True, timeout=60 * SCALE, check=False,
                              env=dict(self.env, RANK_ID="0", RANK_SIZE="1", DEVICE_ID="0"))
        self.assertEqual(late.returncode, 1)
        self.assertIn(f"being drained: uid {os.getuid()} lets no new programs in", late.stderr)
        self.assertIn("Solution: Use another node", late.stderr)
        self.assertIn("being drained", self.ctl("status").stdout.splitlines()[0])
        self.assertEqual(self.json("status")["draining"]["uid"], os.getuid())
        self.assertIn("2 sessions and 1 communicator run on", self.ctl("drain").stdout)
        result = self.ctl("drain", "--wait", "0")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("after 0 s 2 sessions and 1 communicator still run (hcclctl ps); it stays drained", result.stderr)
        self.assertEqual(self.ctl("drain", "--wait=1").returncode, 1)
        waiter = subprocess.Popen([HCCLCTL, "drain", "--wait"], env=self.env, stdout=subprocess.PIPE, text=True)
        time.sleep(0.2)
        self.assertIsNone(waiter.poll())
        for process in job:
            process.kill()
        out, _ = waiter.communicate(timeout=30 * SCALE)
        self.assertEqual((waiter.returncode, out), (0, "no new programs are let in; nothing runs\n"))
        self.assertEqual(self.ctl("undrain").returncode, 0)
        self.assertIsNone(self.json("status")["draining"])
        self.job(RANK, 2, "3", "ok")
        for wrong in (["--wait", "x"], ["--wait=x"], ["1"], ["--wait=-1"]):
            self.assertEqual(self.ctl("drain", *wrong).returncode, 2, wrong)
        self.assertIn(f"asked by uid {os.getuid()}", self.log())

    def test_it_outlives_the_daemon(self):
        self.start("--keeper")
        self.assertEqual(self.ctl("drain").returncode, 0)
        before = self.json("status")
        os.kill(before["pid"], signal.SIGKILL)
        wait_for(lambda: self.ctl("status").returncode == 0 and self.json("status")["pid"] != before["pid"], "the next one serves")
        after = self.json("status")
        self.assertEqual(after["incarnation"], before["incarnation"] + 1)
        self.assertGreaterEqual(after["draining"]["age_ms"], before["draining"]["age_ms"])
        self.assertEqual(self.ctl("undrain").returncode, 0)


class Ping(Case):
    def test_exit_status(self):
        daemon = self.start()
        for arguments in ([], ["--local"], ["--quiet"], ["--timeout", "3000"]):
            result = self.ctl("ping", *arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
            self.assertEqual(bool(result.stdout), "--quiet" not in arguments)
        self.assertGreater(self.json("ping")["round_trip_us"], 0)
        daemon.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        result = self.ctl("ping", "--local", "--timeout", "200")
        self.assertEqual(result.returncode, 1)
        self.assertLess(time.monotonic() - started, 4 * SCALE)
        self.assertIn("does not answer within 0.2 s", result.stderr)
        result = self.ctl("ping", "--quiet", "--timeout", "200")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", ""))
        daemon.send_signal(signal.SIGCONT)
        self.stop(daemon)
        result = self.ctl("ping", "--quiet")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", ""))
        self.assertEqual(self.ctl("ping").returncode, 2)
        self.assertEqual(self.ctl("ping", "--timeout", "0").returncode, 2)

    def test_an_engine_that_does_not_pass(self):
        """Its thread alone is stopped, by ptrace: the control thread answers, and ping is not content."""
        daemon = self.start()
        threads = {pathlib.Path(path, "comm").read_text(encoding="utf-8").strip(): int(path.name)
                   for path in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()}
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(PTRACE_SEIZE, threads["hccld-engine"], None, None):
            self.fail(f"ptrace: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(libc.ptrace, PTRACE_DETACH, threads["hccld-engine"], None, None)
        self.assertEqual(libc.ptrace(PTRACE_INTERRUPT, threads["hccld-engine"], None, None), 0)
        os.waitpid(threads["hccld-engine"], 0x40000000)  # __WALL
        result = self.ctl("ping", "--timeout", "300")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(self.ctl("version").returncode, 0)
        for _ in range(70):  # more than are kept; on a loaded machine some end before the daemon has read them
            self.assertEqual(self.ctl("ping", "--quiet", "--timeout", "20").returncode, 1)
        wait_for(lambda: "earlier pings" in self.ctl("ping", "--timeout", "500").stderr, "too many wait")
        self.assertEqual(libc.ptrace(PTRACE_DETACH, threads["hccld-engine"], None, None), 0)
        wait_for(lambda: self.ctl("ping").returncode == 0, "the engine passes")


class Monitor(Case):
    def watch(self, *arguments):
        """The process and its lines so far, as dictionaries."""
        process = subprocess.Popen([HCCLCTL, "monitor", *arguments], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []

        def read():
            for line in process.stdout:
                lines.append(json.loads(line))
        thread = threading.Thread(target=read)
        thread.start()
        self.addCleanup(lambda: (process.stdout.close(), process.stderr.close()))
        self.addCleanup(thread.join)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, lines

    def test_events_and_a_clean_end(self):
        daemon = self.start()
        process, lines = self.watch()
        wait_for(lambda: lines, "it begins")
        self.assertEqual((lines[0]["event"], lines[0]["incarnation"], lines[0]["pid"]), ("monitor", 1, daemon.pid))
        for rank in self.job(RANK, 2, "3", "ok"):
            rank.wait(30 * SCALE)
        wait_for(lambda: sum(line["event"] == "session-end" for line in lines) == 2, "both end")
        kinds = [line["event"] for line in lines]
        self.assertEqual(kinds.count("session-start"), 2)
        self.assertEqual((kinds.count("comm-ready"), kinds.count("comm-gone")), (1, 1))
        self.assertLess(kinds.index("session-start"), kinds.index("comm-ready"))
        for line in lines:
            if line["event"] == "session-end":
                self.assertEqual(line["text"], "exited with status 0")
                self.assertEqual(line["process"], "admin_rank")
        self.stop(daemon)
        self.assertEqual(process.wait(30 * SCALE), 0)

    def test_follow_over_a_restart(self):
        self.start("--keeper")
        _, lines = self.watch("--follow")
        wait_for(lambda: lines, "it begins")
        os.kill(lines[0]["pid"], signal.SIGKILL)
        wait_for(lambda: len(lines) == 3, "it is there again")
        self.assertEqual([line["event"] for line in lines], ["monitor", "gone", "restart"])
        self.assertEqual(lines[2]["incarnation"], 2)
        self.ctl("drain")
        wait_for(lambda: lines[-1]["event"] == "drain", "events come again")

    def test_closed_output(self):
        """What it prints does not go to the daemon, whose connection would get the number."""
        self.start()
        for arguments in ["monitor"], ["kill", *map(str, range(500, 700))], ["ping"]:
            result = subprocess.run([HCCLCTL, *arguments], env=self.env, stderr=subprocess.PIPE, text=True, timeout=30 * SCALE, check=False,
                                    preexec_fn=lambda: os.close(1))
            self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNotIn("broke", self.log())
        self.assertNotIn("malformed", self.log())

    def test_full_disk(self):
        """Ends at its first line, and not with the next event."""
        self.start()
        for arguments in ["monitor"], ["monitor", "--follow"], ["kill", "--json", "999"]:
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([HCCLCTL, *arguments], env=self.env, stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=30 * SCALE, check=False)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertEqual(result.stderr.count("cannot write the output: No space left on device"), 1, result.stderr)

    def test_no_daemon(self):
        self.assertEqual(self.ctl("monitor").returncode, 3)


class Completion(Case):
    def complete(self, *words):
        script = f"""source {COMPLETION}
COMP_WORDS=("$@"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_hcclctl_complete; printf '%s\\n' "${{COMPREPLY[@]}}" """
        result = subprocess.run(["bash", "-c", script, "bash", HCCLCTL, *words], env=self.env, capture_output=True, text=True,
                                timeout=60 * SCALE, check=False)
        self.assertEqual(result.stderr, "")
        words = result.stdout.split()
        self.assertEqual(len(words), len(set(words)), words)
        return set(words)

    def test_commands_and_options_are_those_of_the_help(self):
        overview = self.ctl("--help").stdout
        commands = set(re.findall(r"^  (\w+) ", overview.split("Commands:")[1].split("Options:")[0], re.M))
        self.assertIn("drain", commands)
        self.assertEqual(self.complete(""), commands | {"help"})
        self.assertEqual(self.complete("help", ""), commands | {"help"})
        self.assertEqual(self.complete("--socket", "/x", "stre"), {"streams"})
        for command in commands:
            text = self.ctl(command, "--help").stdout
            options = {o for o in re.findall(r"^ +(--?[a-z][a-z-]*)(?:, (--[a-z-]+))?", text, re.M) for o in o if o}
            found = self.complete(command, "-")
            self.assertLessEqual(options, found, command)
            for option in found:
                self.assertIn(option, text)
        self.assertEqual(self.complete("drain", "--w"), {"--wait"})
        self.assertEqual(self.complete("log", ""), {"error", "warning", "notice", "info", "debug"})
        self.assertEqual(self.complete("run", "--log-level", "n"), {"notice"})

    def test_sessions_and_processes(self):
        self.assertEqual(self.complete("kill", ""), set())
        self.start()
        self.job(CIRCLE, 2)
        sessions = self.json("ps")["sessions"]
        self.assertEqual(self.complete("kill", ""), {str(s["session"]) for s in sessions})
        pids = {str(s["pid"]) for s in sessions}
        self.assertEqual(self.complete("kill", "pid:"), {f"pid:{pid}" for pid in pids})
        self.assertEqual(self.complete("kill", "pid", ":"), pids)  # as bash cuts it
        self.assertEqual(self.complete("kill", "pid", ":", str(sessions[0]["pid"])), {str(sessions[0]["pid"])})
        self.assertEqual(self.complete("streams", "--pid", ""), {str(s["pid"]) for s in sessions})
        self.assertEqual(self.complete("streams", "--session", ""), {str(s["session"]) for s in sessions})


if __name__ == "__main__":
    unittest.main(verbosity=2)
