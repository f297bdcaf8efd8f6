#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict of hcclctl status about ranks that are in HcclChannelAcquire, or have host kernels: test_verdict_acquire.py SOURCE BUILD [TEST...]"""
import os
import re
import signal
import sys

from test_admin import BUILD, wait_for
from test_verdict import Case as VerdictCase, main, stopped

ACQUIRE = str(BUILD / "tests/hcclctl/acquire")


class Case(VerdictCase):
    def acquire(self, *operations):
        """The pid of each rank."""
        return [process.pid for process in self.job(ACQUIRE, len(operations), *operations)]

    def threads(self, devices, *operations):
        self.env["THREADS"] = str(devices)
        return [self.job(ACQUIRE, 1, *operations)[0].pid] * len(operations)

    def check_circle(self, pids, ranks, advice):
        """@ranks, whichever of them comes first; *hcclctl waiting* has them all."""
        verdict = self.verdict()
        found = re.search(r"; deadlock: ((?:rank \d \(pid \d+\)(?:, which)? waits for )+)rank (\d); (.*?); look at pid (\d+) "
                          r"\(gdb -p (\d+)\); hcclctl kill pid:(\d+) ends it$", verdict)
        self.assertTrue(found, verdict)
        nodes = [(int(rank), int(pid)) for rank, pid in re.findall(r"rank (\d) \(pid (\d+)\)", found[1])]
        first = ranks.index(nodes[0][0])
        self.assertEqual(nodes, [(rank, pids[rank]) for rank in ranks[first:] + ranks[:first]], verdict)
        self.assertEqual(int(found[2]), nodes[0][0], verdict)
        self.assertEqual(found[3], advice)
        self.assertEqual(found[4], found[5])
        self.assertEqual(found[4], found[6])
        self.assertIn(int(found[4]), pids)
        return verdict


class Circles(Case):
    FIRST = "let all of them call HcclChannelAcquire first, or all of them later"
    ORDER = "acquire these channels in one HcclChannelAcquire, or in the same order at all ranks"

    def test_a_barrier(self):
        """Whichever of the two has waited longer."""
        for steps in ("a1", "f1,b"), ("f1,a1", "b"):
            daemon = self.start()
            pids = self.acquire(*steps)
            self.step(1, 1)
            self.check_circle(pids, [0, 1], self.FIRST)
            reasons = self.reasons(2)
            words = rf"rank 0 \(pid {pids[0]}\) waits \d+\.\d s in HcclChannelAcquire for rank 1 \(pid {pids[1]}\)"
            self.assertRegex(reasons[1], rf" in barrier 1 for rank 0: rank 0 has not entered it: {words}$")
            self.assertRegex(reasons[0], rf" lives and has offered nothing to rank 0: rank 1 \(pid {pids[1]}\) waits \d+\.\d s in barrier 1 for rank 0$")
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            self.stop(daemon)

    def test_a_receive(self):
        self.start()
        pids = self.acquire("a1", "r0")
        self.check_circle(pids, [0, 1], self.FIRST)
        self.assertRegex(self.reasons(2)[1], r": rank 0 has not posted that send: rank 0 \(pid \d+\) waits \d+\.\d s in HcclChannelAcquire for rank 1 ")

    def test_a_ring(self):
        self.start()
        pids = self.acquire("a1,a2", "a2,a0", "a0,a1")
        verdict = self.check_circle(pids, [0, 1, 2], self.ORDER)
        self.assertRegex(verdict, r"^stuck: HcclChannelAcquire: communicator \S+: rank \d has waited \d+ ms; 1 of 1 channels \(engine AIV, "
                                  r"protocol UB_MEM\) lack the other end: rank \d \(pid \d+\) lives and has offered nothing to rank \d: "
                                  r"rank \d \(pid \d+\) waits \d+\.\d s in HcclChannelAcquire for rank \d ")

    def test_that_the_second_channel_leads_to(self):
        """Rank 0 lacks two: that to rank 1 leads to rank 3, which does nothing."""
        self.start()
        pids = self.acquire("a12", "f1,a3", "f1,r0", "p")
        self.step(1, 1)
        self.check_circle(pids, [0, 2], self.FIRST)

    def test_of_threads(self):
        for devices in 3, 1:
            daemon = self.start()
            pids = self.threads(devices, "a1,a2", "a2,a0", "a0,a1")
            self.check_circle(pids, [0, 1, 2], self.ORDER)
            os.kill(pids[0], signal.SIGKILL)
            self.stop(daemon)

    def test_of_threads_and_a_barrier(self):
        self.start()
        self.check_circle(self.threads(1, "a1", "b"), [0, 1], self.FIRST)

    def test_that_do_not_fit(self):
        self.start()
        pids = self.acquire("a1", "o0")
        self.check_circle(pids, [0, 1], "let both acquire channels of the same engine and protocol, in the same order")


class Chains(Case):
    def test_a_rank_that_never_comes(self):
        self.start()
        pids = self.acquire("a12", "a02", "p")
        verdict = self.verdict()
        self.assertNotIn("deadlock", verdict)
        self.assertRegex(verdict, rf": rank 2 \(pid {pids[2]}\) lives and has offered nothing to rank [01]; "
                                  rf"look at pid {pids[2]} \(gdb -p {pids[2]}\); hcclctl kill pid:{pids[2]} ends it$")
        status = self.json("status")
        self.assertEqual(status["waiting"], 2)
        self.assertEqual((status["oldest"]["operation"], status["oldest"]["peer"], status["oldest"]["peer_pid"]), ("channel-acquire", 2, pids[2]))
        text = self.ctl("status").stdout
        self.assertIn(", waiting operations 2,", text)
        self.assertRegex(text, r"(?m)^Waiting longest: \d+\.\d s in acquire, communicator \S+\n +HcclChannelAcquire: ")

    def test_of_threads(self):
        """Another thread's channel says nothing about the one that does not come."""
        self.start()
        pids = self.threads(1, "a12", "a02", "p")
        verdict = self.verdict()
        self.assertNotIn("deadlock", verdict)
        self.assertRegex(verdict, rf": rank 2 \(pid {pids[2]}\) lives and has offered nothing to rank [01]; look at pid {pids[2]} ")

    def test_the_end_of_it(self):
        self.start()
        pids = self.acquire("b", "f1,a2", "p")
        self.step(1, 1)
        wait_for(lambda: self.json("status")["waiting"] == 2, "both wait")
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: communicator \S+: rank 2 \(pid {pids[2]}\) has no work queued; rank 0 \(pid {pids[0]}\) waits ")
        self.assertIn(f"; look at pid {pids[2]} (gdb -p {pids[2]}); ", verdict)

    def test_with_a_stopped_rank(self):
        self.start()
        pids = self.acquire("a1", "p")
        os.kill(pids[1], signal.SIGSTOP)
        self.addCleanup(os.kill, pids[1], signal.SIGCONT)
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: HcclChannelAcquire: communicator [^;]*; 1 of 1 channels \(engine AIV, protocol UB_MEM\) lack the other end: "
                                  rf"rank 1 \(pid {pids[1]}\) {re.escape(stopped(pids[1]))}; hcclctl kill pid:{pids[1]} ends it$")


class Kernels(Case):
    """One that computes is no fault, and which do nobody can know."""
    WHERE = r"; gdb -p {0} shows where, in threads called hccld-kernel"

    def check_all(self, pids):
        verdict = self.verdict("waiting")
        self.assertRegex(verdict, rf"^waiting: host kernels of all {len(pids)} ranks of communicator \S+ \(of rank 0, pid {pids[0]}: 2 blocks\) have been "
                                  r"running for \d+\.\d s or longer: they compute, or wait for flags of one another that nobody sets"
                                  + self.WHERE.format(pids[0]) + "$")
        self.assertIs(self.json("status")["healthy"], True)
        self.assertEqual(self.ctl("status").returncode, 0)

    def check_one(self, words):
        """Also when it has run for so long that those of all would be told."""
        wait_for(lambda: any(w["age_ms"] > 5000 for w in self.json("waiting")["waiting"]), "it has run for long")
        self.assertRegex(self.json("status")["verdict"], rf"^healthy: \d sessions?, 1 communicator, a host kernel of 2 blocks has been running for {words}$")
        self.assertEqual(self.ctl("status").returncode, 0)

    def test_of_one_rank(self):
        self.start()
        pid, _ = self.acquire("k", "p")
        comm = wait_for(lambda: self.json("waiting")["waiting"], "it runs")[0]["comm_name"]
        of = rf"of rank 0 of communicator {re.escape(comm)}: it has run for \d+\.\d s"
        wait_for(lambda: re.search(rf"^stream \d+ of pid {pid} waits for a host kernel of 2 blocks {of}{self.WHERE.format(pid)}$",
                                   self.json("waiting")["waiting"][0]["reason"]), "what it may wait for is told")
        self.check_one(rf"\d+\.\d s at rank 0 of communicator {re.escape(comm)}, pid {pid}{self.WHERE.format(pid)}")

    def test_of_all_ranks(self):
        self.start()
        self.check_all(self.acquire("k", "k", "k"))

    def test_of_threads(self):
        self.start()
        self.check_all(self.threads(1, "k", "k"))

    def test_of_one_thread(self):
        self.start()
        pid, _ = self.threads(1, "k", "p")
        self.check_one(rf"\d+\.\d s in pid {pid}{self.WHERE.format(pid)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.modules[__name__]))
