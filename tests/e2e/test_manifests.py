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
    return document["spec"]["template"]["spec"]["containers"] if "template" in document["spec"] else []


@pytest.mark.parametrize(("path", "document"), OBJECTS, ids=lambda x: x.stem if isinstance(x, pathlib.Path) else x["kind"])
def test_kubernetes_takes_it(path, document):
    kubernetes_validate.validate(document, "1.31", strict=True)


def test_the_schema_is_strict():
    broken = next(document for _, document in OBJECTS if document["kind"] == "Deployment")
    broken = {**broken, "spec": {**broken["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_services_find_pods_and_their_ports():
    services = [document for _, document in OBJECTS if document["kind"] == "Service"]
    workloads = [document for _, document in OBJECTS if document["kind"] != "Service"]
    assert services and workloads
    for service in services:
        wanted = service["spec"]["selector"].items()
        (workload,) = [w for w in workloads if wanted <= w["spec"]["template"]["metadata"]["labels"].items()]
        ports = {port for c in containers(workload) for p in c.get("ports", []) for port in (p["name"], p["containerPort"])}
        for port in service["spec"]["ports"]:
            assert port.get("targetPort", port["port"]) in ports
        if workload["kind"] == "StatefulSet":
            assert workload["spec"]["serviceName"] == service["metadata"]["name"]


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
