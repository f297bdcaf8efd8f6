#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two nodes in network namespaces, whose cable is pulled out and put in again. test_namespaces.py BUILD_DIR [TEST...]"""
import os
import subprocess
import sys
import time
import unittest

from nodes import Case, Node, wait_for

CYCLES = 20 if os.environ.get("TEST_LEVEL") != "long" else 500


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


class Placed(Node):
    """In a namespace of its own."""

    def __init__(self, directory, name, number):
        self.namespace = f"hccld-{os.getpid()}-{name}"
        super().__init__(directory, name, "127.0.0.1")
        self.host, self.port = f"10.77.0.{number}", 7411
        self.address, self.cable = f"{self.host}:{self.port}", f"cable{number}"

    def inside(self, *words):
        ip("-n", self.namespace, *words)

    def program(self, words):
        return ["ip", "netns", "exec", self.namespace, *words]


class Cable(Case):
    def setUp(self):
        super().setUp()
        self.nodes = [self.placed("a", 1), self.placed("b", 2)]
        a, b = self.nodes
        ip("link", "add", "name", a.cable, "netns", a.namespace, "type", "veth", "peer", "name", b.cable, "netns", b.namespace)
        for node in self.nodes:
            node.inside("addr", "add", f"{node.host}/24", "dev", node.cable)
            node.inside("link", "set", node.cable, "up")
            node.inside("link", "set", "lo", "up")

    def placed(self, name, number):
        node = Placed(self.directory, name, number)
        ip("netns", "add", node.namespace)
        self.addCleanup(ip, "netns", "del", node.namespace)
        self.keep(node)
        return node

    def start(self, **options):
        a, b = self.nodes
        a.start([b], keepalive="100ms", **options)
        b.start([a], keepalive="100ms", **options)
        for node, other in (a, b), (b, a):
            node.wait_for_link(other.name)
        return a, b

    def test_short_and_long_cuts(self):
        """A cut that is shorter than five keepalives is not noticed, a longer one is, and nothing that was under way is lost by either."""
        a, b = self.start()
        for cycle in range(CYCLES):
            before = a.link("b")["connections"]
            b.inside("link", "set", b.cable, "down")
            time.sleep(0.2 if cycle % 2 else 1)
            if not cycle % 2:
                a.wait_for_link("b", "lost")
            b.inside("link", "set", b.cable, "up")
            a.wait_for_link("b")
            b.wait_for_link("a")
            self.assertEqual(a.call("ping", "--count", "2", "--interval", "10", "b").returncode, 0)
            self.assertLessEqual(a.link("b")["connections"] - before, 2)
        self.assertNotIn("begins again", a.text() + b.text())
        self.assertGreaterEqual(a.text().count("goes on"), CYCLES // 2)

    def test_a_cut_beyond_the_time_limit(self):
        a, b = self.start(peer_timeout="2s")
        b.inside("link", "set", b.cable, "down")
        a.wait_for_link("b", "failed")
        b.wait_for_link("a", "failed")
        b.inside("link", "set", b.cable, "up")
        a.wait_for_link("b")
        b.wait_for_link("a")
        self.assertIn("begins again: what was under way is lost", a.text())

    def test_an_address_that_is_not_there_yet(self):
        """The daemon starts before its address, and listens once that is there."""
        a, b = self.nodes
        b.inside("addr", "del", f"{b.host}/24", "dev", b.cable)
        b.start(keepalive="100ms")
        a.start([b], keepalive="100ms")
        b.wait_for_log("Cannot assign requested address")
        b.inside("addr", "add", f"{b.host}/24", "dev", b.cable)
        a.wait_for_link("b")
        wait_for(lambda: a.call("ping", "--count", "1", "b").returncode == 0)


if __name__ == "__main__":
    if os.geteuid():
        print("needs root: makes network namespaces")
        sys.exit(77)
    unittest.main()
