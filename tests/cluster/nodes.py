# SPDX-License-Identifier: Apache-2.0
"""Real daemons, each a node with an address of its own below 127.0.0.0/8. argv[1] is the folder of the build."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
HCCLCTL = str(BUILD / "hcclctl" / "hcclctl")
HCCLD = str(BUILD / "daemon" / "hccld")
PATIENCE_S = 30 * int(os.environ.get("TEST_TIMEOUT_SCALE", "1"))
KEY = b"a key for tests, and for nothing else"
# no other test that runs at the same time has it
NETWORK = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"


def wait_for(what, says="", patience=PATIENCE_S):
    """Its first true answer."""
    end = time.monotonic() + patience
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not in {patience} s: {says() if callable(says) else says}")
        time.sleep(0.02)


def free_port(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class Node:
    def __init__(self, directory, name, host):
        self.directory, self.name, self.host = directory, name, host
        self.port = free_port(host)
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.socket, self.log, self.key = directory / f"{name}.s", directory / f"{name}.log", directory / f"{name}.key"
        self.key.write_bytes(KEY)
        self.key.chmod(0o600)
        self.process, self.was_ended = None, False

    def program(self, words):
        """How it is started."""
        return words

    def environment(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HCCL")}
        for name in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "XDG_RUNTIME_DIR", "JOURNAL_STREAM"):
            env.pop(name, None)
        return env | {"HCCLD_SOCKET": str(self.socket)}

    def start(self, peers=(), keeper="--no-keeper", keepalive="300ms", peer_timeout="60s", listen=None, more=()):
        """Until it is ready."""
        ready, daemon_ready = os.pipe()
        peers = " ".join(peer.address if isinstance(peer, Node) else peer for peer in peers) or "none"
        self.was_ended = False
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.program(
                [HCCLD, "--config", os.devnull, "--device-memory", "64M", keeper, "--ready-fd", str(daemon_ready), "--listen",
                 listen or self.address, "--peers", peers, "--key-file", str(self.key), "--node-name", self.name, "--keepalive",
                 keepalive, "--peer-timeout", peer_timeout, *more]),
                pass_fds=[daemon_ready], stderr=log, env=self.environment())
        os.close(daemon_ready)
        said = os.read(ready, 2)
        os.close(ready)
        if said != b"1\n":
            raise AssertionError(self.log.read_text())

    def kill(self, number):
        os.kill(self.process.pid, number)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.kill(signal.SIGCONT)
            self.kill(number)
            self.was_ended = True
        return self.process.wait(PATIENCE_S)

    def call(self, *arguments):
        return subprocess.run([HCCLCTL, *arguments], env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S * 2, check=False)

    def links(self):
        result = self.call("links", "--json")
        if result.returncode:
            raise AssertionError(result.stderr)
        return json.loads(result.stdout)["links"]

    def link(self, name):
        found = [link for link in self.links() if link["name"] == name]
        return found[0] if found else {"state": "none"}

    def wait_for_link(self, name, state="up", **fields):
        """And that these fields are so."""
        def is_there():
            link = self.link(name)
            return link["state"] == state and all(link[key] == value for key, value in fields.items()) and link
        return wait_for(is_there, lambda: f"link to {name} {state} {fields}: {self.links()}\n{self.text()}")

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for_log(self, text, count=1):
        wait_for(lambda: self.text().count(text) >= count, lambda: f"no '{text}' in:\n{self.text()}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def inodes(self):
        """Of its sockets."""
        found = set()
        for name in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{self.process.pid}/fd/{name}")
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
        return found


def established():
    """(local, remote, inode) of all TCP connections of this machine."""
    found = []
    for path in "/proc/net/tcp", "/proc/net/tcp6":
        with open(path, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                parts = line.split()
                if parts[3] == "01":
                    found.append((parts[1], parts[2], int(parts[9])))
    return found


def connections(nodes):
    """How many there are, for each pair of names."""
    sockets = established()
    owner = {inode: node.name for node in nodes for inode in node.inodes()}
    by_ends = {(local, remote): owner[inode] for local, remote, inode in sockets if inode in owner}
    found = {}
    for (local, remote), name in by_ends.items():
        other = by_ends.get((remote, local))
        if other and local < remote:
            pair = tuple(sorted((name, other)))
            found[pair] = found.get(pair, 0) + 1
    return found


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="test-links-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.count = 0

    def node(self, name, host=None):
        self.count += 1
        return self.keep(Node(self.directory, name, host or f"{NETWORK}.{self.count}"))

    def keep(self, node):
        self.addCleanup(self.finish, node)
        return node

    def finish(self, node):
        """It has lived as long as the test wanted, and ends as it should."""
        if not node.process:
            return
        if node.process.poll() is None:
            self.assertEqual(node.end(), 0, node.text())
        self.assertTrue(node.was_ended, node.text())
        self.assertNotRegex(node.text(), "Sanitizer|runtime error:|Assertion")

    def pair(self, **options):
        """Two with a link, of which the first has connected."""
        a, b = self.node("a"), self.node("b")
        b.start(**options)
        a.start([b], **options)
        a.wait_for_link("b")
        b.wait_for_link("a")
        return a, b
