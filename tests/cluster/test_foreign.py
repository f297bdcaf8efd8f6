#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon and connections that are no daemon's, or a wrong one's (link_peer.py). test_foreign.py BUILD_DIR [TEST...]"""
import os
import socket
import struct
import time
import unittest

import link_peer
from link_peer import (ANSWER, BEAT, BYE, DUPLICATE, HELLO, PROTOCOL, REPLACED, SELF, WELCOME, connect, fixed, frame, hello)
from nodes import KEY, NETWORK, PATIENCE_S, Case, wait_for

NODE, OWN = 0x1234, 0x5678
ARRIVAL_S = 5  # who connects has so long to say who it is


class Foreign(Case):
    def start(self, **options):
        node = self.node("real")
        node.start(**options)
        self.real = node
        return node

    def raw(self):
        connection = socket.create_connection((self.real.host, self.real.port), timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def connect(self, key=KEY, **more):
        peer = connect((self.real.host, self.real.port), key, **more)
        self.addCleanup(peer.close)
        return peer

    def proved(self, **more):
        """A peer that has proved that it knows the key, and has read the Hello."""
        peer = self.connect(**more)
        self.assertTrue(peer.prove())
        kind, body, outer = peer.next()
        self.assertEqual((kind, body[2], outer.get(1, 0)), (HELLO, b"real", 0))
        return peer

    def linked(self, node=NODE, own=OWN, met=0, received=0, **more):
        peer = self.proved()
        peer.send(frame(HELLO, hello(node, own=own, met=met, **more), received=received))
        kind, body, outer = peer.next()
        self.assertEqual(kind, WELCOME)
        peer.streams = link_peer.fields(body[1])
        peer.received = outer.get(2, 0)
        return peer

    def serves(self):
        """A right peer still gets a link."""
        peer = self.linked(node=0x9999, own=1, name="last")
        self.real.wait_for_link("last")
        self.real.call("status")
        peer.close()


class Handshake(Foreign):
    def test_right_one(self):
        """That the peer of this test is right: else all others mean nothing."""
        node = self.start()
        peer = self.linked(name="fake", version="1.2.3")
        link = node.wait_for_link("fake", node=f"{NODE:016x}", version="1.2.3")
        self.assertEqual(link["connections"], 1)
        peer.send(frame(BEAT, fixed(1, 77) + link_peer.block(2, b"filling")))
        _, body, _ = peer.next_of(ANSWER)
        self.assertEqual((body[1], body[2]), (77, b"filling"))
        # streams: new ones here, and it has met ours
        self.assertNotEqual(peer.streams[1], 0)
        peer.close()
        node.wait_for_link("fake", "lost")
        again = self.linked(met=peer.streams[1])
        self.assertEqual((again.streams[1], again.streams[2]), (peer.streams[1], OWN))
        node.wait_for_log("up, goes on")
        third = self.linked(own=OWN + 1, met=peer.streams[1])
        node.wait_for_log("up, begins again: what was under way is lost")
        self.assertEqual(again.next_of(BYE)[1].get(1), REPLACED)
        self.assertTrue(again.is_closed())
        third.close()

    def test_wrong_key(self):
        node = self.start()
        peer = self.connect(b"not the key of this node")
        self.assertFalse(peer.prove())
        self.assertTrue(peer.is_closed())
        node.wait_for_log("connection from 127.0.0.1:")
        node.wait_for_log("it has another key")
        self.assertEqual(node.links(), [])
        self.serves()

    def test_other_versions(self):
        node = self.start()
        for versions, which in (((2, 9), "own"), ((0, 0), "other"), ((256, 257), "own")):
            peer = self.connect(versions=versions)
            peer.socket.sendall(peer.greeting)
            theirs = peer.receive(link_peer.GREETING_BYTES)
            self.assertEqual(struct.unpack_from(">8sHH", theirs), (b"hccldlnk", 1, 1))
            self.assertTrue(peer.is_closed())
            node.wait_for_log(f"it speaks versions {versions[0]} to {versions[1]} of the protocol between daemons, this hccld 1 to 1: "
                              f"the {which} one is too old")
        for versions in (0, 1), (1, 65535):
            peer = self.connect(versions=versions)
            self.assertTrue(peer.prove(), versions)
            peer.close()
        self.assertEqual(node.links(), [])
        self.serves()

    def test_garbage(self):
        node = self.start()
        garbage = [b"GET / HTTP/1.1\r\nHost: somebody\r\nAccept: */*\r\nUser-Agent: x\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n" + b"\0" * 40, b"\0" * 48, b"\xff" * 5000,
                   b"\x16\x03\x01\x02\x00\x01\x00" + b"a" * 512, os.urandom(100000)]
        for data in garbage:
            connection = self.raw()
            try:
                connection.sendall(data)
            except ConnectionError:
                pass
            peer = link_peer.Peer(connection, KEY, True)
            self.assertEqual(peer.receive(1), b"", data[:20])
        node.wait_for_log("what is there is no hccld", len(garbage))
        self.serves()

    def test_half_a_greeting(self):
        node = self.start()
        peers = []
        for data in b"", b"hccldlnk", b"h" * 47:
            peers.append(link_peer.Peer(self.raw(), KEY, True))
            peers[-1].socket.sendall(data)
        whole = self.connect()
        whole.socket.sendall(whole.greeting)
        whole.receive(link_peer.GREETING_BYTES)
        whole.socket.sendall(b"half a proof")
        begin = time.monotonic()
        for peer in peers + [whole]:
            self.assertTrue(peer.is_closed())
            self.assertGreater(time.monotonic() - begin, ARRIVAL_S - 0.5)
        self.assertLess(time.monotonic() - begin, ARRIVAL_S + PATIENCE_S)
        node.wait_for_log("it has not said in time who it is", 4)
        self.serves()

    def test_byte_by_byte(self):
        """It has so long for all of it, not for each byte."""
        node = self.start()
        peer = self.connect()
        begin = time.monotonic()
        with self.assertRaises(ConnectionError):
            while time.monotonic() - begin < ARRIVAL_S + PATIENCE_S:
                peer.socket.sendall(b"h" if time.monotonic() - begin < ARRIVAL_S - 1 else b"")
                time.sleep(0.3)
                if not self.is_open(peer.socket):
                    raise ConnectionError
        self.assertGreater(time.monotonic() - begin, ARRIVAL_S - 0.5)
        self.serves()

    @staticmethod
    def is_open(connection):
        try:
            return connection.recv(1, socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True

    def test_reflection(self):
        """Each byte comes back, to who has connected and to who has accepted."""
        listener = link_peer.Listener(NETWORK + ".99", KEY)
        self.addCleanup(listener.close)
        node = self.start(peers=[f"{NETWORK}.99:{listener.port}"])
        echo = listener.accept()
        while True:
            try:
                data = echo.socket.recv(4096)
                if not data:
                    break
                echo.socket.sendall(data)
            except ConnectionError:
                break
        node.wait_for_log("it has another key")
        self.assertNotIn(": up", node.text())


class Frames(Foreign):
    def test_first_frames(self):
        self.start()
        wrong = [b"\xff" * 20, b"\x08", b"\x52\x7f\x01", frame(WELCOME, link_peer.block(1, link_peer.streams(1))), frame(BEAT, fixed(1, 1)),
                 frame(ANSWER, fixed(1, 1)), frame(HELLO, hello(0, own=OWN)), frame(HELLO, hello(NODE)), frame(HELLO, hello(NODE, own=0)),
                 frame(HELLO), link_peer.number(1, 1), os.urandom(60000), b"\x00"]
        for number, data in enumerate(wrong, 1):
            peer = self.proved()
            peer.send(data)
            self.assertTrue(peer.is_closed(), data[:40])
            self.real.wait_for_log("it has sent what does not belong there", number)
            time.sleep(0.2)  # ten lines in a second are written
        self.assertEqual(self.real.links(), [])
        self.serves()

    def test_sizes(self):
        self.start()
        for number, size in enumerate((0, 65537, 1 << 24, 0x7fffffff, 0x80000000, 0xffffffff), 1):
            peer = self.proved()
            peer.socket.sendall(struct.pack(">I", size) + b"abcd")
            self.assertTrue(peer.is_closed(), size)
            self.real.wait_for_log("it has sent a frame of no possible size", number)
        self.serves()

    def test_frames_of_a_link(self):
        """A link is lost by what is wrong, and the next connection is good again."""
        self.start()
        wrong = [frame(WELCOME, link_peer.block(1, link_peer.streams(OWN))), frame(HELLO, hello(NODE, own=OWN)), b"\xff\xff\xff", frame(BEAT, received=1),
                 frame(BEAT, received=(1 << 64) - 1), link_peer.number(1, 2), link_peer.number(1, (1 << 64) - 1)]
        for number, data in enumerate(wrong, 1):
            peer = self.linked(own=OWN + number)
            self.real.wait_for_link("fake")
            peer.send(data)
            self.assertTrue(peer.is_closed(), data)
            self.real.wait_for_log("connection lost: it has sent what does not belong there", number)
            self.assertEqual(self.real.link("fake")["state"], "lost")
        self.serves()

    def test_numbered_frames(self):
        """They are taken in order, once, and it is said how far."""
        self.start()
        peer = self.linked()
        for number in 1, 2, 2, 1, 3:
            peer.send(link_peer.number(1, number))
        peer.send(frame(BEAT, fixed(1, 5)))
        self.assertEqual(peer.next_of(ANSWER)[2].get(2), 3)
        met = peer.streams[1]
        peer.close()
        again = self.linked(met=met)
        self.assertEqual(again.received, 3)
        again.send(link_peer.number(1, 3))
        again.send(link_peer.number(1, 4))
        again.send(frame(BEAT, fixed(1, 6)))
        self.assertEqual(again.next_of(ANSWER)[2].get(2), 4)

    def test_resume_beyond_the_last(self):
        self.start()
        peer = self.linked()
        met = peer.streams[1]
        peer.close()
        self.real.wait_for_link("fake", "lost")
        liar = self.linked(met=met, received=1)
        kind, body, _ = liar.next_of(BYE)
        self.assertEqual((kind, body.get(1)), (BYE, PROTOCOL))
        self.assertIn(b"contradicts each other", body[2])
        self.assertTrue(liar.is_closed())
        # nothing goes on from there
        again = self.linked(met=met)
        self.assertNotEqual(again.streams[1], met)
        self.real.wait_for_link("fake")

    def test_its_own_id(self):
        node = self.start()
        peer = self.connect()
        self.assertTrue(peer.prove())
        own = peer.next_of(HELLO)[1][1]
        peer = self.proved()
        peer.send(frame(HELLO, hello(own, own=OWN)))
        kind, body, _ = peer.next_of(BYE)
        self.assertEqual((kind, body.get(1)), (BYE, SELF))
        self.assertTrue(peer.is_closed())
        self.assertEqual(node.links(), [])

    def test_texts_of_others(self):
        """Names are shown to people: nothing in them does anything."""
        node = self.start()
        name = "\x1b[2J\n\rx" + "n" * 500
        self.linked(name=name, version="\x07" * 100, addresses=["\x1b[31m"], port=70000)
        link = wait_for(node.links)[0]
        self.assertLessEqual(len(link["name"]), 64)
        self.assertNotRegex(link["name"] + link["version"] + link["address"], "[\x00-\x1f]")
        self.assertNotIn("\x1b", node.text())
        self.assertNotIn("\x1b", node.call("links").stdout)

    def test_answers_that_nobody_takes(self):
        """It asks for much and reads nothing: what waits for it has a limit."""
        node = self.start(keepalive="60s")
        peer = self.linked()
        beat = frame(BEAT, fixed(1, 1) + link_peer.block(2, b"x" * 60000))
        sent = 0
        peer.socket.settimeout(2)
        try:
            while sent < 200 << 20:
                peer.send(beat)
                sent += len(beat)
        except (ConnectionError, TimeoutError):
            pass
        node.wait_for_link("fake", "lost")
        self.assertLess(sent, 100 << 20)
        self.serves()


class Listening(Foreign):
    """The daemon connects to what is no daemon."""

    def setUp(self):
        super().setUp()
        self.listener = link_peer.Listener(NETWORK + ".99", KEY)
        self.addCleanup(self.listener.close)
        self.address = f"{NETWORK}.99:{self.listener.port}"

    def test_other_versions(self):
        node = self.start(peers=[self.address])
        for versions, which in (((2, 9), "own"), ((0, 0), "other")):
            peer = self.listener.accept(versions=versions)
            self.assertEqual(len(peer.receive(link_peer.GREETING_BYTES)), link_peer.GREETING_BYTES)
            peer.socket.sendall(peer.greeting)
            # no proof for it
            self.assertEqual(peer.receive(1), b"")
            says = (f"link to {self.address}: it speaks versions {versions[0]} to {versions[1]} of the protocol between daemons, "
                    f"this hccld 1 to 1: the {which} one is too old; tried again")
            node.wait_for_log(says)
            self.assertIn("too old", node.links()[0]["why"])

    def test_garbage(self):
        node = self.start(peers=[self.address])
        peer = self.listener.accept()
        peer.socket.sendall(b"220 mail.example.org ESMTP; who are you? tell me at once\r\n")
        self.assertTrue(peer.is_closed())
        node.wait_for_log(f"link to {self.address}: what is there is no hccld; tried again")

    def test_silence(self):
        node = self.start(peers=[self.address])
        peer = self.listener.accept()
        begin = time.monotonic()
        self.assertTrue(peer.is_closed())
        self.assertGreater(time.monotonic() - begin, ARRIVAL_S - 0.5)
        node.wait_for_log(f"link to {self.address}: it has not said in time who it is; tried again")
        self.listener.accept().close()

    def test_wrong_order(self):
        """Of what the other side says, each is refused: Welcome first, two Hellos, a beat between."""
        node = self.start(peers=[self.address])
        right = frame(HELLO, hello(NODE, own=0))
        welcome = frame(WELCOME, link_peer.block(1, link_peer.streams(OWN)))
        for wrong in ([welcome], [frame(HELLO, hello(0))], [right, right], [right, frame(BEAT)], [right, frame(WELCOME)],
                      [right, frame(WELCOME, link_peer.block(1, b""))], [frame(HELLO, hello(NODE), numbered=1)]):
            peer = self.listener.accept()
            self.assertTrue(peer.prove())
            for data in wrong:
                peer.send(data)
            self.assertTrue(peer.is_closed(), wrong)
            self.assertNotEqual(node.link("fake")["state"], "up")
        node.wait_for_log("it has sent what does not belong there")
        peer = self.listener.accept()
        self.assertTrue(peer.prove())
        peer.send(right)
        kind, body, _ = peer.next_of(HELLO)
        self.assertEqual((kind, body[2]), (HELLO, b"real"))
        self.assertNotEqual(link_peer.fields(body[9])[1], 0)
        peer.send(welcome)
        node.wait_for_link("fake")

    def test_it_hangs_up(self):
        """DUPLICATE without a link that has a connection: it is tried again, but not at once."""
        self.start(peers=[self.address])
        begin = time.monotonic()
        for _ in range(4):
            peer = self.listener.accept()
            self.assertTrue(peer.prove())
            peer.send(frame(BYE, link_peer.number(1, DUPLICATE)))
            self.assertTrue(peer.is_closed())
        self.assertGreater(time.monotonic() - begin, 1)


class Crowd(Foreign):
    def test_port_scan(self):
        node = self.start()
        node.links()
        before = wait_for(node.descriptors)
        lines = len(node.text().splitlines())
        begin = time.monotonic()
        for i in range(500):
            connection = socket.create_connection((node.host, node.port), timeout=PATIENCE_S)
            if i % 2:  # closed with a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            if i % 100 == 0:
                self.assertEqual(node.call("status").returncode, 0)
        self.serves()
        wait_for(lambda: node.descriptors() <= before, lambda: f"{node.descriptors()} descriptors, {before} before")
        seconds = time.monotonic() - begin
        more = len(node.text().splitlines()) - lines
        self.assertGreater(more, 0)
        # ten in a second, and what is left out is counted
        self.assertLess(more, 12 * (seconds + 2) + 10, node.text())

    def test_silent_ones_do_not_keep_others_out(self):
        node = self.start()
        node.links()
        before = node.descriptors()
        silent = [self.raw() for _ in range(200)]
        self.serves()
        self.assertLess(node.descriptors(), before + 100)
        self.assertIn("too many connect at once and do not say who they are", node.text())
        # a real one, that also connects again
        other = self.node("other")
        other.start([node])
        node.wait_for_link("other")
        other.wait_for_link("real")
        self.assertEqual(other.call("ping", "--count", "1", "real").returncode, 0)
        other.end()
        for connection in silent:
            connection.settimeout(PATIENCE_S)
            try:
                self.assertEqual(connection.recv(1), b"")
            except ConnectionError:
                pass
        wait_for(lambda: node.descriptors() <= before, lambda: f"{node.descriptors()} descriptors, {before} before")


if __name__ == "__main__":
    unittest.main()
