"""The Python package: vLLM's offline examples with changed imports. OCTAVO_LIBRARY: the liboctavo to test (default:
build/release)."""

import asyncio
import gc
import gzip
import json
import os
import sys
import weakref
from pathlib import Path

import pytest
from conftest import eventually

ROOT = Path(__file__).parents[2]
os.environ.setdefault("OCTAVO_LIBRARY", str(ROOT / "build/release/liboctavo.so.1"))
sys.path.insert(0, str(ROOT / "bindings/python"))

from octavo import (AsyncEngineArgs, AsyncLLM, BeamSearchParams, EngineArgs, FlexibleArgumentParser, LLM,  # noqa: E402
                    Logprob, OctavoError, RequestOutputKind, SamplingParams, StructuredOutputsParams)
from octavo.beam_search import Search  # noqa: E402
from octavo.metrics import Counter, Gauge, Histogram, Vector, read_metrics  # noqa: E402

DEMO = str(ROOT / "models/demo")
PROMPTS = ["Once upon a time", "Mira lives", "The sun", "There was a"]


@pytest.fixture(scope="module")
def llm():
    with LLM(model=DEMO, kv_cache_memory_bytes="64M", trust_remote_code=True) as llm:
        yield llm


def test_basic(llm):
    sampling_params = SamplingParams(temperature=0.8, top_p=0.95, seed=7, min_tokens=4)
    outputs = llm.generate(PROMPTS, sampling_params)
    assert [output.prompt for output in outputs] == PROMPTS
    for output in outputs:
        answer = output.outputs[0]
        assert answer.text and len(answer.token_ids) <= 16
        assert output.finished and answer.finish_reason in ("length", "stop")
    assert [o.outputs[0].text for o in llm.generate(PROMPTS, sampling_params)] == [o.outputs[0].text for o in outputs]


def test_prompts_as_text_tokens_and_dictionaries(llm):
    greedy = SamplingParams(temperature=0, max_tokens=8)
    ids = llm.get_tokenizer().encode("Once upon a time")
    outputs = llm.generate(["Once upon a time", {"prompt": "Once upon a time"}, {"prompt_token_ids": ids}], greedy)
    outputs += llm.generate("Once upon a time", greedy) + llm.generate(ids, greedy)
    assert len({o.outputs[0].text for o in outputs}) == 1
    assert all(o.prompt_token_ids == ids for o in outputs)
    assert all(o.prompt == "Once upon a time" for o in outputs)


def test_several_answers_stop_strings_and_params_for_each(llm):
    outputs = llm.generate(["Once upon a time"] * 2, [SamplingParams(n=3, seed=1, max_tokens=12),
                                                      SamplingParams(temperature=0, max_tokens=None, stop=["upon"])])
    assert [answer.index for answer in outputs[0].outputs] == [0, 1, 2]
    assert len({answer.text for answer in outputs[0].outputs}) > 1
    assert outputs[1].outputs[0].stop_reason == "upon" and "upon" not in outputs[1].outputs[0].text


def test_logprobs(llm):
    output = llm.generate("Once upon a time", SamplingParams(temperature=0, max_tokens=4, logprobs=3,
                                                             prompt_logprobs=1))[0]
    answer = output.outputs[0]
    assert len(answer.logprobs) == 4
    for token, position in zip(answer.token_ids, answer.logprobs):
        assert position[token].rank == 1 and len(position) == 3
    assert "".join(p[t].decoded_token for t, p in zip(answer.token_ids, answer.logprobs)) == answer.text
    assert answer.cumulative_logprob == pytest.approx(sum(p[t].logprob for t, p in zip(answer.token_ids, answer.logprobs)))
    assert output.prompt_logprobs[0] is None and len(output.prompt_logprobs) == len(output.prompt_token_ids)


def test_listed_tokens_of_the_prompt_have_the_logprobs_of_prompt_logprobs(llm):
    prompt = llm.get_tokenizer().encode("Once upon a time there was")
    known = llm.generate(prompt, SamplingParams(max_tokens=1, prompt_logprobs=3))[0].prompt_logprobs[2:]
    listed = [[*list(position)[:3], -1] for position in known]  # the last row has one token less, which is padding
    listed[-1].pop()
    scores = llm.generate(prompt, SamplingParams(max_tokens=1, prompt_logprob_token_ids=listed,
                                                 prompt_logprob_start=1))[0].prompt_token_id_logprobs
    both = llm.generate(prompt, SamplingParams(max_tokens=1, prompt_logprobs=0, prompt_logprob_token_ids=listed,
                                               prompt_logprob_start=1))[0]
    assert both.prompt_token_id_logprobs == scores and len(both.prompt_logprobs) == len(prompt)
    assert [set(position) for position in both.prompt_logprobs[1:]] == [{token} for token in prompt[1:]]
    assert len(scores) == len(listed)
    for position, ids, values in zip(known, listed, scores):
        assert values[:3] == pytest.approx([position[token].logprob for token in ids[:3]], abs=1e-5)
        assert values[3] == float("-inf")
    with pytest.raises(ValueError, match="LLM.generate"):
        llm.chat([{"role": "user", "content": "Hi"}], SamplingParams(prompt_logprob_token_ids=[[1]]))
    with pytest.raises(ValueError, match="has 1 rows, but the prompt has"):
        llm.generate(prompt, SamplingParams(prompt_logprob_token_ids=[[1]]))


def test_beam_search(llm):
    width, steps = 3, 4
    found = llm.beam_search(["Once upon a time", {"prompt": "Mira lives"}], BeamSearchParams(width, steps, ignore_eos=True))
    prompts = [llm.get_tokenizer().encode(text) for text in ("Once upon a time", "Mira lives")]
    for output, prompt in zip(found, prompts):
        scores = [sequence.cum_logprob for sequence in output.sequences]
        assert len(scores) == width and scores == sorted(scores, reverse=True)
        for sequence in output.sequences:
            assert sequence.tokens[:len(prompt)] == prompt and len(sequence.tokens) == len(prompt) + steps
            # The model's own logprobs of these tokens are equal.
            read = llm.generate(sequence.tokens, SamplingParams(max_tokens=1, prompt_logprobs=0))[0].prompt_logprobs
            assert sequence.cum_logprob == pytest.approx(
                sum(read[i][sequence.tokens[i]].logprob for i in range(len(prompt), len(read))), abs=1e-4)
            assert sequence.text == llm.get_tokenizer().decode(sequence.tokens) and sequence.finish_reason == "length"
        greedy = llm.generate(prompt, SamplingParams(temperature=0, max_tokens=steps, ignore_eos=True, logprobs=0))[0]
        assert scores[0] >= greedy.outputs[0].cumulative_logprob - 1e-4


def test_a_beam_ends_at_the_end_of_text():
    search = Search([1], BeamSearchParams(2, 8), {9})
    search.extend([{5: Logprob(-0.5), 9: Logprob(-0.7), 6: Logprob(-1.0), 7: Logprob(-2.0)}])
    assert [beam.tokens for beam in search.beams] == [[1, 5], [1, 6]]
    search.extend([{5: Logprob(-3.0)}, {9: Logprob(-0.1)}])
    ended = [(sequence.tokens, sequence.finish_reason) for sequence in search.result()]
    # -1.1 / 2 is before -0.7 / 1, because the end token does not count in the length
    assert ended == [([1, 6, 9], "stop"), ([1, 9], "stop")]


def test_a_beam_ends_at_the_context(llm):
    full = llm._engine.info["max_model_len"]
    (sequence,) = llm.beam_search([[1] * (full - 2)], BeamSearchParams(1, 10, ignore_eos=True))[0].sequences
    assert len(sequence.tokens) == full


def test_chat(llm):
    conversation = [{"role": "system", "content": "You are a helpful assistant."},
                    {"role": "user", "content": "Where does Mira live?"}]
    one = llm.chat(conversation, SamplingParams(temperature=0, max_tokens=16), use_tqdm=False)
    many = llm.chat([conversation] * 3, SamplingParams(temperature=0, max_tokens=16))
    assert one[0].outputs[0].text and "Mira" in one[0].prompt
    assert [o.outputs[0].text for o in many] == [one[0].outputs[0].text] * 3


def test_a_chat_template_of_the_caller(llm):
    template = "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}"
    output = llm.chat([{"role": "user", "content": "Once"}], SamplingParams(max_tokens=1), chat_template=template)[0]
    assert output.prompt == "<user> Once "


def test_structured_outputs(llm):
    choice = SamplingParams(structured_outputs=StructuredOutputsParams(choice=["Positive", "Negative"]))
    assert llm.generate("This is wonderful!", choice)[0].outputs[0].text in ("Positive", "Negative")
    schema = {"enum": ["red", "green", "blue"]}
    for given in (schema, json.dumps(schema)):
        params = SamplingParams(structured_outputs=StructuredOutputsParams(json=given), max_tokens=40)
        assert json.loads(llm.generate("Which colour?", params)[0].outputs[0].text) in schema["enum"]


def test_prefix_caching(llm):
    prefix = "Once upon a time there was a girl whose name was Mira, and she lived in a house by the sea. " * 3
    llm.generate(prefix + "She", SamplingParams(max_tokens=1))
    output = llm.generate(prefix + "Her dog", SamplingParams(max_tokens=1))[0]
    assert output.num_cached_tokens >= 16
    assert llm.reset_prefix_cache()


def test_more_prompts_than_fit_at_once(llm):
    outputs = llm.generate([f"{i} and" for i in range(2500)], SamplingParams(max_tokens=2, temperature=0))
    assert [o.prompt for o in outputs] == [f"{i} and" for i in range(2500)]
    assert [int(o.request_id) for o in outputs] == sorted(int(o.request_id) for o in outputs)


def test_a_model_that_nobody_holds_gives_its_memory_back():
    llm = LLM(model=DEMO, kv_cache_memory_bytes="64M")
    engine = weakref.ref(llm._engine)
    llm.generate("Once", SamplingParams(max_tokens=1))
    del llm
    gc.collect()
    assert engine() is None


def test_a_program_takes_vllms_flags():
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    parser.set_defaults(model=DEMO, enforce_eager=True)
    args = parser.parse_args(["--max_model_len=256", "--max-num-seqs", "4", "--no-enable-prefix-caching", "--kv-cache-memory-bytes", "64M"])
    with LLM(**vars(args)) as llm:
        assert llm._engine.info["max_model_len"] == 256
        assert llm.generate("Once", SamplingParams(max_tokens=1))[0].finished


def test_metrics_are_of_what_ran(llm):
    def read():
        metrics = llm.get_metrics()
        assert len({(m.name, *m.labels.items()) for m in metrics}) == len(metrics)
        return {m.name: m for m in metrics}
    before = read()
    llm.generate(["Once", "Mira"], SamplingParams(max_tokens=5, ignore_eos=True))
    after = read()

    def change(name, of):
        return of(after[name]) - of(before[name])
    tokens = after["vllm:generation_tokens"]
    assert isinstance(tokens, Counter) and tokens.labels["engine"] == "0"
    assert isinstance(after["vllm:num_requests_running"], Gauge)
    first, gaps = after["vllm:time_to_first_token_seconds"], after["vllm:inter_token_latency_seconds"]
    assert isinstance(first, Histogram) and first.buckets["+Inf"] == first.count and first.sum > 0
    assert change(first.name, lambda m: m.count) == 2 and change(gaps.name, lambda m: m.count) == 8
    assert change("vllm:request_generation_tokens", lambda m: m.sum) == 10
    assert change("vllm:e2e_request_latency_seconds", lambda m: m.count) == 2


def test_metrics_are_read_as_they_are_written():
    read = read_metrics("""# HELP vllm:a_total A count.
# TYPE vllm:a_total counter
vllm:a_total{model_name="a\\"b,c\\\\",engine="0"} 3
# TYPE vllm:tokens_total histogram
vllm:tokens_total_bucket{engine="0",le="1"} 1
vllm:tokens_total_bucket{engine="0",le="+Inf"} 2
vllm:tokens_total_sum{engine="0"} 2.5
vllm:tokens_total_count{engine="0"} 2
# TYPE vllm:accepted_total counter
vllm:accepted_total{engine="0",position="0"} 4
vllm:accepted_total{engine="0",position="1"} 1
""")
    assert read == [Counter("vllm:a", {"model_name": 'a"b,c\\', "engine": "0"}, 3),
                    Histogram("vllm:tokens_total", {"engine": "0"}, 2, 2.5, {"1": 1, "+Inf": 2}),
                    Vector("vllm:accepted", {"engine": "0"}, [4, 1])]


@pytest.mark.parametrize("level", [1, 2])
def test_sleep_gives_memory_back_and_waking_gives_the_same_answers(level):
    def anonymous():
        with open("/proc/self/smaps_rollup") as file:
            return int(next(line for line in file if line.startswith("Anonymous:")).split()[1])
    greedy = SamplingParams(temperature=0, max_tokens=8)
    with LLM(model=DEMO, kv_cache_memory_bytes="64M", enable_sleep_mode=True) as llm:
        prompt = "Once upon a time there was a girl. " * 40
        before = llm.generate(prompt, greedy)[0].outputs[0]
        awake = anonymous()
        llm.sleep(level)
        assert llm.stats()["sleep_level"] == level and anonymous() < awake
        with pytest.raises(OctavoError, match="asleep"):
            llm.generate("Once", greedy)
        assert llm.get_tokenizer().encode("Once")
        assert llm.wake_up() and llm.stats()["sleep_level"] == 0
        after = llm.generate(prompt, greedy)[0]
        assert after.outputs[0].text == before.text and after.num_cached_tokens == 0
        assert llm.wake_up()


def test_sleep_needs_its_option_and_says_what_it_takes(llm):
    with pytest.raises(ValueError, match="enable_sleep_mode"):
        llm.sleep()
    with LLM(model=DEMO, kv_cache_memory_bytes="64M", enable_sleep_mode=True) as other:
        for wrong in ({"level": 0}, {"level": 3}, {"mode": "keep"}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                other.sleep(**wrong)
        with pytest.raises(ValueError, match="tags"):
            other.wake_up(tags=["weights"])
        assert other.generate("Once", SamplingParams(max_tokens=1))[0].finished


def test_a_profile_has_every_step(tmp_path):
    config = {"profiler": "torch", "torch_profiler_dir": str(tmp_path / "traces")}
    greedy = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)
    with LLM(model=DEMO, kv_cache_memory_bytes="64M", profiler_config=config) as llm:
        with pytest.raises(ValueError, match="start one first"):
            llm.stop_profile()
        llm.generate("Before", greedy)
        llm.start_profile("mine")
        with pytest.raises(ValueError, match="stop it first"):
            llm.start_profile()
        llm.generate(["Once upon a time", "Mira lives"], greedy)
        llm.stop_profile()
        llm.start_profile("short", delay_iterations=2, max_iterations=3)
        llm.generate("Once", greedy)
        llm.stop_profile()
        with pytest.raises(ValueError, match="profile_prefix"):
            llm.start_profile("../elsewhere")
    (whole,), (short,) = (list((tmp_path / "traces").glob(f"{name}_*.trace.json.gz")) for name in ("mine", "short"))
    trace = json.loads(gzip.decompress(whole.read_bytes()))
    steps = [event for event in trace["traceEvents"] if "step" in event.get("args", {})]
    if steps[0]["args"]["prompt_tokens"] == 0:  # the engine reported the last step of the earlier prompt late
        late = steps.pop(0)
        trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("ts", late["ts"] + late["dur"]) >= late["ts"] + late["dur"]]
    assert trace["otherData"]["steps_lost"] == 0
    # the first token of each answer is computed with the prompt
    assert sum(step["args"]["answer_tokens"] for step in steps) == 2 * 11
    assert "decode" in {step["name"] for step in steps} and steps[0]["args"]["prompt_tokens"] > 0
    assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(steps, steps[1:]))
    forward = [event["dur"] for event in trace["traceEvents"] if event["name"] == "forward"]
    assert len(forward) == len(steps) and all(0 < f <= s["dur"] for f, s in zip(forward, steps))
    assert gzip.decompress(short.read_bytes()).count(b'"step":') == 3


def test_mistakes_are_named_and_leave_nothing_behind(llm):
    with pytest.raises(ValueError, match="temperature"):
        llm.generate(["fine"] * 4 + ["wrong"], [SamplingParams()] * 4 + [SamplingParams(temperature=-1)])
    assert eventually(lambda: llm.stats()["running"] == 0)
    with pytest.raises(ValueError, match="sampling_params"):
        llm.generate(PROMPTS, [SamplingParams()])
    with pytest.raises(ValueError, match="no_such_option"):
        LLM(model=DEMO, no_such_option=1)
    with pytest.raises(OctavoError, match="no/such/model"):
        LLM(model="no/such/model")
    assert llm.generate("Once", SamplingParams(max_tokens=1))[0].finished


@pytest.fixture(scope="module")
def engine():
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=DEMO, kv_cache_memory_bytes="64M"))
    yield engine
    engine.shutdown()


def params(kind, **more):
    return SamplingParams(temperature=0, output_kind=kind, **{"max_tokens": 24, **more})


def test_async_streams_of_every_kind_agree(engine):
    async def read(kind):
        return [output.outputs[0].text async for output in engine.generate("Once upon a time", params(kind), kind.name)]

    async def read_all():
        return await asyncio.gather(*(read(kind) for kind in RequestOutputKind))

    cumulative, delta, final = asyncio.run(read_all())
    assert len(cumulative) > 4 and cumulative == ["".join(delta[:i + 1]) for i in range(len(delta))]
    assert final == cumulative[-1:]


def test_async_abort_and_leaving_early(engine):
    async def run():
        seen = 0
        async for output in engine.generate("Once", params(RequestOutputKind.DELTA, max_tokens=None, ignore_eos=True), "a"):
            seen += 1
            if seen == 3:
                await engine.abort("a")
        assert output.outputs[0].finish_reason == "abort"
        stream = engine.generate("Once", params(RequestOutputKind.DELTA, max_tokens=None, ignore_eos=True), "a")
        await anext(stream)
        await stream.aclose()
        assert await asyncio.to_thread(eventually, lambda: engine.stats()["running"] == 0), "the request runs on"
    asyncio.run(run())


@pytest.mark.parametrize("mode, tokens, reasons", [("abort", None, {"abort"}), ("wait", 300, {"length"})])
def test_async_sleep_ends_or_finishes_what_runs(mode, tokens, reasons):
    async def run():
        engine = AsyncLLM(DEMO, kv_cache_memory_bytes="64M", enable_sleep_mode=True)

        async def read(name, tokens=tokens):
            async for output in engine.generate("Once", params(RequestOutputKind.DELTA, max_tokens=tokens, ignore_eos=True), name):
                begun[name].set()
            return output.outputs[0].finish_reason
        begun = {name: asyncio.Event() for name in "abcd"}
        try:
            tasks = [asyncio.create_task(read(name)) for name in "ab"]
            await asyncio.gather(begun["a"].wait(), begun["b"].wait())
            await engine.sleep(mode=mode)
            assert await engine.is_sleeping() and set(await asyncio.gather(*tasks)) <= reasons
            with pytest.raises(OctavoError, match="asleep"):
                await read("c")
            await engine.wake_up()
            assert not await engine.is_sleeping() and await read("d", 30) == "length"
        finally:
            engine.shutdown()
    asyncio.run(run())
