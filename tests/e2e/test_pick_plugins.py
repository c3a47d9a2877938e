"""Plugins of `octavo pick` that need more than engines: exporters of GPU metrics, and running requests that must
end."""

import http.server
import json
import threading

import openai
from conftest import PATIENCE, at_rest, eventually, metric
from test_pick import address, client_of, envoy, picker, port_of, pytestmark, ready, replicas, served, slow_replicas  # noqa: F401


class Exporter:
    """The dcgm-exporter of one machine: the utilisation of each pod's GPUs, in per cent."""

    def __init__(self, busy):
        self.busy = busy

    def __enter__(self):
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                lines = [f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",container="serve",pod="{pod}"}} {value}\n' for i, (pod, value) in enumerate(exporter.busy.items())]
                page = ("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "".join(lines)).encode()
                self.send_response(200 if self.path == "/metrics" else 404)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_requests_go_where_gpus_are_idle(replicas, tmp_path):  # noqa: F811
    pods = [f"vllm-{i}" for i in range(3)]
    listed = tmp_path / "endpoints.yaml"
    listed.write_text(json.dumps({"endpoints": [{"name": pod, "address": "127.0.0.1", "port": str(port_of(base))} for pod, base in zip(pods, replicas, strict=True)]}))
    with Exporter(dict(zip(pods, (95, 20, 100)))) as exporter:
        config = f"""plugins:
- {{type: file-discovery, parameters: {{path: {listed}}}}}
- {{type: dcgm-data-source, parameters: {{port: {exporter.port}}}}}
- {{type: dcgm-extractor}}
- type: endpoint-attribute-filter
  parameters:
    attribute: GPUUtilization
    producer: dcgm-extractor
    onMissing: Fail
    algorithm: {{type: threshold, threshold: {{operator: LessThanOrEqual, value: 0.9}}}}
dataLayer:
  discovery: {{pluginRef: file-discovery}}
  sources: [{{pluginRef: dcgm-data-source, extractors: [{{pluginRef: dcgm-extractor}}]}}]
"""
        path = tmp_path / "picker.yaml"
        path.write_text(config)
        flags = f"--allow-experimental-plugins --config-file {path}"
        with picker([], flags) as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, replicas)) as base:
            assert eventually(lambda: ready(metrics) == 3)
            through = client_of(base)
            model = through.models.list().data[0].id

            def answered_by():
                before = [served(one) for one in replicas]
                try:
                    through.completions.create(model=model, prompt="Once", max_tokens=1)
                except openai.RateLimitError:  # no endpoint is known, or all are busy
                    return None
                return [served(one) - was for one, was in zip(replicas, before, strict=True)].index(1)

            assert eventually(lambda: answered_by() is not None)
            assert [answered_by() for _ in range(6)] == [1] * 6
            exporter.busy.update({pods[0]: 30, pods[1]: 91})
            assert eventually(lambda: answered_by() == 0)
            exporter.busy[pods[0]] = 99
            assert eventually(lambda: answered_by() is None)


def test_running_requests_end_for_those_that_go_before_them(slow_replicas, tmp_path):  # noqa: F811
    config = tmp_path / "flow.yaml"
    config.write_text("""
featureGates: [flowControl]
plugins: [{type: active-request-scorer}, {type: concurrency-detector, parameters: {maxConcurrency: 1}}]
flowControl: {enableEviction: true, saturationDetector: {pluginRef: concurrency-detector}}
""")
    flags = [f"--config-file {config}", "--objective batch=-1", "--objective chat=10"]
    with picker(map(address, slow_replicas), *flags) as (grpc, _, metrics), envoy(tmp_path, grpc, map(port_of, slow_replicas)) as base:
        assert eventually(lambda: ready(metrics) == 3)
        through = client_of(base)
        fields = dict(model=through.models.list().data[0].id, temperature=0, extra_body={"ignore_eos": True})
        evicted, begun, over = [], threading.Semaphore(0), threading.Event()

        def batch(i):
            try:
                with through.completions.create(**fields, prompt=f"Story {i}:", max_tokens=1900, stream=True,
                                                extra_headers={"x-llm-d-inference-objective": "batch"}) as stream:
                    for number, _ in enumerate(stream):
                        if number == 0:
                            begun.release()
                        if over.is_set():
                            return
            except (openai.APIError, OSError):
                evicted.append(i)
            except Exception as cut:  # the HTTP library's error for an interrupted stream
                assert "peer closed" in str(cut) or "incomplete" in str(cut), cut
                evicted.append(i)

        threads = [threading.Thread(target=batch, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        try:
            assert all(begun.acquire(timeout=PATIENCE) for _ in threads)
            chat = through.completions.create(**fields, prompt="Now", max_tokens=4, extra_headers={"x-llm-d-inference-objective": "chat"})
            assert chat.usage.completion_tokens == 4
            assert eventually(lambda: evicted)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert len(evicted) == metric(metrics, "octavo_pick_flow_control_evictions_total") == 1
        assert all(map(at_rest, slow_replicas))  # the engine has freed the evicted request
