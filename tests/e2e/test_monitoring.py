"""A server's observability: metrics and the queries of deploy/monitoring, spans, log lines."""

import json
import re
import shutil
import subprocess
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import eventually, fetch, free_port, http_client, serve

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian's prometheus) is not installed")


def dashboard_queries():
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def asked_for():
    text = (FOLDER / "rules.yaml").read_text() + "\n".join(dashboard_queries())
    return set(re.findall(r"\b(?:vllm:|http_|process_)\w+", text))


def test_every_metric_is_documented():
    page = (FOLDER.parents[1] / "docs/reference/metrics.md").read_text()
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
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))  # JSON is valid YAML
    subprocess.run(["promtool", "check", "rules", file], check=True)


@needs_promtool
def test_promtool_reads_the_page(server, client, model):
    client.completions.create(model=model, prompt="Once", max_tokens=3)
    page = fetch(server + "/metrics")
    # The tool also gives advice on names, but these are vLLM's. Exit code 1 is an error, 3 is advice.
    result = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True)
    assert result.returncode in (0, 3), result.stderr
    for name in asked_for():
        assert re.search(rf"^{name}[{{ ]", page, flags=re.M), name


def test_spans_reach_a_collector():
    spans = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for resource in body["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    spans.extend((self.path, resource["resource"], span) for span in scope["spans"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    with serve("--otlp-traces-endpoint", f"http://127.0.0.1:{collector.server_port}/v1/traces") as base:
        for path, body in [
            ("/v1/completions", {"prompt": "Once", "max_tokens": 5}),
            ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}),
        ]:
            headers = {"Content-Type": "application/json", "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
            request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
            urllib.request.urlopen(request, timeout=60).read()
        assert eventually(lambda: len(spans) >= 2)
    collector.shutdown()
    for path, resource, span in spans:
        assert path == "/v1/traces"
        assert {"key": "service.name", "value": {"stringValue": "octavo"}} in resource["attributes"]
        assert (span["name"], span["traceId"], span["parentSpanId"]) == ("llm_request", "ab" * 16, "cd" * 8)
        attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
        assert attributes["gen_ai.usage.completion_tokens"] == "5"
        assert 0 <= attributes["gen_ai.latency.time_to_first_token"] <= attributes["gen_ai.latency.e2e"]


def test_log_lines_as_json():
    port = free_port()
    command = ["build/release/octavo", "serve", "--port", str(port), "--log-format", "json", "--log-level", "debug"]
    command += ["--enable-log-requests", "--max-log-len", "9"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in process.stderr:
            lines.append(json.loads(line))
            if "ready on" in lines[-1]["message"]:
                body = {"prompt": 'A "quoted"\n story', "max_tokens": 2, "request_id": "r1"}
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
                )
                urllib.request.urlopen(request, timeout=60).read()
                process.terminate()
    finally:
        process.kill()
        process.wait()
    assert all(set(line) == {"time", "level", "message"} for line in lines)
    prompts = [line["message"] for line in lines if "prompt" in line["message"] and "cmpl-r1" in line["message"]]
    assert any('A \\"quoted' in text and "story" not in text for text in prompts), prompts


def test_a_trace_of_a_servers_steps(tmp_path):
    """The engine runs in a separate process."""
    config = {"profiler": "torch", "torch_profiler_dir": str(tmp_path / "traces"), "torch_profiler_use_gzip": False}
    with serve("--profiler-config", json.dumps(config)) as base:
        def post(path, body):
            return http_client.post(base + path, json=body)
        assert post("/stop_profile", {}).status_code == 400
        assert post("/start_profile", {"profile_prefix": "mine"}).status_code == 200
        answer = post("/v1/completions", {"prompt": ["Once upon a time"] * 3, "max_tokens": 20, "ignore_eos": True})
        assert answer.json()["usage"]["completion_tokens"] == 60
        assert post("/stop_profile", {}).status_code == 200
    (file,) = (tmp_path / "traces").glob("mine_*.trace.json")
    trace = json.loads(file.read_text())
    steps = [event["args"] for event in trace["traceEvents"] if "step" in event.get("args", {})]
    assert trace["otherData"]["steps_lost"] == 0
    # the first token of each answer is computed with the prompt
    assert sum(step["answer_tokens"] for step in steps) == 3 * 19
    assert [step["step"] for step in steps] == list(range(steps[0]["step"], steps[0]["step"] + len(steps)))
