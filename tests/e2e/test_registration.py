"""`octavo serve` registers itself in etcd and in routers' lists, and removes itself at its end."""

import contextlib
import json
import re
import subprocess

import httpx
import pytest
from conftest import PATIENCE, eventually, fetch, free_port, running
from etcd_server import etcd  # noqa: F401 (a fixture)

ROUTE = "build/release/octavo route --port {port}"


def workers(router):
    return {w["url"]: w for w in json.loads(fetch(router + "/workers"))["workers"]}


@contextlib.contextmanager
def replica(*flags):
    """Runs a server with a separate port for its KV cache events. Yields its process and base URL."""
    events = {"enable_kv_cache_events": True, "endpoint": f"tcp://*:{free_port(2)}"}
    fixed = f"build/release/octavo serve --port {{port}} --register-lease-secs 6 --kv-events-config '{json.dumps(events)}'"
    with running(" ".join([fixed, *flags])) as (process, base):
        yield process, base


def events_of(router, worker):
    found = re.search(rf'octavo_route_kv_events_total{{worker="{worker}"}} (\d+)', fetch(router + "/metrics"))
    return int(found[1]) if found else 0


def test_servers_come_and_go_in_an_etcd_and_in_a_router(etcd):  # noqa: F811
    port = free_port()
    with contextlib.ExitStack() as stack:
        follows = stack.enter_context(running(f"{ROUTE} --worker-etcd {etcd.url}", ready="/liveness"))[1]
        told, lists = stack.enter_context(running(ROUTE, port, ready="/liveness"))
        flags = (f"--register-etcd {etcd.url}", f"--register-router {lists}")
        killed, first = stack.enter_context(replica(*flags))
        stops, second = stack.enter_context(replica(*flags, "--served-model-name other"))
        for router in follows, lists:
            assert eventually(lambda: set(workers(router)) == {first, second}), router
            assert eventually(lambda: all(w["is_healthy"] and w["models"] for w in workers(router).values()))
            assert {w["models"][0] for w in workers(router).values()} == {"demo", "other"}
            assert workers(router)[first]["kv_events"].startswith("tcp://127.0.0.1:")
            assert workers(router)[first]["block_size"] == 16

        def both_report():
            for model in "demo", "other":
                prompt = f"Events of {model}: " + "once upon a time " * 20
                httpx.post(follows + "/v1/completions", json={"model": model, "prompt": prompt, "max_tokens": 1}, timeout=PATIENCE)
            return all(events_of(router, worker) for router in (follows, lists) for worker in (first, second))

        assert eventually(both_report), "events come from the registered addresses"

        killed.kill()
        assert eventually(lambda: set(workers(follows)) == {second}), "its lease ends"
        told.kill()
        told.wait()
        lists = stack.enter_context(running(ROUTE, port, ready="/liveness"))[1]
        assert eventually(lambda: set(workers(lists)) == {second}), "it registers again"
        stops.terminate()
        assert stops.wait(timeout=PATIENCE) == 0
        assert eventually(lambda: not workers(follows) and not workers(lists))


def test_ranks_and_roles_are_registered(etcd):  # noqa: F811
    transfer = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_producer", "kv_port": 0})
    with contextlib.ExitStack() as stack:
        router = stack.enter_context(running(f"{ROUTE} --pd-disaggregation --worker-etcd {etcd.url}", ready="/liveness"))[1]
        url = f"--register-etcd {etcd.url}"
        stack.enter_context(replica(url, "--executor simulated -dp 2 --register-role decode"))
        stack.enter_context(replica(url, f"--kv-transfer-config '{transfer}'"))
        assert eventually(lambda: len(workers_by_rank(router)) == 3)
        assert sorted((w["worker_type"], w["rank"]) for w in workers_by_rank(router)) == [("decode", 0), ("decode", 1), ("prefill", 0)]
        ranks = [int(w["kv_events"].rsplit(":", 1)[1]) for w in workers_by_rank(router) if w["worker_type"] == "decode"]
        assert ranks[1] == ranks[0] + 1


def workers_by_rank(router):
    return sorted(json.loads(fetch(router + "/workers"))["workers"], key=lambda w: (w["worker_type"], w["rank"]))


@pytest.mark.parametrize("flags, says", [
    (["--register-etcd", "http://127.0.0.1:2379/v3"], "register-etcd: must be http://host:port"),
    (["--register-router", "ftp://a"], "register-router: must be http://host:port"),
    (["--register-router", "http://a:1", "--uds", "/tmp/octavo.sock"], "uds: cannot be combined with --register-etcd or --register-router"),
])
def test_wrong_lists_are_told(flags, says):
    done = subprocess.run(["build/release/octavo", "serve", *flags], capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
