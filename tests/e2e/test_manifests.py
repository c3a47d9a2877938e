"""The chart of deploy/chart with every combination of its values, and the plain manifests that it generates. Checks them
strictly with the schemas of Kubernetes and of the custom resources, and checks their references to one another and to
octavo."""

import functools
import itertools
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

kubernetes_validate = pytest.importorskip("kubernetes_validate")
import jsonschema  # noqa: E402
import yaml  # noqa: E402 a dependency of kubernetes_validate

DEPLOY = pathlib.Path("deploy")
KUBERNETES = "1.31"

# Variants of each value. The first one is the default.
CHOICES = {
    "engine.layout": ["replicas", "prefill-decode", "multi-host"],
    "engine.storage": ["20Gi", ""],
    "engine.kvTier": [0, 5],
    "engine.args": [[], ["--max-num-seqs", "64"]],
    "engine.placed": [{}, {"nodeSelector": {"disk": "nvme"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}],
    "hubTokenSecret": ["", "hub"],
    "multiHost.expertParallel": [True, False],
    "route.enabled": [True, False],
    "route.replicas": [1, 3],
    "pick.enabled": [False, True],
    "pick.config": [{}, {"plugins": [{"type": "queue-scorer"}]}],
    "pick.failureMode": ["FailOpen", "FailClose"],
    "autoscaling.by": ["none", "hpa", "keda"],
}

# Modules whose archives contain the definitions of custom resources.
DEFINITIONS = {
    "InferencePool": ("sigs.k8s.io/gateway-api-inference-extension@v1.3.0", "inference.networking.k8s.io_inferencepools.yaml"),
    "LeaderWorkerSet": ("sigs.k8s.io/lws@v0.7.0", "leaderworkerset.x-k8s.io_leaderworkersets.yaml"),
    "ScaledObject": ("github.com/kedacore/keda/v2@v2.18.0", "keda.sh_scaledobjects.yaml"),
}


def combinations():
    """Returns the combinations that make sense: a choice counts only if the feature that it configures is on."""
    for chosen in itertools.product(*CHOICES.values()):
        by_name = dict(zip(CHOICES, chosen))
        layout, picks = by_name["engine.layout"], by_name["pick.enabled"]
        changed = {name for name, value in by_name.items() if value != CHOICES[name][0]}
        if layout != "replicas" and changed & {"engine.storage", "engine.kvTier"}:
            continue
        if not by_name["engine.storage"] and by_name["engine.kvTier"]:
            continue  # a rejected combination (see below)
        if "route.replicas" in changed and changed - {"route.replicas", "engine.layout"}:
            continue
        if not picks and changed & {"pick.config", "pick.failureMode"}:
            continue
        if layout != "multi-host" and "multiHost.expertParallel" in changed:
            continue
        values = {}
        for name, value in by_name.items():
            section, _, field = name.partition(".")
            if field == "placed":
                values[section].update(value)
            elif field:
                values.setdefault(section, {})[field] = value
            else:
                values[section] = value
        yield values


@functools.cache
def releases():
    """Returns the objects of each release: the plain manifests of each layout, and all variants of the chart."""
    plain = {path.name: list(yaml.safe_load_all(path.read_text())) for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))}
    together = {"plain manifests": plain["serve.yaml"] + plain["route.yaml"] + plain["pick.yaml"]}
    together["plain manifests, prefill and decode"] = plain["decode-with-sidecar.yaml"]
    try:
        import helm_python
    except ImportError:
        return together
    with helm_python.Chart.load(DEPLOY / "chart") as chart:
        for values in combinations():
            chart.validate_schema(values)
            rendered = chart.render(values, name="octavo", namespace="models").values()
            together[json.dumps(values)] = [d for text in rendered for d in yaml.safe_load_all(text) if d]
    return together


def different(documents):
    return list({json.dumps(document, sort_keys=True): document for document in documents}.values())


def objects():
    return different(document for release in releases().values() for document in release)


def templates(document):
    """Returns the pods that an object creates."""
    spec = document.get("spec", {})
    group = spec.get("leaderWorkerTemplate", {})
    found = [spec["template"]] if document["kind"] in ("Deployment", "StatefulSet") else []
    return found + [group[name] for name in ("leaderTemplate", "workerTemplate") if name in group]


def labels(document, template):
    """Returns the labels of the object's pods, including those that LeaderWorkerSet adds."""
    own = dict(template["metadata"]["labels"])
    if document["kind"] == "LeaderWorkerSet":
        leads = template is document["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
        own["leaderworkerset.sigs.k8s.io/worker-index"] = "0" if leads else "1"
    return own


def pods(release):
    return [(labels(d, template), template["spec"], d) for d in release for template in templates(d)]


def ports(pod):
    return {port for c in pod["containers"] for p in c.get("ports", []) for port in (p["name"], p["containerPort"])}


def is_part(selector, own):
    return selector.items() <= own.items()


def needs_helm():
    return pytest.importorskip("helm_python", reason="helm-python-sdk has no wheel for this machine")


def test_plain_manifests_are_those_of_the_chart():
    needs_helm()
    sys.path.insert(0, "tools/manifests")
    from plain import plain_manifests

    made = plain_manifests()
    assert made == {path.name: path.read_text() for path in (DEPLOY / "kubernetes").glob("*.yaml")}


def test_helm_finds_nothing_wrong_with_the_chart():
    helm = needs_helm()
    findings = helm.lint(DEPLOY / "chart", strict=True)
    # 1 is advice
    assert not findings["errors"] and all(m["severity"] <= 1 for m in findings["messages"]), findings


@pytest.mark.parametrize(
    "values",
    [
        {"modle": "a"},
        {"engine": {"layout": "pipeline"}},
        {"engine": {"replicas": 0}},
        {"engine": {"kvTier": 5, "layout": "multi-host"}},
        {"engine": {"kvTier": 5, "storage": ""}},
        {"autoscaling": {"by": "load"}},
        {"pick": {"failureMode": "Open"}},
        {"multiHost": {"hosts": 1}},
        {"route": {"replicas": 0}},
    ],
    ids=json.dumps,
)
def test_wrong_values_are_refused(values):
    helm = needs_helm()
    with helm.Chart.load(DEPLOY / "chart") as chart:
        with pytest.raises(helm.HelmError):
            chart.validate_schema(chart.merge_values(values))


def test_kubernetes_takes_them(monkeypatch):
    # the original reads 2 MB for each document
    contents = functools.cache(kubernetes_validate.utils.schema_contents)
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", contents)
    checked = [document for document in objects() if document["kind"] not in DEFINITIONS]
    assert checked
    for document in checked:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


def closed(schema):
    """Returns a definition's schema without permission for unknown fields."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def definition_file(kind):
    module, file = DEFINITIONS[kind]
    if not shutil.which("go"):
        pytest.skip("Go is not installed, whose module proxy has the definitions")
    try:
        got = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{module} cannot be downloaded in time")
    if got.returncode:
        pytest.skip(f"{module} cannot be downloaded")
    return pathlib.Path(json.loads(got.stdout)["Dir"]) / "config" / "crd" / "bases" / file


@functools.cache
def definition(kind, version):
    versions = yaml.safe_load(definition_file(kind).read_text())["spec"]["versions"]
    (schema,) = [v["schema"]["openAPIV3Schema"] for v in versions if v["name"] == version]
    return jsonschema.Draft7Validator(closed(schema))


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_custom_resources_are_as_defined(kind):
    documents = [document for document in objects() if document["kind"] == kind]
    if not documents:
        needs_helm()
    for document in documents:
        schema = definition(kind, document["apiVersion"].split("/")[1])
        schema.validate(document)
        broken = {**document, "spec": {**document["spec"], "replica": 2}}
        assert not schema.is_valid(broken)


def test_the_schemas_are_strict():
    broken = next(document for document in objects() if document["kind"] == "Deployment")
    broken = {**broken, "spec": {**broken["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES, strict=True)


def test_services_find_pods_and_their_ports():
    for release in releases().values():
        for service in [document for document in release if document["kind"] == "Service"]:
            wanted = service["spec"]["selector"]
            found = [(pod, owner) for own, pod, owner in pods(release) if is_part(wanted, own)]
            assert len(found) == 1, (service["metadata"]["name"], len(found))
            pod, owner = found[0]
            for port in service["spec"]["ports"]:
                assert port.get("targetPort", port["port"]) in ports(pod)
            if owner["kind"] == "StatefulSet":
                assert owner["spec"]["serviceName"] == service["metadata"]["name"]


def test_a_pool_finds_pods_their_port_and_its_picker():
    pools = 0
    for release in releases().values():
        for pool in [document for document in release if document["kind"] == "InferencePool"]:
            pools += 1
            found = [pod for own, pod, _ in pods(release) if is_part(pool["spec"]["selector"]["matchLabels"], own)]
            assert found
            for pod in found:
                assert {port["number"] for port in pool["spec"]["targetPorts"]} <= ports(pod)
            picker = pool["spec"]["endpointPickerRef"]
            (service,) = [d for d in release if d["kind"] == "Service" and d["metadata"]["name"] == picker["name"]]
            assert picker["port"]["number"] in {port["port"] for port in service["spec"]["ports"]}
    assert pools


def test_a_router_finds_pods_by_their_labels():
    routers = 0
    for release in releases().values():
        for own, pod, _ in pods(release):
            command = pod["containers"][0]["command"]
            if command[1] != "route":
                continue
            routers += 1
            for flag in [argument for argument in command if argument.endswith("selector")]:
                wanted = itertools.takewhile(lambda x: not x.startswith("--"), command[command.index(flag) + 1 :])
                selector = dict(label.split("=") for label in wanted)
                found = [other for labels_, other, _ in pods(release) if is_part(selector, labels_)]
                assert found and all(8000 in ports(other) for other in found), flag
    assert routers


def test_routers_find_each_other():
    several = 0
    for release in releases().values():
        for own, pod, owner in pods(release):
            command = pod["containers"][0]["command"]
            if command[1] != "route":
                continue
            assert ("--router-sync" in command) == ("--router-peers" in command) == (owner["spec"]["replicas"] > 1)
            if "--router-sync" not in command:
                continue
            several += 1
            host, port = command[command.index("--router-peers") + 1].split(":")
            (service,) = [d for d in release if d["kind"] == "Service" and d["metadata"]["name"] == host]
            assert service["spec"]["clusterIP"] == "None" and is_part(service["spec"]["selector"], own)
            assert int(port) in {p["port"] for p in service["spec"]["ports"]} & ports(pod)
            assert command[command.index("--router-sync") + 1] == f"tcp://*:{port}"
    try:
        import helm_python  # noqa: F401 otherwise only the plain manifests, with one router
    except ImportError:
        return
    assert several


def test_who_scales_finds_what_it_scales():
    for release in releases().values():
        names = {(d["apiVersion"], d["kind"], d["metadata"]["name"]): d for d in release}
        for scaler in [d for d in release if d["kind"] in ("HorizontalPodAutoscaler", "ScaledObject")]:
            target = scaler["spec"]["scaleTargetRef"]
            scaled = names[target["apiVersion"], target["kind"], target["name"]]
            assert "replicas" not in scaled["spec"]  # otherwise each upgrade of the release would reset the
                                                     # replicas
            for trigger in scaler["spec"].get("triggers", []):
                pattern = re.search(r'pod=~"(.+)"', trigger["metadata"]["query"]).group(1)
                pod = scaled["metadata"]["name"] + ("-5d5b8c7f9-x2x7k" if scaled["kind"] == "Deployment" else "-0")
                assert re.fullmatch(pattern, pod) and not re.fullmatch(pattern, "octavo-route-5d5b8c7f9-x2x7k")


def test_who_asks_kubernetes_may():
    """Each workload with an account has a role that is bound to it."""
    for release in releases().values():
        accounts = {pod.get("serviceAccountName") for _, pod, _ in pods(release)} - {None}
        bound = {s["name"]: d["roleRef"]["name"] for d in release if d["kind"] == "RoleBinding" for s in d["subjects"]}
        roles = {d["metadata"]["name"] for d in release if d["kind"] == "Role"}
        made = {d["metadata"]["name"] for d in release if d["kind"] == "ServiceAccount"}
        assert accounts <= made and {bound[account] for account in accounts} <= roles


def test_volumes_are_there():
    for document in objects():
        for template in templates(document):
            spec = template["spec"]
            there = {volume["name"] for volume in spec.get("volumes", [])}
            there |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
            assert {m["name"] for c in spec["containers"] for m in c.get("volumeMounts", [])} <= there


@functools.cache
def flags_of(name):
    text = subprocess.run(["build/release/octavo", name, "--help-all" if name == "serve" else "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    return set(shlex.split(text.replace("'", "").replace('"', "").replace(",", " ")))


def test_octavo_knows_the_flags():
    commands = {tuple(c["command"]) for d in objects() for t in templates(d) for c in t["spec"]["containers"]}
    assert commands
    for program, name, *arguments in commands:
        assert program == "octavo"
        for argument in arguments:
            assert not argument.startswith("--") or argument.split("=")[0] in flags_of(name), argument


def test_octavo_takes_the_pickers_configurations(tmp_path):
    """Tests the configurations in config maps. A picker that accepts one reports that it has no endpoints; otherwise
    it names the fault."""
    texts = {text for d in objects() if d["kind"] == "ConfigMap" for text in d["data"].values()}
    for text in texts:
        file = tmp_path / "picker.yaml"
        file.write_text(text)
        command = ["build/release/octavo", "pick", "--config-file", file, "--endpoints", "nonsense"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "endpoints" in result.stderr and "config" not in result.stderr, result.stderr
