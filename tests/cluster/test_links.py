#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links between real daemons, and what hcclctl says of them. test_links.py BUILD_DIR [TEST...]"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from nodes import Case, HCCLD, PATIENCE_S, connections, wait_for

FIELDS = {"node", "name", "state", "age_ms", "address", "transport", "round_trip_ns", "bytes_out", "bytes_in", "connections", "attempts", "version",
          "incarnation", "devices", "soc_name", "why"}


class Mesh(Case):
    def test_one_connection_for_each_pair(self):
        """Whoever knows whom, and all at once."""
        nodes = [self.node(name) for name in "abc"]
        for node in nodes:
            node.start([other for other in nodes if other is not node])
        for node in nodes:
            for other in nodes:
                if other is not node:
                    node.wait_for_link(other.name)
        expected = {("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1}
        wait_for(lambda: connections(nodes) == expected, lambda: connections(nodes))
        for node in nodes:
            wait_for(lambda: len(node.links()) == 2, node.links)  # those that were one too many hang up
        # and so it stays
        counts = [sorted((link["name"], link["connections"]) for link in node.links()) for node in nodes]
        time.sleep(2)
        self.assertEqual(connections(nodes), expected)
        self.assertEqual([sorted((link["name"], link["connections"]) for link in node.links()) for node in nodes], counts)
        for node in nodes:
            self.assertEqual({link["state"] for link in node.links()}, {"up"})
            self.assertEqual(len(node.links()), 2)

    def test_many_begin_at_the_same_time(self):
        """Both connect at the same time, again and again: one is left, and both know which."""
        a, b = self.node("a"), self.node("b")
        for _ in range(5):
            a.start([b])
            b.start([a])
            a.wait_for_link("b")
            b.wait_for_link("a")
            wait_for(lambda: connections([a, b]) == {("a", "b"): 1}, lambda: connections([a, b]))
            a.end()
            b.end()

    def test_fields(self):
        a, b = self.node("a"), self.node("b")
        b.start(more=["--devices", "3", "--soc-name", "OtherChip"])
        a.start([b])
        link = a.wait_for_link("b")
        back = b.wait_for_link("a")
        self.assertEqual(set(link), FIELDS)
        self.assertRegex(link["node"], "^[0-9a-f]{16}$")
        self.assertNotEqual(link["node"], back["node"])
        self.assertEqual((link["address"], link["transport"], link["connections"], link["why"]), (b.address, "tcp", 1, ""))
        self.assertEqual((link["devices"], link["soc_name"]), (3, "OtherChip"))
        self.assertEqual(back["address"], a.address)
        version = json.loads(a.call("version", "--json").stdout)["daemon"]["version"]
        self.assertEqual(link["version"], version)
        self.assertGreaterEqual(link["attempts"], 1)
        # it is tried, and all bytes are counted
        wait_for(lambda: a.link("b")["round_trip_ns"] > 0)
        a.call("ping", "--count", "1", "--size", "30000", "b")
        wait_for(lambda: a.link("b")["bytes_out"] > 30000 and a.link("b")["bytes_in"] > 30000, a.links)
        wait_for(lambda: b.link("a")["bytes_out"] > 30000 and b.link("a")["bytes_in"] > 30000, b.links)
        self.assertGreater(a.link("b")["age_ms"], 0)
        table = a.call("links").stdout
        self.assertRegex(table, rf"(?m)^b +up +\S+( \S+)? +{re.escape(b.address)} +tcp ")

    def test_none(self):
        a = self.node("a")
        a.start()
        self.assertEqual(a.links(), [])
        self.assertIn("there is no link to another node", a.call("links").stdout + a.call("links").stderr)

    def test_nobody_there(self):
        a, b = self.node("a"), self.node("b")
        a.start([b])
        link = wait_for(lambda: [one for one in a.links() if one["why"]], a.links)[0]
        self.assertEqual((link["node"], link["name"], link["address"]), ("", "", b.address))
        self.assertIn(link["state"], ("waiting", "connecting"))
        self.assertIn("cannot connect: Connection refused", link["why"])
        # said once, tried more often
        wait_for(lambda: a.links()[0]["attempts"] >= 4, a.links)
        self.assertEqual(a.text().count("Connection refused"), 1, a.text())
        b.start()
        a.wait_for_link("b")

    def test_ipv6(self):
        a, b = self.node("a", "::1"), self.node("b", "::1")
        b.start()
        a.start([b])
        self.assertEqual(a.wait_for_link("b")["address"], b.address)
        self.assertEqual(b.wait_for_link("a")["address"], a.address)
        self.assertEqual(a.call("ping", "--count", "1", f"[::1]:{b.port}").returncode, 0)
        self.assertEqual(connections([a, b]), {("a", "b"): 1})

    def test_both_families(self):
        a, b = self.node("a"), self.node("b")
        b.start(listen=f"*:{b.port}")
        a.start([f"{b.host}:{b.port}", f"[::1]:{b.port}"])
        a.wait_for_link("b")
        b.wait_for_link("a")
        wait_for(lambda: len(a.links()) == 1, a.links)
        wait_for(lambda: connections([a, b]) == {("a", "b"): 1}, lambda: connections([a, b]))

    def test_itself(self):
        a, b = self.node("a"), self.node("b")
        b.start()
        a.start([a, b])
        a.wait_for_log("it is this node itself")
        a.wait_for_link("b")
        self.assertEqual(sorted(link["state"] for link in a.links()), ["up", "waiting"])
        self.assertEqual([link["why"] for link in a.links() if not link["name"]], ["it is this node itself"])
        wait_for(lambda: connections([a, b]) == {("a", "b"): 1}, lambda: connections([a, b]))
        self.assertEqual(a.text().count("itself"), 1, a.text())


class Ping(Case):
    def ping(self, node, *arguments):
        return node.call("ping", "--interval", "0", *arguments)

    def test_by_name_id_and_address(self):
        a, b = self.pair()
        for name in "b", a.link("b")["node"], b.address, b.host:
            result = self.ping(a, "--count", "2", name)
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.assertRegex(result.stdout, rf"^(0 bytes to node b \({re.escape(b.address)}\) and back: \d+\.\d{{3}} ms\n){{2}}"
                             r"2 asked, 2 answered, round trip [0-9.]+ / [0-9.]+ / [0-9.]+ ms \(least, mean, most\)\n$")
        # and of who has connected
        for name in "a", b.link("a")["node"], a.address:
            self.assertEqual(self.ping(b, "--count", "1", name).returncode, 0, name)

    def test_sizes(self):
        a, _ = self.pair()
        for size in 0, 1, 4096, 32767, 32768:
            result = self.ping(a, "--count", "3", "--size", str(size), "b")
            self.assertEqual((result.returncode, result.stdout.count(f"{size} bytes to node b")), (0, 3), result.stdout + result.stderr)
        for arguments in (["--size", "32769"], ["--size", "-1"], ["--size", "x"], ["--count", "0"], ["--count", ""], ["--interval", "-1"]):
            result = a.call("ping", *arguments, "b")
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("not a number from", result.stderr)

    def test_json(self):
        a, b = self.pair()
        result = self.ping(a, "--json", "--count", "4", "--size", "100", "b")
        said = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0)
        self.assertEqual((said["node"], said["bytes"], said["asked"], said["answered"]), ("b", 100, 4, 4))
        self.assertTrue(0 < said["least_ns"] <= said["mean_ns"] <= said["most_ns"], said)
        b.end()
        result = self.ping(a, "--json", "--count", "4", "b")
        said = json.loads(result.stdout)
        self.assertEqual((result.returncode, said["asked"], said["answered"]), (1, 4, 0))

    def test_quiet(self):
        a, _ = self.pair()
        for arguments, status in ((["b"], 0), (["nobody"], 1)):
            result = self.ping(a, "--quiet", "--count", "1", *arguments)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (status, "", ""))

    def test_wrong_node(self):
        a, b = self.pair()
        for name in "nobody", "0", "0123456789abcdef", "127.0.0.1:1", "B", "a", b.host + ":1":
            result = self.ping(a, name)
            self.assertEqual((result.returncode, result.stdout), (1, ""), name)
            self.assertIn(f"there is no link to a node {name}; hcclctl links shows those there are", result.stderr)

    def test_wrong_usage(self):
        a, _ = self.pair()
        for arguments in (["a", "b"], ["--local", "b"], ["--count", "3"], ["--size", "3"], ["--interval", "3"]):
            result = a.call("ping", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
        self.assertEqual(a.call("ping").returncode, 0)
        self.assertEqual(a.call("ping", "--local").returncode, 0)

    def test_no_daemon(self):
        a = self.node("a")
        self.assertEqual(a.call("ping", "b").returncode, 2)
        self.assertEqual(a.call("ping", "--quiet", "b").returncode, 2)

    def test_node_is_away(self):
        a, b = self.pair()
        b.end()
        a.wait_for_link("b", "lost")
        result = self.ping(a, "--count", "3", "b")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the link to node b is lost: ", result.stderr)
        self.assertIn("3 asked, 0 answered\n", result.stdout)

    def test_node_does_not_answer(self):
        a, b = self.pair(keepalive="5s")
        b.kill(signal.SIGSTOP)
        begin = time.monotonic()
        result = self.ping(a, "--timeout", "500", "--count", "1", "b")
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        b.kill(signal.SIGCONT)
        self.assertEqual(self.ping(a, "--count", "1", "b").returncode, 0)

    def test_lost_while_it_waits(self):
        """It is told at once, not when its time is over."""
        a, b = self.pair(keepalive="300ms")
        b.kill(signal.SIGSTOP)
        result = self.ping(a, "--timeout", str(PATIENCE_S * 1000), "--count", "1", "b")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertNotEqual(result.stderr, "")
        self.assertEqual(a.link("b")["state"], "lost")


class Ends(Case):
    def test_killed_and_started(self):
        """Its id is another one then: nothing was kept. The old one is given up, as what was under way there is lost."""
        a, b = self.pair()
        before = a.link("b")
        b.end(signal.SIGKILL)
        a.wait_for_link("b", "lost")
        b.start()
        wait_for(lambda: [link for link in a.links() if link["state"] == "up" and link["node"] != before["node"]], a.links)
        old = [link for link in a.links() if link["node"] == before["node"]]
        self.assertEqual([link["state"] for link in old], ["failed"])
        self.assertIn("another daemon has been started at its address", old[0]["why"])
        b.wait_for_link("a")
        wait_for(lambda: connections([a, b]) == {("a", "b"): 1}, lambda: connections([a, b]))

    @staticmethod
    def ping_status(node, name):
        return node.call("ping", "--count", "1", name).returncode

    def test_stopped(self):
        a, b = self.pair()
        self.assertEqual(b.end(), 0)
        a.wait_for_log("connection lost: hccld is being stopped there")
        a.wait_for_link("b", "lost")
        a2, b2 = self.node("a2"), self.node("b2")
        b2.start()
        a2.start([b2])
        b2.wait_for_link("a2")
        self.assertEqual(a2.end(), 0)
        b2.wait_for_log("connection lost: hccld is being stopped there")

    def stop_and_go_on(self, peer_timeout, says):
        a, b = self.pair(keepalive="400ms", peer_timeout=peer_timeout)
        b.kill(signal.SIGSTOP)
        begin = time.monotonic()
        a.wait_for_log("nothing was heard of it")
        self.assertGreater(time.monotonic() - begin, 3 * 0.4)
        if says == "begins again":
            a.wait_for_link("b", "failed")
            self.assertIn("given up", a.text())
        else:
            self.assertEqual(a.wait_for_link("b", "lost")["state"], "lost")
        b.kill(signal.SIGCONT)
        a.wait_for_link("b")
        b.wait_for_link("a")
        a.wait_for_log(f"up, {says}")
        b.wait_for_log(f"up, {says}")
        wait_for(lambda: connections([a, b]) == {("a", "b"): 1}, lambda: connections([a, b]))
        self.assertEqual(self.ping_status(a, "b"), 0)
        self.assertGreaterEqual(a.link("b")["connections"], 2)

    def test_silence_is_a_loss(self):
        self.stop_and_go_on("60s", "goes on")

    def test_long_silence_is_a_failure(self):
        self.stop_and_go_on("1s", "begins again")

    def test_failed_after_the_timeout(self):
        a, b = self.pair(keepalive="100ms", peer_timeout="2s")
        b.end(signal.SIGKILL)
        a.wait_for_link("b", "lost")
        begin = time.monotonic()
        a.wait_for_link("b", "failed")
        self.assertGreater(time.monotonic() - begin, 1)
        result = a.call("ping", "--count", "1", "b")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the link to node b is failed", result.stderr)

    def test_connection_is_cut(self):
        """By somebody on the way, who is the test: a forwarder."""
        a, b = self.node("a"), self.node("b")
        b.start(listen="none")
        a.start()
        b.end()
        with Forwarder(a) as forwarder:
            b.start([forwarder.address], listen="none")
            a.wait_for_link("b")
            for _ in range(3):
                before = a.link("b")["connections"]
                forwarder.cut()
                wait_for(lambda: a.link("b")["connections"] > before and a.link("b")["state"] == "up", a.links)
            a.wait_for_log("up, goes on", 3)
            b.wait_for_log("up, goes on", 3)
            self.assertNotIn("begins again", a.text() + b.text())


class Forwarder:
    """Between two nodes."""

    def __init__(self, node):
        self.node, self.pairs = node, []
        self.socket = socket.create_server((node.host, 0))
        self.address = f"{node.host}:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.cut()

    def serve(self):
        while True:
            try:
                near = self.socket.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection((self.node.host, self.node.port))
            except OSError:
                near.close()
                continue
            self.pairs.append((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass

    def cut(self):
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                one.close()


class Keeper(Case):
    def worker(self, node):
        children = pathlib.Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def test_worker_is_killed(self):
        a, b = self.node("a"), self.node("b")
        b.start(keeper="--keeper")
        a.start([b])
        for _ in range(2):  # after the third in a row the keeper begins anew
            before = a.wait_for_link("b")
            worker = wait_for(lambda: self.worker(b))
            os.kill(worker, signal.SIGKILL)
            after = a.wait_for_link("b", incarnation=before["incarnation"] + 1)
            self.assertEqual(after["node"], before["node"])
            self.assertGreater(after["connections"], before["connections"])
            self.assertEqual(len(a.links()), 1, a.links())
            b.wait_for_link("a")
            self.assertEqual(a.call("ping", "--count", "1", "b").returncode, 0)
        self.assertEqual(a.text().count("begins again: what was under way is lost"), 2, a.text())


class Configuration(Case):
    def works_for_programs(self, node):
        self.assertEqual(node.call("status").returncode, 0)
        self.assertEqual(node.call("ping").returncode, 0)
        self.assertEqual(node.links(), [])

    def test_no_key(self):
        a, b = self.node("a"), self.node("b")
        a.key.unlink()
        a.start([b])
        self.assertIn(f"[links] key_file: {a.key}: No such file or directory; there are no links to other nodes", a.text())
        self.works_for_programs(a)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection((a.host, a.port))

    def test_no_key_and_none_is_needed(self):
        a = self.node("a")
        a.key.unlink()
        a.start(listen="none")
        self.assertNotIn("key", a.text())
        self.works_for_programs(a)

    def test_key_that_others_can_read(self):
        a, b = self.node("a"), self.node("b")
        a.key.chmod(0o644)
        a.start([b])
        self.assertIn(f"{a.key} can be read or written by others (mode 644): chmod 600", a.text())
        self.works_for_programs(a)

    def test_address_in_use(self):
        a, b = self.node("a"), self.node("b")
        with socket.create_server((a.host, a.port)):
            b.start()
            a.start([b])
            self.assertIn(f"[links] listen: {a.address}: Address already in use", a.text())
            self.assertEqual(a.call("status").returncode, 0)
            # the others are reached all the same
            a.wait_for_link("b")
            b.wait_for_link("a")

    def test_address_of_another_machine(self):
        a = self.node("a")
        a.start(listen=f"192.0.2.1:{a.port} {a.address}")
        self.assertIn("[links] listen: 192.0.2.1", a.text())
        self.assertIn("Cannot assign requested address", a.text())
        with socket.create_connection((a.host, a.port)):
            pass

    def test_wrong_addresses(self):
        a = self.node("a")
        for option in "--listen", "--peers":
            wrong = subprocess.run([HCCLD, "--config", os.devnull, option, "a:0"], env=a.environment(), capture_output=True, text=True,
                                   check=False, timeout=PATIENCE_S)
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("addresses such as 10.0.0.1", wrong.stderr)

    def test_another_key(self):
        a, b = self.node("a"), self.node("b")
        a.key.write_bytes(b"another key that is long enough")
        b.start()
        a.start([b])
        b.wait_for_log("it has another key")
        a.wait_for_log("the other end has refused to talk: it has another key, or is busy; its log says which")
        wait_for(lambda: a.links()[0]["attempts"] >= 4, a.links)
        self.assertIn("another key", a.links()[0]["why"])
        self.assertEqual(b.links(), [])
        self.assertEqual({link["name"] for link in a.links()}, {""})
        self.assertNotIn(": up", a.text() + b.text())
        # once for each address, not for each attempt
        self.assertEqual(a.text().count("refused to talk"), 1, a.text())


if __name__ == "__main__":
    unittest.main()
