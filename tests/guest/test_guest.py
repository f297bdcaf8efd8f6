#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The daemon and hcclctl on a machine with RDMA devices, and that these work: test_guest.py BUILD_DIR [TEST...]

One guest (run-guest) runs guest_verbs.sh; the cases look at what it printed.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
SCALE = int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
STATUS = 42  # of guest_verbs.sh
SENT = 4 << 20  # by each end at least, in verbs.c


def run_guest(*arguments, seconds=100):
    return subprocess.run([sys.executable, str(HERE / "run-guest"), "--timeout", str(seconds), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)


class Guest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = result
        cls.sections = {}
        for part in re.split(r"(?m)^== ", result.stdout)[1:]:
            name, _, text = part.partition("\n")
            text, _, status = text.rpartition("status ")
            cls.sections[name] = (text, int(status))

    def section(self, name):
        """The output of a section, which succeeded."""
        self.assertIn(name, self.sections, self.result.stdout + self.result.stderr)
        text, status = self.sections[name]
        self.assertEqual(status, 0, f"{name}: {text}\n{self.sections.get('log', ('no log',))[0]}")
        return text

    def test_status_of_the_command(self):
        self.assertEqual(self.result.returncode, STATUS, self.result.stdout + self.result.stderr)

    def test_json(self):
        reply = json.loads(self.section("json"))
        self.assertIs(reply["rdma_supported"], True)
        self.assertTrue(reply["devices"])
        nics = sorted(reply["rdma_devices"], key=lambda nic: nic["name"])
        self.assertEqual(len({nic.pop("guid") for nic in nics} - {"0" * 16}), 2)
        self.assertEqual(nics, [{"name": f"rxe{i}", "interface": f"ve{i}", "usable": True, "port": 1, "state": "active",
                                 "link_layer": "Ethernet", "mtu": 4096} for i in (0, 1)])

    def test_table(self):
        text = self.section("table")
        self.assertRegex(text, r"(?m)^RDMA DEVICE +PORT +STATE +LINK +INTERFACE +MTU$")
        for i in (0, 1):
            self.assertRegex(text, rf"(?m)^rxe{i} +1 +active +Ethernet +ve{i} +4096$")

    def test_verbs(self):
        self.section("verbs")
        before, after = ([int(count) for count in self.section(name).split()] for name in ("sent-before", "sent-after"))
        for i in (0, 1):  # across the veth, not around it
            self.assertGreater(after[i] - before[i], SENT)

    def test_daemon_ends_well(self):
        self.section("daemon")

    def test_nothing_is_left_in_the_kernel(self):
        before, after = self.section("resources-before"), self.section("resources-after")
        self.assertEqual(len(re.findall(r"rxe\d: .* mr 0 ctx 0 ", after)), 2, after)
        self.assertEqual(before, after)


class Run(unittest.TestCase):
    def test_time_out(self):
        result = run_guest("--", "sleep", "1000", seconds=1)
        self.assertEqual((result.returncode, result.stdout), (124, ""), result.stderr)


if __name__ == "__main__":
    result = run_guest("-f", BUILD / "daemon/hccld", "-f", BUILD / "hcclctl/hcclctl", "-f", BUILD / "tests/guest/verbs",
                       "-f", HERE / "guest_verbs.sh", "--", "sh", HERE / "guest_verbs.sh", BUILD, seconds=100 * SCALE)
    if result.returncode == 77:
        print(result.stderr, end="", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
