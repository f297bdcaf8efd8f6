#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dials: silence, pace, nodes that change or have several addresses. test_dials.py BUILD_DIR [TEST...]"""
import signal
import time
import unittest

import link_peer
from link_peer import BYE, HELLO, PROTOCOL, WELCOME, frame, hello
from nodes import KEY, NETWORK, Case, free_port, wait_for
from test_foreign import NODE, OWN, Foreign

WELCOMED = frame(WELCOME, link_peer.block(1, link_peer.streams(OWN)))


class Names(Case):
    def test_name_means_the_daemon_that_is_there(self):
        """After another daemon has been started at its address, not the link that was given up."""
        a, b = self.pair()
        before = a.link("b")["node"]
        b.end(signal.SIGKILL)
        a.wait_for_link("b", "lost")
        b.start()
        wait_for(lambda: [link for link in a.links() if link["state"] == "up" and link["node"] != before], a.links)
        for name in b.address, b.host, "b":
            result = a.call("ping", "--count", "1", name)
            self.assertEqual(result.returncode, 0, (name, result.stderr))


class Dials(Foreign):
    def setUp(self):
        super().setUp()
        self.listener = link_peer.Listener(NETWORK + ".99", KEY)
        self.addCleanup(self.listener.close)
        self.address = f"{NETWORK}.99:{self.listener.port}"

    def accept(self, *sent):
        peer = self.listener.accept()
        self.assertTrue(peer.prove())
        for data in sent:
            peer.send(data)
        return peer

    def test_silence_after_the_proof(self):
        """The other machine dies between its proof and its Hello: the connection is not waited for for ever."""
        self.start(peers=[self.address])
        self.assertTrue(self.accept().is_closed())

    def test_silence_after_its_hello(self):
        self.start(peers=[self.address])
        peer = self.accept(frame(HELLO, hello(NODE)))
        self.assertEqual(peer.next()[0], HELLO)
        self.assertEqual(peer.next()[0], None)

    def test_silence_does_not_keep_the_other_side_out(self):
        """C2 with a higher id that is silent on one connection, and asks for the link on another, later."""
        node = self.start(peers=[self.address])
        self.accept(frame(HELLO, hello((1 << 64) - 1)))
        wait_for(lambda: node.links())
        time.sleep(8)
        self.linked(node=(1 << 64) - 1)
        node.wait_for_link("fake")

    def test_silence_of_who_connects(self):
        """It has proved who it is, and says no Hello."""
        self.start()
        peer = self.proved()
        self.assertTrue(peer.is_closed())

    def test_pace_of_attempts(self):
        """A link that is lost whenever it is up is tried more and more slowly, and its lines in the log have a limit."""
        node = self.start(peers=[self.address])
        begin, count = time.monotonic(), 0
        while time.monotonic() - begin < 3:
            self.accept(frame(HELLO, hello(NODE)), WELCOMED).close()
            count += 1
        lines = len(node.text().splitlines())
        self.assertLess(count, 60, f"{count} connections in 3 s, {lines} lines in the log")

    def test_dial_after_a_contradiction(self):
        """The other side has connected again and contradicts itself: its address is tried on."""
        node = self.start(peers=[self.address])
        peer = self.accept(frame(HELLO, hello(NODE)), WELCOMED)
        node.wait_for_link("fake")
        kind, body, _ = peer.next_of(HELLO)
        own = link_peer.fields(body[9])[1]
        liar = self.linked(own=OWN, met=own, received=5)
        self.assertEqual(liar.next_of(BYE)[1].get(1), PROTOCOL)
        self.assertEqual((kind, liar.is_closed()), (HELLO, True))
        self.assertEqual(node.link("fake")["state"], "lost")
        self.listener.socket.settimeout(15)
        self.accept()


class Addresses(Case):
    def test_second_address_of_a_node(self):
        """Both are named; the one that the link was made by is gone, the other is good."""
        a, b = self.node("a"), self.node("b")
        second = f"{NETWORK}.200"
        second = f"{second}:{free_port(second)}"
        b.start(listen=f"{b.address} {second}", keeper="--keeper")
        a.start([b.address, second], listen="none")
        a.wait_for_link("b")
        time.sleep(2)  # both attempts are over
        address = a.link("b")["address"]
        other = second if address == b.address else b.address
        b.end()
        b.start(listen=other)
        wait_for(lambda: [link for link in a.links() if link["state"] == "up"], lambda: f"{a.links()}\n{a.text()}", patience=20)


if __name__ == "__main__":
    unittest.main()
