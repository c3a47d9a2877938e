"""A link between this host and a network namespace that delays and drops packets, for kernels without netem."""

import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time

from conftest import WORKER

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PACKET_BYTES = 65536


def open_tun(name):
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


class SlowLink:
    """Delays packets by `delay` seconds in each direction, and drops the share `loss` of them. Both may change at any
    time. Used in a `with` block."""

    def __init__(self, namespace, delay, loss):
        self.delay, self.loss, self.passed = delay, loss, 0
        here, there = f"slow{os.getpid()}a", f"slow{os.getpid()}b"
        self.ends = [open_tun(here), open_tun(there)]
        run = lambda *words: subprocess.run(["ip", *words], check=True)
        run("link", "set", there, "netns", namespace)
        self.address, self.done = f"10.214.{WORKER}.1", threading.Event()
        for at, name, address in (([], here, self.address), (["-n", namespace], there, f"10.214.{WORKER}.2")):
            run(*at, "address", "add", address + "/24", "dev", name)
            run(*at, "link", "set", name, "up")
        self.thread = threading.Thread(target=self.carry)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        for end in self.ends:
            os.close(end)

    def carry(self):
        draws, order, under_way = random.Random(1), itertools.count(), []
        while not self.done.is_set():
            wait = max(0, under_way[0][0] - time.monotonic()) if under_way else 0.1
            for end in select.select(self.ends, [], [], min(wait, 0.1))[0]:
                packet = os.read(end, PACKET_BYTES)
                if draws.random() >= self.loss:
                    other = self.ends[1 - self.ends.index(end)]
                    heapq.heappush(under_way, (time.monotonic() + self.delay, next(order), other, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(under_way)
                try:
                    os.write(end, packet)
                    self.passed += 1
                except OSError:
                    pass  # a full queue drops the packet
