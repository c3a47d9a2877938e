"""A real etcd for tests: Debian's etcd-server."""

import base64
import contextlib
import json
import shutil
import subprocess
import urllib.request

import pytest
from conftest import eventually, fetch, free_port

ETCD = shutil.which("etcd")


class Etcd:
    """A server with a separate folder, which can be stopped and restarted."""

    def __init__(self, folder):
        self.folder, self.port, self.peers = folder, free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        peers = f"http://127.0.0.1:{self.peers}"
        flags = {"data-dir": self.folder, "listen-client-urls": self.url, "advertise-client-urls": self.url, "listen-peer-urls": peers,
                 "initial-advertise-peer-urls": peers, "initial-cluster": f"default={peers}", "log-level": "error"}
        self.process = subprocess.Popen([ETCD, *[f"--{name}={value}" for name, value in flags.items()]], stderr=subprocess.DEVNULL)
        assert eventually(self.answers)

    def answers(self):
        with contextlib.suppress(OSError):
            return "true" in fetch(self.url + "/health")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def call(self, path, **fields):
        text = {name: base64.b64encode(value.encode()).decode() if name in ("key", "value") else value for name, value in fields.items()}
        with urllib.request.urlopen(self.url + "/v3/" + path, json.dumps(text).encode()) as answer:
            return json.loads(answer.read())


@pytest.fixture
def etcd(tmp_path):
    if not ETCD:
        pytest.skip("etcd is not installed: tools/install.sh")
    server = Etcd(tmp_path)
    yield server
    server.stop()
