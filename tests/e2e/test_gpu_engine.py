"""Features of engines on emulated GPUs, with one rank and with several: KV tiers, prefill and decode, adapters, grammars,
sleep, and weights in host memory."""

import pytest
from conftest import eventually, fetch, http_client, tiny
from test_engine_process import processes
from test_gpu_ranks import ALONE, PROMPTS, answer, answers, client_of, model, nearly, on_gpus, one, pytestmark  # noqa: F401
from test_kv_tier import at_rest, hits, shared_storage, stored
from test_kv_transfer import ASK, config, failures, moved
from test_tensor_parallel import ranks

LONG = "".join(chr(0x100 + 5 * i % 100) for i in range(70))


@pytest.fixture(scope="module")
def long_answer(model):  # noqa: F811
    with on_gpus(model, *ALONE) as base:
        return answer(base, LONG)


def test_ranks_load_blocks_that_ranks_of_another_layout_stored(model, long_answer, tmp_path):  # noqa: F811
    with on_gpus(model, "-tp", "2", *ALONE, shared_storage(tmp_path)) as base:
        assert [answer(base, LONG)] == nearly([long_answer])
        assert eventually(lambda: stored(base) >= 4) and at_rest(base)
    with on_gpus(model, "-pp", "2", *ALONE, shared_storage(tmp_path), nccl=True) as base:
        assert [answer(base, LONG)] == nearly([long_answer])
        assert eventually(lambda: hits(base) >= 48)


def test_a_prompt_moves_from_ranks_to_ranks_of_another_layout(model, long_answer):  # noqa: F811
    with (on_gpus(model, "-tp", "2", *ALONE, config("kv_producer"), nccl=True) as producer,
          on_gpus(model, "-pp", "2", *ALONE, config("kv_consumer")) as consumer):
        assert eventually(lambda: all("vllm:kv_transfer_held_blocks" in fetch(base + "/metrics") for base in (producer, consumer)))
        body = {"model": "demo", "prompt": LONG, "temperature": 0, "logprobs": 1}
        first = client_of(producer).completions.create(**body, max_tokens=1, extra_body={"kv_transfer_params": ASK})
        params = first.model_extra["kv_transfer_params"]
        got = client_of(consumer).completions.create(**body, max_tokens=10, extra_body={"kv_transfer_params": params, "ignore_eos": True}).choices[0]
        assert eventually(lambda: moved(consumer) > 0) and failures(consumer) == 0
    assert [(got.text, got.logprobs.token_logprobs)] == nearly([long_answer])


def test_adapters_on_ranks(tmp_path):
    base_model = tiny("qwen3", tmp_path)
    flags = ("--enable-lora", "--max-lora-rank", "8", "--lora-modules", "one=tests/data/adapters/qwen3")

    def both(base):
        def logprobs(name):
            choice = client_of(base).completions.create(model=name, prompt=PROMPTS[0], max_tokens=8, temperature=0, logprobs=1, extra_body={"ignore_eos": True}).choices[0]
            return choice.logprobs.token_logprobs
        return [logprobs("demo"), logprobs("one"), logprobs("demo")]

    with on_gpus(base_model, *flags, *ALONE) as base:
        alone = both(base)
    assert alone[0] == alone[2] != alone[1]
    with on_gpus(base_model, *flags, "-tp", "2", nccl=True) as base:
        assert both(base) == [pytest.approx(logprobs, abs=1e-3) for logprobs in alone]


def test_a_grammar_holds_over_stages(model):  # noqa: F811
    with on_gpus(model, "-pp", "2", nccl=True) as base:
        text = client_of(base).completions.create(model="demo", prompt=PROMPTS[0], max_tokens=8, temperature=1,
                                                  extra_body={"structured_outputs": {"regex": "[Ā-Ĉ]{6}"}}).choices[0].text
    letters = text.split()  # this tokenizer writes a space between two tokens
    assert len(letters) == 6 and all("Ā" <= letter <= "Ĉ" for letter in letters)


@pytest.mark.parametrize("flags", [ALONE, ("-tp", "2")])
def test_an_engine_sleeps_and_wakes_to_the_same_answers(flags, model):  # noqa: F811
    with on_gpus(model, *flags, "--server-dev-mode", "--enable-sleep-mode", nccl="-tp" in flags) as base:
        before = answers(base)
        for _ in range(2):
            assert http_client.post(base + "/sleep?level=1").status_code == 200
            assert http_client.get(base + "/is_sleeping").json() == {"is_sleeping": True}
            assert http_client.post(base + "/wake_up").status_code == 200
            assert answers(base) == before


@pytest.mark.parametrize("flags", [ALONE, ("-tp", "2")])
def test_an_engine_without_memory_for_its_cache_stays_asleep(flags, model, tmp_path):  # noqa: F811
    with on_gpus(model, *flags, "--server-dev-mode", "--enable-sleep-mode", nccl=True, variables=[f"EMULATED_GPU_FULL={tmp_path}"]) as base:
        before = answers(base)
        (last,) = ranks(base) if "-tp" in flags else processes("--run-engine", base.rsplit(":", 1)[1])
        assert http_client.post(base + "/sleep?level=1").status_code == 200
        (tmp_path / str(last)).touch()
        for _ in range(2):
            refused = http_client.post(base + "/wake_up")
            assert refused.status_code == 503 and "the engine stays asleep" in refused.text, refused.text
            assert http_client.get(base + "/is_sleeping").json() == {"is_sleeping": True}
        (tmp_path / str(last)).unlink()
        assert http_client.post(base + "/wake_up").status_code == 200
        assert answers(base) == before


@pytest.mark.parametrize("flags", [("--n-cpu-moe", "auto", "--cpu-offload-gb", "0.00001"), ("--cpu-offload-gb", "1")])
def test_weights_in_host_memory_change_no_bit(flags, model, one, capfd):  # noqa: F811
    with on_gpus(model, *ALONE, *flags) as base:
        assert answers(base) == one
    assert "over PCIe" in capfd.readouterr().err


@pytest.mark.parametrize("flags", [(), ("--enforce-eager",), ("-tp", "2"), ("--enable-expert-parallel", "-tp", "2")])
def test_the_cpu_computes_experts(flags, capfd):
    def completion(base):
        body = {"model": "demo", "prompt": "One two three", "max_tokens": 8, "temperature": 0, "logprobs": 1}
        choice = client_of(base).completions.create(**body, extra_body={"ignore_eos": True}).choices[0]
        return choice.text, choice.logprobs.token_logprobs

    with on_gpus("models/demo-moe", "--dtype", "float32") as base:
        expected = completion(base)
    with on_gpus("models/demo-moe", "--dtype", "float32", "--n-cpu-moe", "1000", *flags, nccl="-tp" in flags) as base:
        text, logprobs = completion(base)
    assert text == expected[0] and logprobs == pytest.approx(expected[1], abs=1e-3)
    assert "computes experts of 2 layers" in capfd.readouterr().err
