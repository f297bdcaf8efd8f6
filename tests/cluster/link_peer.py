# SPDX-License-Identifier: Apache-2.0
"""One end of proto/link.h and link.proto in Python: right, or as wrong as a test wants it."""
import hashlib
import hmac
import os
import socket
import struct

CONNECTOR = b"hccld link: I have connected\0"
ACCEPTOR = b"hccld link: I have accepted\0"
GREETING_BYTES, PROOF_BYTES, FRAME_MAX = 48, 32, 65536
UNKNOWN, STOPPING, DUPLICATE, SELF, PROTOCOL, REPLACED = range(6)
HELLO, WELCOME, BYE, BEAT, ANSWER = range(10, 15)


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value) if value else b""


def block(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def streams(own, met=0):
    return fixed(1, own) + fixed(2, met)


def hello(node, name="fake", own=0, met=0, port=0, addresses=(), version="0.0.0"):
    return (fixed(1, node) + block(2, name.encode()) + block(3, version.encode()) + number(6, port) +
            (block(9, streams(own, met)) if own else b"") + b"".join(block(10, a.encode()) for a in addresses))


def frame(kind, body=b"", numbered=0, received=0):
    return number(1, numbered) + number(2, received) + block(kind, body)


def fields(data):
    """Of a message: the last value of each field."""
    found, at = {}, 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value
    while at < len(data):
        tag = take()
        if tag & 7 == 0:
            found[tag >> 3] = take()
        elif tag & 7 == 1:
            found[tag >> 3] = struct.unpack_from("<Q", data, at)[0]
            at += 8
        else:
            size = take()
            found[tag >> 3] = data[at:at + size]
            at += size
    return found


class Peer:
    def __init__(self, connection, key, is_connector, versions=(1, 1), timeout=30):
        self.socket, self.key, self.is_connector = connection, key, is_connector
        self.socket.settimeout(timeout)
        self.greeting = struct.pack(">8sHHI", b"hccldlnk", *versions, 0) + os.urandom(32)
        self.theirs = None

    def close(self):
        self.socket.close()

    def receive(self, size):
        """Fewer bytes: it has closed."""
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionError:
                more = b""
            if not more:
                break
            data += more
        return data

    def proof(self, label):
        first, second = (self.greeting, self.theirs) if self.is_connector else (self.theirs, self.greeting)
        return hmac.new(self.key, label + first + second, hashlib.sha256).digest()

    def prove(self):
        """The whole handshake. False: it has closed, or its proof is wrong."""
        if self.is_connector:
            self.socket.sendall(self.greeting)
        self.theirs = self.receive(GREETING_BYTES)
        if len(self.theirs) < GREETING_BYTES:
            return False
        if self.is_connector:
            self.socket.sendall(self.proof(CONNECTOR))
            return self.receive(PROOF_BYTES) == self.proof(ACCEPTOR)
        self.socket.sendall(self.greeting)
        if self.receive(PROOF_BYTES) != self.proof(CONNECTOR):
            return False
        self.socket.sendall(self.proof(ACCEPTOR))
        return True

    def send(self, data):
        self.socket.sendall(struct.pack(">I", len(data)) + data)

    def next(self):
        """(kind, fields of the body, fields of the frame) of what comes next; (None, {}, {}): it has closed."""
        head = self.receive(4)
        if len(head) < 4:
            return None, {}, {}
        data = self.receive(struct.unpack(">I", head)[0])
        outer = fields(data)
        for kind in range(HELLO, ANSWER + 1):
            if kind in outer:
                return kind, fields(outer[kind]), outer
        return 0, {}, outer

    def next_of(self, *kinds):
        """The next of these, or that it has closed; others are left out."""
        while True:
            got = self.next()
            if got[0] is None or got[0] in kinds:
                return got

    def is_closed(self):
        """Reads all that comes until it closes."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True


def connect(address, key, **more):
    return Peer(socket.create_connection(address, timeout=30), key, True, **more)


class Listener:
    def __init__(self, address, key):
        self.key, self.peers = key, []
        self.socket = socket.create_server((address, 0))
        self.socket.settimeout(30)
        self.port = self.socket.getsockname()[1]

    def accept(self, **more):
        self.peers.append(Peer(self.socket.accept()[0], self.key, False, **more))
        return self.peers[-1]

    def close(self):
        for peer in self.peers:
            peer.close()
        self.socket.close()
