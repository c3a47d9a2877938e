"""The Prometheus rules and the Grafana dashboard under deploy/monitoring ask for what there is."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import fetch

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian's prometheus) is not installed")


def dashboard_queries():
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def asked_for():
    text = (FOLDER / "rules.yaml").read_text() + "\n".join(dashboard_queries())
    return set(re.findall(r"\b(?:vllm:|http_|process_)\w+", text))


def test_every_metric_is_documented():
    page = (FOLDER.parents[1] / "docs" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(.+?)` \|", page, flags=re.M))
    missing = {name for name in asked_for() if re.sub(r"_(bucket|sum|count)$", "", name) not in listed}
    assert not missing


@needs_promtool
def test_promtool_accepts_the_rules():
    subprocess.run(["promtool", "check", "config", FOLDER / "prometheus.yaml"], check=True)
    subprocess.run(["promtool", "test", "rules", "rules_test.yaml"], check=True, cwd=FOLDER)


@needs_promtool
def test_promtool_reads_the_dashboards_queries(tmp_path):
    rules = [
        {"record": f"query:{i}", "expr": re.sub(r"\$__rate_interval", "1m", query).replace("$model", ".*")}
        for i, query in enumerate(dashboard_queries())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is YAML
    subprocess.run(["promtool", "check", "rules", file], check=True)


@needs_promtool
def test_promtool_reads_the_page(server, client, model):
    client.completions.create(model=model, prompt="Once", max_tokens=3)
    page = fetch(server + "/metrics")
    # It also advises on names, which are vLLM's: only what it cannot read is an error (1; advice is 3).
    result = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True)
    assert result.returncode in (0, 3), result.stderr
    for name in asked_for():
        assert re.search(rf"^{name}[{{ ]", page, flags=re.M), name
