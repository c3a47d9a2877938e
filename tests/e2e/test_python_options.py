"""vLLM's options and parameters in the Python package: each is accepted, or refused with a reason."""

import json
import subprocess
import sys
import time

import pytest
from test_python import DEMO, LLM, ROOT, EngineArgs, FlexibleArgumentParser, SamplingParams

from octavo import AsyncLLM, GuidedDecodingParams, LLMEngine, LoRARequest, StructuredOutputsParams  # noqa: E402
from octavo.config import CompilationConfig, KVTransferConfig, ProfilerConfig  # noqa: E402

LORA = str(ROOT / "models/demo-lora/formal")
GREEDY = SamplingParams(temperature=0, max_tokens=12)
PROMPT = "One rainy morning in"
LONG = 1600  # tokens of an answer that does not end before a pause


@pytest.fixture(scope="module")
def llm():
    with LLM(model=DEMO, kv_cache_memory_bytes="64M", enable_lora=True, max_lora_rank=64, scheduling_policy="priority",
             compilation_config=3, attention_config={"backend": "FLASH_ATTN"}, distributed_executor_backend="mp",
             disable_log_stats=False, swap_space=4, tokenizer_mode="auto", max_num_seqs=8, served_model_name=["a", "b"],
             tool_call_parser=None, cpu_offload_gb=0, disable_custom_all_reduce=True) as llm:
        yield llm


def test_an_adapter_by_request(llm):
    adapter = LoRARequest("tales", 1, LORA)
    base, tuned, again = llm.generate([PROMPT] * 3, GREEDY, lora_request=[None, adapter, adapter])
    assert base.lora_request is None and tuned.lora_request == adapter and tuned.outputs[0].lora_request == adapter
    assert tuned.outputs[0].text == again.outputs[0].text != base.outputs[0].text
    chats = llm.chat([{"role": "user", "content": "Hello"}], GREEDY, lora_request=adapter)
    assert chats[0].lora_request == adapter
    with pytest.raises(ValueError, match="lora_request: must be one value or a list with one value for each of the 2 prompts, got 1"):
        llm.generate([PROMPT] * 2, GREEDY, lora_request=[adapter])
    with pytest.raises(ValueError, match="lora_path"):
        LoRARequest("none", 1)


def test_priorities(llm):
    outputs = llm.generate([PROMPT] * 3, GREEDY, priority=[2, 0, 1])
    assert len({o.outputs[0].text for o in outputs}) == 1


def test_metrics_are_vllms(llm):
    before = time.time()
    stats = llm.generate(PROMPT, GREEDY)[0].metrics
    assert before <= stats.arrival_time <= time.time()
    assert stats.num_generation_tokens == 12 and not stats.is_corrupted
    assert stats.queued_ts <= stats.scheduled_ts < stats.first_token_ts < stats.last_token_ts <= time.monotonic()
    assert stats.first_token_latency == pytest.approx(stats.first_token_ts - stats.queued_ts)


def test_guided_decoding_is_structured_outputs(llm):
    for constraint in ({"guided_decoding": GuidedDecodingParams(choice=["left", "right"], backend="xgrammar")},
                       {"structured_outputs": StructuredOutputsParams(choice=["left", "right"])}):
        assert llm.generate(PROMPT, SamplingParams(max_tokens=8, **constraint))[0].outputs[0].text in ("left", "right")
    with pytest.raises(ValueError, match="guided_decoding"):
        SamplingParams(guided_decoding=GuidedDecodingParams(regex="a"), structured_outputs=StructuredOutputsParams(regex="a"))


def test_queued_requests_run_together(llm):
    names = llm.enqueue([PROMPT, "Mira lives"], GREEDY) + llm.enqueue_chat([{"role": "user", "content": "Hello"}], GREEDY)
    outputs = llm.wait_for_completion(use_tqdm=False)
    assert [o.request_id for o in outputs] == names and len(set(names)) == 3
    assert outputs[0].outputs[0].text == llm.generate(PROMPT, GREEDY)[0].outputs[0].text
    assert llm.wait_for_completion() == []


@pytest.mark.parametrize("name", ["apply_model", "collective_rpc", "update_weights", "save_sharded_state"])
def test_calls_into_a_python_model_are_refused_by_name(llm, name):
    with pytest.raises(NotImplementedError, match=f"LLM.{name}: not supported: "):
        getattr(llm, name)(lambda model: model)


@pytest.mark.parametrize("options, message", [
    ({"max_model_length": 10}, "max_model_length: is not the name of an option; did you mean max_model_len"),
    ({"distributed_executor_backend": "ray"}, "distributed_executor_backend: ray is not supported, only .*run octavo serve"),
    ({"enable_prompt_embeds": True, "executor": "simulated"}, "enable_prompt_embeds: is not supported with a simulated executor"),
    ({"logits_processors": ["a.B"]}, "logits_processors: is not supported: the server cannot load Python code"),
    ({"worker_cls": "my.Worker"}, "worker_cls: my.Worker is not supported"),
    ({"port": 8000}, "port: is an option of `octavo serve`, and this program has no server"),
    ({"hf_overrides": lambda config: config}, "hf_overrides: function is not supported: must be a number, a text"),
    ({"otlp_traces_endpoint": "collector:4317"}, "collector:4317"),
    ({"node_rank": 1, "nnodes": 2, "tensor_parallel_size": 2}, "node_rank: must be 0, got 1: run octavo serve --headless"),
    ({"spec_method": "magic"}, "magic"),
])
def test_options_are_refused_as_on_the_command_line(options, message):
    with pytest.raises(ValueError, match=message):
        LLM(DEMO, kv_cache_memory_bytes="64M", **options)


@pytest.mark.parametrize("prompt, message", [
    ({"prompt": "a", "multi_modal_data": {"image": 1}}, "multi_modal_data is not supported: LLM.chat"),
    ({"prompt_embeds": [[0.0]]}, "prompt_embeds: must be a tensor"),
])
def test_parts_of_prompts_are_refused_by_name(llm, prompt, message):
    with pytest.raises(ValueError, match=message):
        llm.generate(prompt, GREEDY)


def test_every_option_of_the_command_line_is_one_of_a_parser():
    listed = subprocess.run([ROOT / "build/release/octavo", "serve", "--list-flags"], capture_output=True, text=True, check=True).stdout
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    args = vars(parser.parse_args(["--max_model_len=128", "-tp=1", "--enable-lora", "--no-enable-prefix-caching", "--kv-transfer-config",
                                   '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}', "--allowed-media-domains", "a", "b"]))
    assert args["max_model_len"] == 128 and args["tensor_parallel_size"] == args["data_parallel_size"] == 1
    assert args["enable_lora"] is True and args["enable_prefix_caching"] is False and args["allowed_media_domains"] == ["a", "b"]
    assert args["kv_transfer_config"]["kv_role"] == "kv_both"
    for flag in ("compilation-config", "distributed-executor-backend", "served-model-name", "otlp-traces-endpoint", "guided-decoding-backend"):
        assert f"| `--{flag}`" in listed and flag.replace("-", "_") in args
    with LLM(**vars(EngineArgs.from_cli_args(parser.parse_args(["--model", DEMO, "--kv-cache-memory-bytes", "64M", "--max-model-len", "64"])))) as llm:
        assert llm._engine.info["max_model_len"] == 64


@pytest.mark.parametrize("layout", [{"tensor_parallel_size": 2}, {"pipeline_parallel_size": 2}, {"data_parallel_size": 2}])
def test_several_processes(llm, layout):
    with LLM(DEMO, device="cpu", kv_cache_memory_bytes="32M", cpu_threads=2, **layout) as several:
        assert several.get_world_size() == 2 and several.get_world_size(include_dp=False) == (1 if "data_parallel_size" in layout else 2)
        answers = [o.outputs[0] for o in several.generate([PROMPT, "Mira lives"] * 2, GREEDY)]
        assert [a.text for a in answers] == [o.outputs[0].text for o in llm.generate([PROMPT, "Mira lives"] * 2, GREEDY)]
        assert several.stats()["generation_tokens"] == sum(len(a.token_ids) for a in answers), "of all engines"


def test_prefill_and_decode_by_nixls_parameters():
    """Two engines: the first keeps the prompt's blocks, the second fetches them."""
    def engine():
        return LLM(DEMO, kv_cache_memory_bytes="64M", kv_transfer_config=KVTransferConfig(kv_connector="NixlConnector", kv_role="kv_both", kv_connector_extra_config={"side_channel_port": 0}))

    prompt = "Hello, my name is Mira, and I live in a small house beside the river, where my brother and I keep seven brown hens."
    with engine() as prefill, engine() as decode:
        asked = SamplingParams(temperature=0, max_tokens=1, extra_args={"kv_transfer_params": {"do_remote_decode": True}})
        kept = prefill.generate(prompt, asked)[0].kv_transfer_params
        assert kept["do_remote_prefill"] and kept["remote_block_ids"]
        output = decode.generate(prompt, SamplingParams(temperature=0, max_tokens=12, extra_args={"kv_transfer_params": kept}))[0]
        assert output.num_cached_tokens == (len(output.prompt_token_ids) - 1) // 16 * 16 > 0
        assert output.outputs[0].text == prefill.generate(prompt, GREEDY)[0].outputs[0].text
    with pytest.raises(ValueError, match="extra_args: 'x' is not supported"):
        SamplingParams(extra_args={"x": 1})


def test_a_paused_engine_keeps_its_requests():
    """As in vLLM's example, no token arrives between pause and resume, and the answer is complete."""
    import asyncio

    async def answer(pauses):
        engine = AsyncLLM(DEMO, kv_cache_memory_bytes="64M")
        counts = []

        async def read():
            async for output in engine.generate(PROMPT, SamplingParams(temperature=0, max_tokens=LONG, ignore_eos=True), "1"):
                counts.append(len(output.outputs[0].token_ids))
            return output.outputs[0].text

        reading = asyncio.create_task(read())
        while not counts:
            await asyncio.sleep(0)
        if pauses:
            await engine.pause_generation(mode="keep")
            made = engine.stats()["generation_tokens"]
            while counts[-1] < made:  # tokens that were already being computed arrive
                await asyncio.sleep(0)
            await asyncio.sleep(0.1)
            assert counts[-1] == made == engine.stats()["generation_tokens"] < LONG
            await engine.resume_generation()
        text = await reading
        engine.shutdown()
        assert counts[-1] == LONG
        return text

    assert asyncio.run(answer(True)) == asyncio.run(answer(False))


def test_spans_of_a_program(tmp_path):
    """A collector in this process receives a span for each answer."""
    import http.server
    import threading
    bodies = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        with LLM(DEMO, kv_cache_memory_bytes="64M", otlp_traces_endpoint=f"http://127.0.0.1:{collector.server_port}/v1/traces") as traced:
            traced.generate([PROMPT] * 2, GREEDY)
        collector.shutdown()
    spans = [span for body in bodies for resource in body["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
    assert len(spans) == 2


def test_an_engine_step_by_step():
    engine = LLMEngine.from_engine_args(EngineArgs(DEMO, kv_cache_memory_bytes="64M"))
    for number, n in enumerate((1, 2)):
        engine.add_request(str(number), PROMPT, SamplingParams(n=n, seed=1, max_tokens=6))
    with pytest.raises(ValueError, match="request_id: '0' is in use"):
        engine.add_request("0", PROMPT, GREEDY)
    finished = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                finished[output.request_id] = output
    assert {name: len(output.outputs) for name, output in finished.items()} == {"0": 1, "1": 2}
    engine.add_request("2", PROMPT, SamplingParams(max_tokens=2000, ignore_eos=True))
    engine.abort_request("2")
    reasons = [o.outputs[0].finish_reason for _ in iter(engine.has_unfinished_requests, False) for o in engine.step() if o.finished]
    assert reasons == ["abort"] and engine.get_num_unfinished_requests() == 0
    engine.shutdown()


def test_vllms_paths_lead_to_the_same_names():
    """Runs a program in a new process whose only change is the imported name."""
    program = """
from octavo.lora.request import LoRARequest
from octavo.engine.arg_utils import AsyncEngineArgs
from octavo.v1.engine.async_llm import AsyncLLM
from octavo.utils.argparse_utils import FlexibleArgumentParser
from octavo.inputs import TokensPrompt
from octavo.config.kv_transfer import KVTransferConfig
from octavo.v1.metrics.reader import Counter
import octavo
assert LoRARequest is octavo.LoRARequest and AsyncLLM is octavo.AsyncLLM and AsyncEngineArgs is octavo.AsyncEngineArgs
try:
    import octavo.model_executor
except ModuleNotFoundError as error:
    print(error)
"""
    import os
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(ROOT / "bindings/python")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "octavo.model_executor: not supported: models are part of the program, not Python code\n"


def test_configurations_are_dictionaries():
    assert CompilationConfig(level=3) == {"level": 3}
    assert ProfilerConfig(profiler="torch")["profiler"] == "torch"


def test_variables_of_vllm_are_named_once():
    program = f"""
from octavo import LLM
for _ in range(2):
    LLM({DEMO!r}).close()
"""
    import os
    variables = {"VLLM_USE_V1": "1", "VLLM_LOGING_LEVEL": "DEBUG", "VLLM_CPU_KVCACHE_SPACE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=os.environ | variables | {"PYTHONPATH": str(ROOT / "bindings/python")})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("environment variables that have no effect: VLLM_USE_V1\n") == 1
    assert done.stderr.count("unknown environment variables: VLLM_LOGING_LEVEL (did you mean VLLM_LOGGING_LEVEL?)") == 1
