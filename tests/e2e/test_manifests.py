"""The manifests of deploy/kubernetes: by Kubernetes' own schemas, strictly, and by what they refer to in each other and in octavo."""

import pathlib
import shlex
import subprocess

import pytest

kubernetes_validate = pytest.importorskip("kubernetes_validate")
import yaml  # noqa: E402 kubernetes_validate brings it

FILES = sorted(pathlib.Path("deploy/kubernetes").glob("*.yaml"))
OBJECTS = [(path, document) for path in FILES for document in yaml.safe_load_all(path.read_text())]


def containers(document):
    return document["spec"]["template"]["spec"]["containers"] if "template" in document.get("spec", {}) else []


@pytest.mark.parametrize(("path", "document"), OBJECTS, ids=lambda x: x.stem if isinstance(x, pathlib.Path) else x["kind"])
def test_kubernetes_takes_it(path, document):
    if document["kind"] == "InferencePool":  # a custom resource: the picker reads it
        pytest.skip("Kubernetes has no schema of its own for it")
    kubernetes_validate.validate(document, "1.31", strict=True)


def test_the_schema_is_strict():
    broken = next(document for _, document in OBJECTS if document["kind"] == "Deployment")
    broken = {**broken, "spec": {**broken["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_services_find_pods_and_their_ports():
    services = [document for _, document in OBJECTS if document["kind"] == "Service"]
    workloads = [document for _, document in OBJECTS if containers(document)]
    assert services and workloads
    for service in services:
        wanted = service["spec"]["selector"].items()
        (workload,) = [w for w in workloads if wanted <= w["spec"]["template"]["metadata"]["labels"].items()]
        ports = {port for c in containers(workload) for p in c.get("ports", []) for port in (p["name"], p["containerPort"])}
        for port in service["spec"]["ports"]:
            assert port.get("targetPort", port["port"]) in ports
        if workload["kind"] == "StatefulSet":
            assert workload["spec"]["serviceName"] == service["metadata"]["name"]


def test_a_pool_finds_pods_their_port_and_its_picker():
    by_kind = lambda kind: [document for _, document in OBJECTS if document["kind"] == kind]  # noqa: E731
    (pool,) = by_kind("InferencePool")
    wanted = pool["spec"]["selector"]["matchLabels"].items()
    (workload,) = [w for _, w in OBJECTS if containers(w) and wanted <= w["spec"]["template"]["metadata"]["labels"].items()]
    ports = {port["containerPort"] for c in containers(workload) for port in c["ports"]}
    assert {port["number"] for port in pool["spec"]["targetPorts"]} <= ports
    picker = pool["spec"]["endpointPickerRef"]
    (service,) = [s for s in by_kind("Service") if s["metadata"]["name"] == picker["name"]]
    assert picker["port"]["number"] in {port["port"] for port in service["spec"]["ports"]}


def test_who_asks_kubernetes_may():
    """Each workload with an account has a role bound to it."""
    accounts = {w["spec"]["template"]["spec"].get("serviceAccountName") for _, w in OBJECTS if containers(w)} - {None}
    bound = {s["name"]: d["roleRef"]["name"] for _, d in OBJECTS if d["kind"] == "RoleBinding" for s in d["subjects"]}
    roles = {d["metadata"]["name"] for _, d in OBJECTS if d["kind"] == "Role"}
    made = {d["metadata"]["name"] for _, d in OBJECTS if d["kind"] == "ServiceAccount"}
    assert accounts and accounts <= made and {bound[account] for account in accounts} <= roles


@pytest.mark.parametrize(
    "command", [c["command"] for _, document in OBJECTS for c in containers(document)], ids=lambda c: " ".join(c[:2])
)
def test_octavo_knows_the_flags(command):
    program, name, *arguments = command
    assert program == "octavo"
    text = subprocess.run(["build/release/octavo", name, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    known = set(shlex.split(text.replace("'", "").replace('"', "").replace(",", " ")))
    for argument in arguments:
        assert not argument.startswith("--") or argument in known, argument
