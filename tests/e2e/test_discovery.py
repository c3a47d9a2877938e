"""`octavo route` finds its workers: keys of a real etcd, a file, the addresses of a name."""

import contextlib
import json
import subprocess
import urllib.request

import pytest
from conftest import PATIENCE, eventually, fetch, running
from dns_stand_in import NameServer
from etcd_server import etcd  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def replica():
    with running("build/release/octavo serve --host 0.0.0.0 --port {port}") as (_, base):
        yield base.rsplit(":", 1)[1]


@contextlib.contextmanager
def route(*flags):
    """Runs a router, and yields a function that returns its workers: {URL: type}."""
    with running(" ".join(["build/release/octavo route --port {port}", *flags])) as (process, base):
        yield lambda: {w["url"]: w["worker_type"] for w in json.loads(fetch(base + "/workers"))["workers"]}
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0


def test_workers_are_keys_of_an_etcd(etcd, replica):
    def url(i):
        return f"http://127.0.0.{i}:{replica}"

    etcd.call("kv/put", key="/octavo/workers/a", value=url(1))
    etcd.call("kv/put", key="/octavo/workers0", value=url(9))
    with route("--worker-etcd", etcd.url) as workers:
        assert eventually(lambda: set(workers()) == {url(1)})
        lease = etcd.call("lease/grant", TTL=60)["ID"]
        etcd.call("kv/put", key="/octavo/workers/b", value=json.dumps({"url": url(2)}), lease=lease)
        etcd.call("kv/put", key="/octavo/workers/c", value="no worker")
        assert eventually(lambda: set(workers()) == {url(1), url(2)})
        etcd.call("lease/revoke", ID=lease)
        assert eventually(lambda: set(workers()) == {url(1)})

        etcd.stop()
        assert set(workers()) == {url(1)}
        etcd.start()
        etcd.call("kv/put", key="/octavo/workers/d", value=url(4))
        etcd.call("kv/deleterange", key="/octavo/workers/a")
        assert eventually(lambda: set(workers()) == {url(4)})


def test_keys_say_what_workers_are_for(etcd, replica):
    for i, role in enumerate(("prefill", "decode", None), 1):
        value = {"url": f"http://127.0.0.{i}:{replica}"} | ({"role": role} if role else {})
        etcd.call("kv/put", key=f"/pools/x/{i}", value=json.dumps(value))
    with route("--pd-disaggregation --worker-etcd-prefix /pools/x/ --worker-etcd", etcd.url) as workers:
        assert eventually(lambda: sorted(workers().values()) == ["decode", "prefill"])


def test_workers_stand_in_a_file(tmp_path, replica):
    file = tmp_path / "workers.yaml"

    def replace(text):  # as a whole, since the router may read a file that is being written
        fresh = tmp_path / "fresh.yaml"
        fresh.write_text(text)
        fresh.rename(file)

    def write(*hosts):
        lines = [f'- {{name: w{host}, address: 127.0.0.{host}, port: "{replica}"}}\n' for host in hosts]
        replace("endpoints:\n" + "".join(lines))

    write(1, 2)
    with route("--worker-file", str(file)) as workers:
        assert eventually(lambda: len(workers()) == 2)
        write(2, 3, 4)
        assert eventually(lambda: set(workers()) == {f"http://127.0.0.{i}:{replica}" for i in (2, 3, 4)})
        replace("endpoints: [")
        assert not eventually(lambda: len(workers()) != 3, 2), "what cannot be read changes nothing"
        write(1)
        assert eventually(lambda: set(workers()) == {f"http://127.0.0.1:{replica}"})


def test_workers_are_the_addresses_of_a_name(replica):
    with route(f"--worker-dns localhost:{replica}") as workers:
        assert eventually(lambda: f"http://127.0.0.1:{replica}" in workers())


@pytest.fixture
def name_server():
    server = NameServer()
    yield server
    server.close()


def test_workers_are_srv_records(name_server, replica):
    service = "_http._tcp.replicas.test"
    name_server.services[service] = [(10, 1, int(replica), "a.test"), (10, 1, 9, "b.test"), (20, 1, int(replica), "c.test")]
    name_server.hosts = {"a.test": ["127.0.0.1"], "b.test": ["127.0.0.2"], "c.test": ["127.0.0.3"]}
    flags = f"--worker-srv {service} --worker-srv-server {name_server.address} --worker-dns-interval-secs 1"
    with route(flags) as workers:
        first, other_port, second = f"http://127.0.0.1:{replica}", "http://127.0.0.2:9", f"http://127.0.0.3:{replica}"
        assert eventually(lambda: set(workers()) == {first, other_port, second})
        name_server.hosts["a.test"] = ["127.0.0.4"]
        assert eventually(lambda: set(workers()) == {f"http://127.0.0.4:{replica}", other_port, second})
        asked, name_server.fails = name_server.asked, True
        assert eventually(lambda: name_server.asked > asked + 3)
        assert len(workers()) == 3, "while it does not answer, what is known stays"
        name_server.fails = False
        name_server.services[service] = [(20, 1, int(replica), "c.test")]
        assert eventually(lambda: set(workers()) == {second})


def test_srv_records_say_who_comes_first(name_server, replica):
    service = "_http._tcp.replicas.test"
    first, second, third = (f"http://127.0.0.{i}:{replica}" for i in (1, 2, 3))
    name_server.hosts = {f"{i}.test": [f"127.0.0.{i}"] for i in (1, 2, 3)}

    def records(*ranks):
        name_server.services[service] = [(priority, weight, int(replica), f"{i + 1}.test") for i, (priority, weight) in enumerate(ranks)]

    records((20, 1), (10, 1), (10, 0))
    with running(f"build/release/octavo route --port {{port}} --policy round_robin --worker-srv {service} "
                 f"--worker-srv-server {name_server.address} --worker-dns-interval-secs 1") as (_, base):
        def workers():
            return json.loads(fetch(base + "/workers"))["workers"]

        def chosen():
            request = urllib.request.Request(base + "/v1/completions", json.dumps({"prompt": "Hello", "max_tokens": 1}).encode(),
                                             {"Content-Type": "application/json", "X-Octavo-Explain": "1"})
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.headers["X-Octavo-Explain"])["chosen"]

        assert eventually(lambda: len(workers()) == 3 and all(w["is_healthy"] for w in workers()))
        assert [chosen() for _ in range(6)] == [second] * 6
        records((10, 1), (20, 1), (20, 1))
        assert eventually(lambda: chosen() == first)
        assert [chosen() for _ in range(6)] == [first] * 6
        records((10, 0), (10, 0), (10, 7))
        assert eventually(lambda: chosen() == third)
        assert [chosen() for _ in range(6)] == [third] * 6


@pytest.mark.parametrize("flags, says", [
    (["--worker-srv", "a b"], "worker-srv: must be a name like"),
    (["--worker-srv", "a.test", "--worker-srv-server", "localhost:53"], "worker-srv-server: must be an address and a port"),
    (["--worker-srv", "a.test", "--pd-disaggregation"], "worker-srv: cannot be combined with --pd-disaggregation"),
    (["--worker-etcd", "http://127.0.0.1:2379/v3"], "worker-etcd: must be http://host:port"),
    (["--worker-file", "no-such-file"], "worker-file: endpoints: no-such-file"),
    (["--worker-dns", "a b"], "worker-dns: must be host:port"),
    (["--worker-dns", "localhost:80", "--pd-disaggregation"], "worker-dns: cannot be combined with --pd-disaggregation"),
])
def test_wrong_sources_are_told(flags, says):
    done = subprocess.run(["build/release/octavo", "route", *flags], capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
