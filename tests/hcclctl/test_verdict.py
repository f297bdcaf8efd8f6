#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verdict of hcclctl status, and the reasons of hcclctl waiting, for programs that go wrong: test_verdict.py SOURCE BUILD [TEST...]"""
import os
import re
import time
import unittest

from test_admin import BUILD, Case as AdminCase, wait_for

SCRIPT = str(BUILD / "tests/hcclctl/script")


class Case(AdminCase):
    def script(self, *operations):
        return self.job(SCRIPT, len(operations), *operations)

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
        words = "rank 0's send of 1 MiB to rank 2 is held back by pending_per_tenant (1 MiB)"
        verdict = self.verdict()
        self.assertRegex(verdict, rf"^stuck: communicator \S+: {re.escape(words)} for \d")
        self.assertNotIn("posted nothing", verdict)
        held = [w for w in self.json("waiting")["waiting"] if w["peer"] == 2]
        self.assertIn(f"{words}: uid {os.getuid()} has 1 MiB sent and not received; raise limits.pending_per_tenant",
                      held[0]["reason"])
        self.assertIs(held[0]["held"], True)
        limits = self.json("limits")["tenants"][0]["limits"]
        pending = [limit for limit in limits if limit["name"] == "pending bytes"][0]
        self.assertEqual((pending["used"], pending["top_pid"], pending["top_held"]), (self.MIB, job[0].pid, self.MIB))
        self.assertRegex(self.ctl("limits").stdout, rf"pending bytes .* {job[0].pid} script \(1 MiB\)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
