#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict of hcclctl status, and the reasons of hcclctl waiting, for programs that go wrong: test_verdict.py SOURCE BUILD [TEST...]"""
import concurrent.futures
import io
import json
import os
import re
import signal
import subprocess
import sys
import unittest

from test_admin import BUILD, SCALE, Case as AdminCase, wait_for

SCRIPT, SIGNALS = str(BUILD / "tests/hcclctl/script"), str(BUILD / "tests/hcclctl/signals")


def stopped(pid):
    return f"is stopped (SIGSTOP or a debugger): kill -CONT {pid}, or the debugger, lets it go on"


class Case(AdminCase):
    def script(self, *operations):
        return self.job(SCRIPT, len(operations), *operations)

    def step(self, number, waiting):
        """Lets the job's operations behind f@number go on once so many others wait: those have waited for longer, by so much that an engine
        that looks at them late changes nothing."""
        def look():
            found = self.json("waiting")["waiting"]
            return len(found) == waiting and all(w["age_ms"] >= 100 for w in found)
        wait_for(look, f"{waiting} operations wait")
        open(os.path.join(self.directory, f"root.{self.jobs}.step{number}"), "w", encoding="utf-8").close()

    def verdict(self, word="stuck"):
        def look():
            status = self.json("status")
            return status["verdict"] if status["verdict"].startswith(word + ":") else None
        return wait_for(look, f"the verdict is {word}")

    def reasons(self, count):
        """By rank."""
        def look():
            waiting = self.json("waiting")["waiting"]
            return waiting if len(waiting) == count and all(w["age_ms"] > 300 for w in waiting) else None
        found = wait_for(look, f"{count} operations wait")
        return {w["rank"]: w["reason"] for w in found} if len({w["rank"] for w in found}) == count else found


class Pending(Case):
    MIB = 1 << 20

    def config(self):
        path = os.path.join(self.directory, "hccld.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[limits]\npending_per_tenant = 1M\n")
        return "--config", path

    def test_what_is_waited_for_goes(self):
        self.start(more=self.config())
        job = self.script(f"s1:{self.MIB},s2:{self.MIB}:1", f"r2:4,y,r0:{self.MIB}", f"r0:{self.MIB},y,s1:4")
        for process in job:
            self.assertEqual(process.wait(60), 0)

    def test_a_send_that_is_held_back_comes_first(self):
        self.start(more=self.config())
        job = self.script(f"s1:{self.MIB},p200,s2:{self.MIB}:1", "p300000", "r1:4")
        pid = job[2].pid
        words = f"rank 0's send of 1 MiB to rank 2 (pid {pid}) is held back by pending_per_tenant (1 MiB)"
        reason = f"rank 2 has not posted that receive: its stream is at a receive of 4 bytes from rank 1 (pid {job[1].pid}); " \
                 f"uid {os.getuid()} has 1 MiB sent and not received; raise [limits] pending_per_tenant"
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: communicator \S+: {re.escape(words)} for \d+\.\d s: {re.escape(reason)}; ")
        self.assertTrue(verdict.endswith(f"; look at pid {pid} (gdb -p {pid}); hcclctl kill pid:{pid} ends it"), verdict)
        held = [w for w in self.json("waiting")["waiting"] if w["peer"] == 2]
        self.assertEqual(held[0]["reason"], f"{words}: {reason}")
        self.assertIs(held[0]["held"], True)
        limits = self.json("limits")["tenants"][0]["limits"]
        pending = [limit for limit in limits if limit["name"] == "pending bytes"][0]
        self.assertEqual((pending["used"], pending["top_pid"], pending["top_held"]), (self.MIB, job[0].pid, self.MIB))
        self.assertRegex(self.ctl("limits").stdout, rf"pending bytes .* {job[0].pid} script \(1 MiB\)")

    def test_whose_receiver_does_nothing(self):
        self.start(more=self.config())
        job = self.script(f"s2:{700 << 10}", f"p300,s2:{700 << 10}", "p300000")
        pid = job[2].pid
        verdict = self.verdict()
        self.assertRegex(verdict, rf": rank [01]'s send of 700 KiB to rank 2 \(pid {pid}\) is held back by pending_per_tenant "
                                  r"\(1 MiB\) for \d+\.\d s: rank 2 has not posted that receive and has no work queued; uid \d+ has 700 KiB sent")
        self.assertIn(f"; look at pid {pid} (gdb -p {pid}); hcclctl kill pid:{pid} ends it", verdict)
        job[2].send_signal(signal.SIGSTOP)
        self.addCleanup(job[2].send_signal, signal.SIGCONT)
        wait_for(lambda: f": process {pid} of rank 2 {stopped(pid)}; uid " in self.json("status")["verdict"], "it is stopped")

    def test_what_a_limit_has_made_is_no_deadlock(self):
        self.start(more=self.config())
        self.script(f"f1,s1:4,r1:{self.MIB}", f"s0:{self.MIB},r0:4")
        self.step(1, 1)
        verdict = self.verdict()
        self.assertIn("held back by pending_per_tenant", verdict)
        self.assertNotIn("deadlock", verdict)


class Words(Case):
    LONG = "p300000"

    def test_a_barrier_and_a_receive(self):
        self.start()
        self.script("r1:40", "b")
        reasons = self.reasons(2)
        self.assertRegex(reasons[0], r"to send 40 bytes: rank 1 is in barrier 1, which rank 0 has not entered$")
        self.assertRegex(reasons[1], r"in barrier 1 for rank 0: rank 0's stream is at a receive of 40 bytes from rank 1$")

    def test_both_do_the_same(self):
        for one, size, words in ("r", "40 bytes", "a receive of 40 bytes from rank {}: both receive, nobody sends"), \
                ("s", "1 MiB", "a send of 1 MiB to rank {}: both send, nobody receives"):
            daemon = self.start()
            count = "40" if one == "r" else "1048576"
            job = self.script(f"{one}1:{count}", f"{one}0:{count}")
            reasons = self.reasons(2)
            for rank in 0, 1:
                self.assertIn(f"{size}: rank {1 - rank}'s stream is at {words.format(rank)}", reasons[rank])
            for process in job:
                process.kill()
            self.stop(daemon)

    def test_a_peer_that_is_elsewhere(self):
        self.start()
        self.script("r1:8", "r2:40", self.LONG)
        reasons = self.reasons(2)
        self.assertRegex(reasons[0], r"rank 1 has not posted that send: its stream is at a receive of 40 bytes from rank 2 \(pid \d+\)$")
        self.assertRegex(reasons[1], r"rank 2 has not posted that send and has no work queued$")

    def test_several_ranks_are_listed(self):
        self.start()
        self.script(self.LONG, "b", self.LONG, self.LONG, "b")
        for reason in self.reasons(2).values():
            self.assertIn("waits in barrier 1 for ranks 0 and 2-3: ", reason)

    def test_barriers_that_are_passed(self):
        """Whatever a look catches them at: no empty list, no barrier 0, and nobody waits for itself."""
        self.start()
        self.script(*["c1000000000"] * 4)
        barrier = re.compile(r"rank (\d) \(pid \d+\) (waits in|is about to enter) barrier [1-9]\d*"
                             r"(: everybody |, which ranks? \d[-, and0-9]* ha(s|ve) not entered: | for ranks? \d[-, and0-9]*: )")
        seen = 0
        for _ in range(60):
            status = self.json("status")
            waiting = self.json("waiting")["waiting"] + [w for w in [status["oldest"]] if w]
            for entry in waiting:
                self.assertNotEqual(entry["peer"], entry["rank"], entry)
                self.assertGreater(entry["peer_pid"], 0, entry)
                self.assertEqual(": everybody " in entry["reason"], entry["peer_posted"], entry)
            reasons = [entry["reason"] for entry in waiting]
            reasons += [stream["reason"] for stream in self.json("streams")["streams"] if stream["reason"]]
            for reason in [status["verdict"], *reasons]:
                self.assertNotRegex(reason, r"ranks ( |:|$|have)|barrier 0\b|moving|4294967295")
            for reason in reasons:
                found = barrier.match(reason)
                self.assertTrue(found, reason)
                self.assertNotRegex(reason[found.end():], rf"^rank {found[1]} ", reason)
                seen += 1
        self.assertGreater(seen, 20)

    def test_a_host_function_comes_first(self):
        self.start()
        job = self.script("r2:8", "h60000,s2:8", "r1:8")
        verdict = self.verdict()
        pid = job[1].pid
        self.assertRegex(verdict, r"^stuck: communicator \S+: the host function of stream 0 of rank 1 "
                                  rf"\(pid {pid}\) has run for \d+\.\d s; rank [02] \(pid \d+\) waits \d")
        self.assertIn(f"; look at pid {pid} (gdb -p {pid}); hcclctl kill pid:{pid} ends it", verdict)

    def test_who_is_stopped_comes_first(self):
        self.start()
        job = self.script("r1:8", self.LONG)
        pid = job[1].pid
        job[1].send_signal(signal.SIGSTOP)
        self.addCleanup(job[1].send_signal, signal.SIGCONT)
        self.assertTrue(self.reasons(1)[0].endswith(f": process {pid} of rank 1 {stopped(pid)}"))
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: communicator \S+: process {pid} of rank 1 {re.escape(stopped(pid))}; rank 0 ")
        self.assertTrue(verdict.endswith(f" to send 8 bytes; hcclctl kill pid:{pid} ends it"), verdict)

    def test_a_stream_of_a_stopped_process(self):
        self.start()
        job = self.script("h60000", self.LONG)
        pid = job[0].pid
        self.reasons(1)
        job[0].send_signal(signal.SIGSTOP)
        self.addCleanup(job[0].send_signal, signal.SIGCONT)
        wait_for(lambda: self.json("waiting")["waiting"][0]["reason"].endswith(f": process {pid} {stopped(pid)}"), "it says so")

    def test_who_has_nothing_to_do_comes_first(self):
        self.start()
        job = self.script(self.LONG, "r0:8", "f1,r1:8", "f2,r2:8")
        self.step(1, 1)
        self.step(2, 2)
        verdict = self.verdict()
        pid = job[0].pid
        self.assertRegex(verdict, r"rank 1 \(pid \d+\) waits \d+\.\d s for rank 0 \(pid \d+\) to send 8 bytes: rank 0 has not posted that")
        self.assertIn(f"; look at pid {pid} (gdb -p {pid}); hcclctl kill pid:{pid} ends it", verdict)

    def test_the_end_of_a_chain(self):
        self.start()
        job = self.script(self.LONG, "f1,r0:8", "r1:8")
        self.step(1, 1)
        pid = job[0].pid
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: communicator \S+: rank 0 \(pid {pid}\) has no work queued; rank 2 .*rank 1 has not posted that")
        self.assertIn(f"; look at pid {pid} (gdb -p {pid})", verdict)

    def test_what_to_do_about_a_deadlock(self):
        self.start()
        self.script("r1:8", "r2:8", "r0:8")
        verdict = self.verdict()
        self.assertIn("; deadlock: rank ", verdict)
        self.assertRegex(verdict, r"; post sends and receives in one HcclBatchSendRecv or between HcclGroupStart and HcclGroupEnd; look at pid \d")

    def test_what_to_do_about_a_barrier_in_a_circle(self):
        self.start()
        self.script("r1:8", "b")
        self.assertIn("; let all of them come to barriers and transfers in the same order; look at pid ", self.verdict())


class Notify(Case):
    """Waits for notifies, and host kernels: who could end them."""

    def signals(self, *operations):
        return self.job(SIGNALS, len(operations), *operations)

    def pause(self, process):
        process.send_signal(signal.SIGSTOP)
        self.addCleanup(process.send_signal, signal.SIGCONT)

    def test_of_a_channel(self):
        self.start()
        job = self.signals("w1:1", "p1")
        entry = wait_for(lambda: self.json("waiting")["waiting"], "it waits")[0]
        words = rf"for notify 1 of its channel to rank 1 \(pid {job[1].pid}\) of communicator \S+: rank 1 has no task queued that records it"
        self.assertRegex(entry["reason"], rf"^rank 0 \(pid {job[0].pid}\) waits {words}$")
        self.assertEqual((entry["rank"], entry["peer"], entry["peer_pid"], entry["operation"]), (0, 1, job[1].pid, "wait-notify"))
        comm = self.json("comms")["comms"][0]
        self.assertEqual((entry["comm"], entry["comm_name"]), (comm["comm"], comm["name"]))
        self.assertRegex(self.ctl("limits").stdout, rf"(?m) communicators +1 .* ({job[0].pid}|{job[1].pid}) signals \(1 rank\) ")
        limits = {limit["name"]: limit for limit in self.json("limits")["tenants"][0]["limits"]}
        self.assertEqual((limits["communicators"]["used"], limits["communicators"]["top_ranks"]), (1, 1))
        self.assertNotIn("top_held", limits["communicators"])
        self.assertEqual(limits["sessions"]["top_held"], 1)
        self.assertRegex(self.ctl("waiting").stdout, rf"(?m)^ *\S+ \S+ +{re.escape(comm['name'])} +signals rank 0 ")
        verdict = self.verdict()
        pid = job[1].pid
        self.assertRegex(verdict, rf"^stuck: rank 0 \(pid {job[0].pid}\) waits \d+\.\d s {words}; "
                                  rf"look at pid {pid} \(gdb -p {pid}\); hcclctl kill pid:{pid} ends it$")

    def test_of_a_channel_with_a_stopped_peer(self):
        self.start()
        job = self.signals("w1:0", "p1")
        pid = job[1].pid
        self.pause(job[1])
        verdict = self.verdict()
        self.assertTrue(verdict.endswith(f": rank 1 (pid {pid}) {stopped(pid)}; hcclctl kill pid:{pid} ends it"), verdict)

    def test_who_waits_is_not_to_blame_for_being_stopped(self):
        self.start()
        job = self.signals("w1:0", "p1")
        wait_for(lambda: self.json("waiting")["waiting"], "it waits")
        self.pause(job[0])
        verdict = self.verdict()
        self.assertNotIn("is stopped", verdict)
        self.assertIn(f": rank 1 has no task queued that records it; look at pid {job[1].pid} ", verdict)

    def test_of_a_thread(self):
        """Nobody else can record it: its own process may be stopped, after what it waits for."""
        self.start()
        job = self.signals("t1", "p1")
        pid = job[0].pid
        words = r"notify \d+ of device 0 \(notify 1 of a thread of rank 0 of communicator \S+\): no stream has a task queued that records it"
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: stream \d+ of pid {pid} waits \d+\.\d s for {words}; look at pid {pid} ")
        for command in "streams", "threads":
            self.assertRegex(self.ctl(command).stdout, rf"(?m) notify-wait +\S+ m?s +{words}$")
        entry = self.json("waiting")["waiting"][0]
        self.assertNotEqual(entry["comm"], 0)
        self.assertEqual((entry["rank"], entry["peer_pid"]), (0, 0))
        self.pause(job[0])
        wait_for(lambda: re.search(rf"{words}; process {pid} {re.escape(stopped(pid))}; hcclctl kill", self.json("status")["verdict"]),
                 "it is stopped")

    def test_of_acl_that_others_have(self):
        """Who has imported it may record it, and who has exported it."""
        self.start()
        job = self.signals("e", "i", "p1")
        words = rf"^stream 0 of pid {job[0].pid} waits for notify \d+ of device 0: pid {job[1].pid}, which has imported it, "
        wait_for(lambda: re.search(rf"{words}has no task queued that records it$", self.reasons(1)[0]), "it is imported")
        self.pause(job[1])
        verdict = self.verdict()
        self.assertTrue(verdict.endswith(f" {stopped(job[1].pid)}; hcclctl kill pid:{job[1].pid} ends it"), verdict)

    def test_of_acl_that_somebody_else_has(self):
        self.start()
        job = self.signals("e", "i,x", "i,p1")
        reasons = wait_for(lambda: (lambda w: {e["pid"]: e["reason"] for e in w if len(w) == 2})(self.json("waiting")["waiting"]), "both wait")
        self.assertRegex(reasons[job[1].pid], rf"^stream 0 of pid {job[1].pid} waits for notify (\d+) of device 0 of pid {job[0].pid}: "
                                              rf"pid {job[0].pid}, which has exported it, has no task queued that records it$")
        wait_for(lambda: any(re.search(rf": no stream has a task queued that records it; it was imported by pids "
                                       rf"({job[1].pid}, {job[2].pid}|{job[2].pid}, {job[1].pid})$", entry["reason"])
                             for entry in self.json("waiting")["waiting"]), "both have it")

    def test_a_circle(self):
        """What the peers would record is behind what they wait for."""
        self.start()
        job = self.signals("w1:0,n2:0", "w2:0,n0:0", "w0:0,n1:0")
        verdict = self.verdict()
        found = re.search(r"; deadlock: rank (\d) \(pid (\d+)\) waits for rank (\d) \(pid (\d+)\), "
                          r"which waits for rank (\d) \(pid (\d+)\), which waits for rank (\d); let one of them record before it waits; ", verdict)
        self.assertTrue(found, verdict)
        ranks, pids = [int(rank) for rank in found.groups()[0::2]], [int(pid) for pid in found.groups()[1::2]]
        self.assertEqual([(rank - ranks[0]) % 3 for rank in ranks], [0, 1, 2, 0])
        self.assertEqual(pids, [job[rank].pid for rank in ranks[:3]])

    def test_a_circle_of_what_is_not_queued(self):
        self.start()
        job = self.signals("w1:0", "r0")
        self.assertRegex(self.verdict(), rf"; deadlock: rank (0 \(pid {job[0].pid}\)|1 \(pid {job[1].pid}\)) waits for rank [01] ")

    def test_the_end_of_a_chain(self):
        self.start()
        job = self.signals("w1:0", "f1,w2:0,n0:0", "p1")
        self.step(1, 1)
        pid = job[2].pid
        verdict = self.verdict()
        self.assertNotIn("deadlock", verdict)
        self.assertRegex(verdict, rf"^stuck: rank 1 \(pid {job[1].pid}\) waits \d+\.\d s for notify 0 of its channel to rank 2 \(pid {pid}\) "
                                  r"of communicator \S+: rank 2 has no task queued that records it; "
                                  rf"rank 0 \(pid {job[0].pid}\) waits .*; look at pid {pid} ")

    def test_a_kernel_with_a_stopped_rank(self):
        self.start()
        job = self.signals("k60000", "p1")
        wait_for(lambda: self.json("waiting")["waiting"], "it runs")
        entry = self.json("waiting")["waiting"][0]
        comm = self.json("comms")["comms"][0]
        self.assertEqual((entry["comm"], entry["comm_name"], entry["rank"]), (comm["comm"], comm["name"], 0))
        pid = job[1].pid
        self.pause(job[1])
        verdict = self.verdict()
        self.assertRegex(verdict, rf": it has run for \d+\.\d s, and may wait for rank 1 \(pid {pid}\) of communicator \S+, "
                                  rf"whose process {re.escape(stopped(pid))}; hcclctl kill pid:{pid} ends it$")


class Missing(Case):
    def spawn(self, program, arguments, rank, size, **more):
        process = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=dict(self.env, RANK_ID=str(rank), RANK_SIZE=str(size), DEVICE_ID=str(rank), **more))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_who_and_what_to_do(self):
        self.start()
        first = self.spawn(SCRIPT, [self.socket + ".root", "p1", "p1", "p1"], 0, 3)
        self.spawn(SCRIPT, [self.socket + ".root", "p1", "p1", "p1"], 2, 3)
        self.assertRegex(self.verdict(), r"^stuck: communicator \S+ is being created for \d+\.\d s: 1 of 3 ranks is missing: rank 1; "
                                         r"look for this process, and whether it got the same root info; "
                                         rf"hcclctl kill pid:({first.pid}|\d+) ends the wait$")

    def test_one_that_is_stopped(self):
        self.start()
        self.spawn(SCRIPT, [self.socket + ".root", "p1", "p1", "p1"], 0, 3)
        self.spawn(SCRIPT, [self.socket + ".root", "p1", "p1", "p1"], 2, 3)
        late = self.spawn(SCRIPT, [self.socket + ".never", "p1", "p1", "p1"], 1, 3)
        wait_for(lambda: self.json("status")["sessions"] == 3, "all have sessions")
        self.assertIn(f"; pid {late.pid} has joined nothing yet", self.verdict("waiting"))
        late.send_signal(signal.SIGSTOP)
        words = re.escape(f": 1 of 3 ranks is missing: rank 1; pid {late.pid} has joined nothing and {stopped(late.pid)}; ")
        wait_for(lambda: re.search(rf"{words}hcclctl kill pid:\d+ ends the wait$", self.verdict()), "it is stopped")

    def test_those_that_have_joined_nothing(self):
        """What to do about one of them, and about several."""
        for size, missing, advice in (3, "1 of 3 ranks is missing: rank 1", ", and whether it got the same root info"), \
                (4, "2 of 4 ranks are missing: ranks 1 and 3", " and for the others, and whether they got the same root info"):
            daemon = self.start()
            root = f"{self.socket}.{size}"
            processes = [self.spawn(SCRIPT, [root, *["p1"] * size], rank, size) for rank in (0, 2)]
            late = self.spawn(SCRIPT, [root + ".never", *["p1"] * size], 1, size)
            wait_for(lambda: self.json("status")["sessions"] == 3, "all have sessions")
            self.assertRegex(self.verdict(), re.escape(f": {missing}; pid {late.pid} has joined nothing yet; look at pid {late.pid} "
                                                       f"(gdb -p {late.pid}){advice}; hcclctl kill pid:") + r"\d+ ends the wait$")
            for process in [*processes, late]:
                process.kill()
                process.wait()
            self.stop(daemon)

    def test_root_infos_of_their_own(self):
        self.start()
        pids = []
        for rank in 0, 1:
            pids.append(self.spawn(SCRIPT, [f"{self.socket}.own{rank}", "p1", "p1"], rank, 2, OWN_ROOT="1").pid)
        verdict = self.verdict("waiting")
        found = re.search(r"1 of 2 ranks is missing: rank (\d); pid (\d+) waits as rank (\d) of 2 with another root info", verdict)
        self.assertTrue(found, verdict)
        self.assertEqual((found[1], int(found[2])), (found[3], pids[int(found[3])]))

    def test_tables_that_differ(self):
        self.start()
        processes = []
        for rank, size in (0, 2), (1, 3):
            path = f"{self.socket}.{size}.json"
            devices = [{"device_id": str(i), "rank_id": str(i)} for i in range(size)]
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"version": "1.0", "status": "completed", "server_count": "1",
                           "server_list": [{"server_id": "node-0", "device": devices}]}, file)
            processes.append(self.spawn(SCRIPT, ["table:" + path, *["p1"] * size], rank, size,
                                        HCCLD_CONNECT_TIMEOUT_MS=str(7000 + 1500 * rank)))
        verdict = self.verdict()
        found = re.search(r"; pid (\d+) waits as rank (\d) of (\d) with a table that differs, or for another HCCLD_JOB: compare them",
                          verdict)
        self.assertTrue(found, verdict)
        self.assertEqual(int(found[1]), processes[int(found[2])].pid)
        for process, word in zip(processes, ("waits", "has waited")):
            error = process.communicate(timeout=60)[1]
            self.assertRegex(error, rf"; pid \d+ {word} as rank \d of \d with a table that differs, or for another HCCLD_JOB")


class Daemon(Case):
    def test_being_stopped(self):
        daemon = self.start(more=("--stop-grace", "20s"))
        self.script("r1:8", "p300000")
        self.assertIsNone(self.json("status")["stopping"])
        daemon.terminate()
        status = wait_for(lambda: (lambda s: s if s["stopping"] else None)(self.json("status")), "it says so")
        self.assertTrue(10000 < status["stopping"]["left_ms"] <= 20000, status)
        self.assertRegex(status["verdict"], r"; being stopped, (1\d|20) s left$")
        self.assertRegex(self.ctl("status").stdout.splitlines()[0], r"; being stopped, \d+ s left$")
        daemon.terminate()
        self.assertEqual(daemon.wait(30 * SCALE), 0)

    def test_a_daemon_that_is_stopped(self):
        """Also one that has the socket from its predecessor."""
        self.start("--keeper")
        for _ in range(2):
            pid = self.json("status")["pid"]
            os.kill(pid, signal.SIGSTOP)
            result = self.ctl("ping", "--timeout", "300")
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, f"hcclctl: the daemon at {self.socket} does not answer within 0.3 s: "
                                            f"pid {pid} {stopped(pid)}\n")
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: self.ctl("status").returncode == 0 and self.json("status")["pid"] != pid, "the next one serves")


class Errors(Case):
    def test_a_peer_that_destroys_the_communicator(self):
        self.start()
        for mine, theirs, verb, lacks, before in ("r1:8", "d", "receive from", "send", "this was sent"), \
                ("s1:1048576", "d", "send to", "receive", "this was received"), ("b", "d", "leave a barrier with", "barrier", "it had entered it"):
            job = self.script("p1," + mine, "p200," + theirs)
            error = job[0].communicate(timeout=60)[1]
            self.assertRegex(error, rf"rank 0 cannot {verb} rank 1: rank 1 \(pid {job[1].pid}\) has destroyed the communicator before "
                                    rf"{before}\n +Solution: rank 1's list lacks the {lacks}, or it called HcclCommDestroy too early")


def cases_of(suite):
    for entry in suite:
        yield from cases_of(entry) if isinstance(entry, unittest.TestSuite) else [entry]


def run(case):
    """Its result and what unittest prints of it."""
    stream = io.StringIO()
    return unittest.TextTestRunner(stream, verbosity=2).run(case), stream.getvalue()


def main(names, module=sys.modules[__name__]):
    """Several at a time, each with a daemon of its own: what they wait for is that 5 seconds pass."""
    loader = unittest.defaultTestLoader
    cases = list(cases_of(loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)))
    ok = bool(cases)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for result, text in pool.map(run, cases):
            print(text, file=sys.stderr)
            ok = ok and result.testsRun == 1 and result.wasSuccessful()
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
