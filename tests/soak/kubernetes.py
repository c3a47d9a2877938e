"""Tests the programs that watch a Kubernetes cluster with a real API server: etcd (Debian's), kube-apiserver with RBAC
and TLS, and the definitions of InferencePool, llm-d's resources, LeaderWorkerSet and KEDA.

    tools/kube_apiserver.sh build/kube-apiserver && .venv/bin/python tests/soak/kubernetes.py

The API server accepts every object of the chart and of the plain manifests, with strict checks. `octavo pick` and
`octavo route` run like pods, with a service account's token and only the rights of its role. The steps: pods of a
pool are added and removed, requests are rewritten, two pickers share a lease, and the API server stops, restarts, and
no longer has the versions that they saw (410). There is no kubelet: the test writes the status of pods, and `octavo
serve` listens at their addresses. No step waits for a fixed time.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import yaml

sys.path.append(str(pathlib.Path(__file__).parents[1] / "e2e"))
from conftest import eventually, fetch, free_port, metric, running
from test_manifests import DEFINITIONS, definition_file, objects

OPERATOR = "operator"  # token of the administrator
ACCOUNT = pathlib.Path("secrets/kubernetes.io/serviceaccount")  # below /run


class Api:
    """The API server, its etcd, and the operator's requests to it."""

    def __init__(self, program, folder):
        self.program, self.folder, self.port = program, folder, free_port()
        etcd = free_port(2)
        peer = etcd + 1
        urls = [f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}"]
        urls += [f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}"]
        command = ["etcd", f"--data-dir={folder}/etcd", f"--initial-cluster=default=http://127.0.0.1:{peer}", "--log-level=error", *urls]
        self.etcd_url = f"http://127.0.0.1:{etcd}"
        self.etcd = subprocess.Popen(command)
        (folder / "tokens.csv").write_text(f'{OPERATOR},operator,1,"system:masters"\n')
        subprocess.run(["openssl", "genrsa", "-out", folder / "account.key", "2048"], check=True, stderr=subprocess.DEVNULL)
        self.certificate = folder / "apiserver.crt"
        self.start()

    def start(self):
        flags = {
            "etcd-servers": self.etcd_url,
            "secure-port": self.port,
            "bind-address": "127.0.0.1",
            "advertise-address": "192.0.2.1",  # used by nobody; without it, the server needs a default route
            "cert-dir": self.folder,  # the server writes a certificate there
            "authorization-mode": "RBAC",
            "token-auth-file": self.folder / "tokens.csv",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": self.folder / "account.key",
            "service-account-key-file": self.folder / "account.key",
            "service-cluster-ip-range": "10.0.0.0/24",
            "disable-admission-plugins": "ServiceAccount",  # with it, a controller would have to create
                                                            # accounts first
        }
        log = (self.folder / "apiserver.log").open("a")
        command = [self.program, *(f"--{name}={value}" for name, value in flags.items())]
        self.server = subprocess.Popen(command, stdout=log, stderr=log)

        def is_ready():
            assert self.server.poll() is None, (self.folder / "apiserver.log").read_text()[-2000:]
            with contextlib.suppress(OSError):
                return self.ask("GET", "/readyz", raw=True) == "ok"

        assert eventually(is_ready, 300), "the API server is not ready"

    def kill(self):
        self.server.kill()
        self.server.wait()

    def forget(self):
        """Removes every version except the last one, through etcd's JSON gateway."""

        def etcd(path, body):
            request = urllib.request.Request(f"{self.etcd_url}/v3/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
            return json.loads(urllib.request.urlopen(request, timeout=60).read())

        etcd("kv/compaction", {"revision": etcd("maintenance/status", {})["header"]["revision"]})

    def ask(self, method, path, body=None, kind="application/json", token=OPERATOR, raw=False):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", None if body is None else json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.certificate), timeout=60) as response:
            text = response.read().decode()
        return text if raw else json.loads(text)

    def count(self, name, **labels):
        """Returns the sum of a metric's series with these labels."""
        lines = self.ask("GET", "/metrics", raw=True).splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{") and all(label in line for label in wanted))

    def collection(self, obj, space):
        """Returns the path of an object's kind, from the API server's discovery."""
        version = obj["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        resources = {r["kind"]: r for r in self.ask("GET", root)["resources"] if "/" not in r["name"]}
        found = resources[obj["kind"]]
        return f"{root}/namespaces/{space}/{found['name']}" if found["namespaced"] else f"{root}/{found['name']}"

    def create(self, obj, space="default", query="?fieldValidation=Strict"):
        return self.ask("POST", self.collection(obj, space) + query, obj)

    def pod(self, name, ip, labels, ready=True, space="default"):
        """Creates or updates a running pod, as a kubelet reports it."""
        path = f"/api/v1/namespaces/{space}/pods"
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "serve", "image": "octavo"}]}}
        with contextlib.suppress(urllib.error.HTTPError):
            self.ask("POST", path, pod)
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}}
        self.ask("PATCH", f"{path}/{name}/status", status, "application/strategic-merge-patch+json")

    def gone(self, name, space="default"):
        self.ask("DELETE", f"/api/v1/namespaces/{space}/pods/{name}?gracePeriodSeconds=0")

    def close(self):
        self.kill()
        self.etcd.kill()
        self.etcd.wait()


def pod_command(api, account, command):
    """Returns a command that runs a program with the files and variables that Kubernetes gives to a pod of this
    account."""
    files = pathlib.Path(tempfile.mkdtemp(dir=api.folder))
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.ask("POST", f"/api/v1/namespaces/default/serviceaccounts/{account}/token", request)["status"]["token"]
    (files / "token").write_text(token)
    (files / "namespace").write_text("default")
    (files / "ca.crt").write_bytes(api.certificate.read_bytes())
    place = pathlib.Path("/run") / ACCOUNT
    inside = f'mount -t tmpfs none /run && mkdir -p {place.parent} && ln -s {files} {place} && exec "$@"'
    variables = f"KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT={api.port}"
    return f"env {variables} unshare --map-root-user --mount sh -c '{inside}' sh {command}"


@contextlib.contextmanager
def in_a_pod(api, account, command):
    """Runs a program like a pod. Yields its base URL and process."""
    with running(pod_command(api, account, command)) as (process, base):
        yield base, process


def of_llm_d(kind):
    """Returns a definition that permits any fields, because no package contains llm-d's own."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "llm-d.ai", "scope": "Namespaced", "names": {"kind": kind, "plural": plural}, "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.llm-d.ai"}, "spec": spec}


def kinds_are_defined(api):
    defined = [yaml.safe_load(definition_file(kind).read_text()) for kind in DEFINITIONS]
    defined += [of_llm_d("InferenceObjective"), of_llm_d("InferenceModelRewrite")]
    for definition in defined:
        path = api.collection(definition, "")
        api.ask("POST", path, definition)
        name = definition["metadata"]["name"]

        def is_served():
            conditions = api.ask("GET", f"{path}/{name}").get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        assert eventually(is_served), name


def objects_are_taken(api):
    everything = objects()
    for obj in everything:
        api.create(obj, obj["metadata"].get("namespace", "default"), "?fieldValidation=Strict&dryRun=All")
    broken = next(obj for obj in everything if obj["kind"] == "InferencePool")
    try:
        api.create({**broken, "spec": {**broken["spec"], "replica": 2}})
        sys.exit("an unknown field was taken")
    except urllib.error.HTTPError as refused:
        assert refused.code == 400, refused
    print(len(everything), "objects taken, of the kinds", ", ".join(sorted({obj["kind"] for obj in everything})))


def ready(metrics):
    return metric(metrics, "llm_d_epp_ready_endpoints")


def create_pool(api, port):
    """Creates the objects of deploy/kubernetes/pick.yaml, with a pool of this port."""
    for obj in yaml.safe_load_all(pathlib.Path("deploy/kubernetes/pick.yaml").read_text()):
        if obj["kind"] == "InferencePool":
            obj["spec"]["targetPorts"] = [{"number": port}]
        api.create(obj)


def pool_is_followed(api, port):
    create_pool(api, port)
    pools = "/apis/inference.networking.k8s.io/v1/namespaces/default/inferencepools/octavo"
    labels = {"app": "octavo"}
    for i in range(1, 4):
        api.pod(f"octavo-{i}", f"127.0.0.{i}", labels)
    pick = "build/release/octavo pick --secure-serving=false --host 127.0.0.1 --grpc-port 0 --grpc-health-port {health} --metrics-port {{port}} --pool-name octavo --ha-enable-leader-election"
    with contextlib.ExitStack() as stack:
        healths = [free_port(), free_port()]
        pickers = [stack.enter_context(in_a_pod(api, "octavo-pick", pick.format(health=health))) for health in healths]
        for metrics, _ in pickers:
            assert eventually(lambda: ready(metrics) == 3), "the pods of the pool"
        api.pod("octavo-1", "127.0.0.1", labels, ready=False)
        api.gone("octavo-2")
        assert eventually(lambda: ready(pickers[0][0]) == 1), "one left, one not ready"
        api.pod("octavo-1", "127.0.0.1", labels)
        api.pod("octavo-2", "127.0.0.2", labels)
        assert eventually(lambda: ready(pickers[0][0]) == 3), "both are back"
        api.ask("PATCH", pools, {"spec": {"targetPorts": [{"number": port}, {"number": port + 1}]}}, "application/merge-patch+json")
        assert eventually(lambda: ready(pickers[0][0]) == 6), "two ports of each pod"
        api.ask("PATCH", pools, {"spec": {"targetPorts": [{"number": port}]}}, "application/merge-patch+json")
        assert eventually(lambda: ready(pickers[0][0]) == 3)
        print("the pods of a pool, their readiness and ports: followed by two pickers with the rights of deploy/kubernetes/pick.yaml")
        lease_is_shared(api, pickers, healths)
        server_comes_back(api, pickers[1], labels)


def holder(api):
    return api.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/epp-default-octavo.llm-d.ai")["spec"]["holderIdentity"]


def serving(health):
    """Returns whether the health service reports SERVING, with the request of Kubernetes' probes: gRPC by curl."""
    asked = b"\x0a\x09readiness"  # a HealthCheckRequest
    url = f"http://127.0.0.1:{health}/grpc.health.v1.Health/Check"
    headers = ["-H", "Content-Type: application/grpc", "-H", "TE: trailers"]
    command = ["curl", "--silent", "--max-time", "10", "--http2-prior-knowledge", *headers, "--data-binary", "@-", url]
    done = subprocess.run(command, input=struct.pack(">BI", 0, len(asked)) + asked, capture_output=True)
    return done.stdout == struct.pack(">BI", 0, 2) + b"\x08\x01"  # a HealthCheckResponse: SERVING


def lease_is_shared(api, pickers, healths):
    assert eventually(lambda: sum(map(serving, healths)) == 1), "one of two is ready"
    leads = [serving(health) for health in healths].index(True)
    before = holder(api)
    if leads == 1:  # the second picker remains
        pickers.reverse()
        healths.reverse()
    pickers[0][1].kill()
    assert eventually(lambda: holder(api) != before and serving(healths[1]), 120), "the other one follows"
    print("the lease: one of two pickers is ready; it was killed, the other one has followed")


def server_comes_back(api, picker, labels):
    """The picker is stopped while the API server drops versions and restarts."""
    metrics, process = picker
    process.send_signal(signal.SIGSTOP)
    for i in range(4, 7):
        api.pod(f"octavo-{i}", f"127.0.0.{i}", labels)
    api.gone("octavo-1")
    api.kill()
    api.forget()
    process.send_signal(signal.SIGCONT)
    assert ready(metrics) == 3, "what is known stays while the server is away"
    api.start()
    assert eventually(lambda: ready(metrics) == 5, 120), "listed again"
    # counters of this server, which start at 0
    assert api.count("apiserver_request_total", resource="pods", verb="LIST", subresource="") > 0
    print("the server away, its history gone: what was known stayed, and was listed again")


def router_follows(api, port):
    for obj in yaml.safe_load_all(pathlib.Path("deploy/kubernetes/route.yaml").read_text()):
        api.create(obj)
    labels = {"app": "routed"}
    for i in (1, 2):
        api.pod(f"routed-{i}", f"127.0.0.{i}", labels)
    flags = f"--service-discovery --selector app=routed --service-discovery-port {port}"
    with in_a_pod(api, "octavo-route", "build/release/octavo route --port {port} " + flags) as (base, _):

        def workers():
            return sorted(w["url"] for w in json.loads(fetch(base + "/workers"))["workers"] if w["is_healthy"])

        assert eventually(lambda: len(workers()) == 2)
        api.gone("routed-1")
        assert eventually(lambda: workers() == [f"http://127.0.0.2:{port}"])
    print("octavo route: pods followed with the rights of deploy/kubernetes/route.yaml")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apiserver", default="build/kube-apiserver", help="the program (tools/kube_apiserver.sh)")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        api = Api(arguments.apiserver, pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(api.close)
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "models"}})
        kinds_are_defined(api)
        objects_are_taken(api)
        port = free_port(2)
        for listening in (port, port + 1):
            stack.enter_context(running("build/release/octavo serve --host 0.0.0.0 --port {port}", listening))
        pool_is_followed(api, port)
        router_follows(api, port)


if __name__ == "__main__":
    main()
