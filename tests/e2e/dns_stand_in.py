"""A name server over UDP with the SRV and A records that a test sets (RFC 1035, RFC 2782)."""

import socket
import struct
import threading

A, SRV, NO_SUCH_NAME, FAILURE = 1, 33, 3, 2


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


class NameServer:
    def __init__(self):
        self.services = {}  # name -> [(priority, weight, port, target)]
        self.hosts = {}  # name -> [address]
        self.fails = False
        self.asked = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                question, client = self.socket.recvfrom(4096)
                self.socket.sendto(self.answer(question), client)
            except (OSError, IndexError):  # the socket is closed
                return

    def answer(self, message):
        at, labels = 12, []
        while message[at]:
            labels.append(message[at + 1 : at + 1 + message[at]].decode())
            at += 1 + message[at]
        kind = struct.unpack_from("!H", message, at + 1)[0]
        name, question = ".".join(labels).lower(), message[12 : at + 5]
        self.asked += 1
        records = []
        if kind == SRV:
            records = [struct.pack("!HHH", *numbers) + encoded(target) for *numbers, target in self.services.get(name, [])]
        elif kind == A:
            records = [socket.inet_aton(address) for address in self.hosts.get(name, [])]
        code = FAILURE if self.fails else 0 if name in self.services or name in self.hosts else NO_SUCH_NAME
        if code:
            records = []
        head = message[:2] + struct.pack("!HHHHH", 0x8580 | code, 1, len(records), 0, 0)
        return head + question + b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data for data in records)

    def close(self):
        self.socket.close()
