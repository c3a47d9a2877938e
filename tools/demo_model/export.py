"""Writes a trained checkpoint as a Hugging Face model folder, and checks it.

    python export.py main --checkpoints DIR --tokenizer DIR --out DIR

The checks: transformers' Qwen3 gives the logits of the training model, and the exported chat template renders exactly
the texts of the training.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import toolcalls
from chat import END_OF_TEXT, TURN_END, render_chat
from corpus import WORLD
from model import CONFIGS, LanguageModel, ModelConfig
from train import BATCH_TOKENS


def hf_config(config: ModelConfig, end_of_text: int, turn_end: int) -> dict[str, object]:
    """Returns config.json of a Qwen3 model of these sizes."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "max_position_embeddings": config.max_position_embeddings,
        "rope_theta": config.rope_theta,
        "rope_scaling": None,
        "rms_norm_eps": config.rms_norm_eps,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": turn_end,
        "pad_token_id": end_of_text,
        "torch_dtype": "bfloat16",
    }


def write_json(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def check_logits(folder: Path, model: LanguageModel) -> float:
    """Returns the largest difference of logits between transformers and our model, in float32."""
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.randint(0, model.config.vocab_size, (2, 300), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        difference = (theirs(tokens).logits - model(tokens)).abs().max().item()
    if difference > 2e-3:
        raise SystemExit(f"transformers' logits differ by {difference}")
    return difference


def check_template(folder: Path) -> None:
    """Checks that the exported template renders the texts of the training data."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rng = Random(5)
    schemas = [tool for tool, _ in toolcalls.TOOLS[:3]]
    use = toolcalls.weather(rng, WORLD)
    plain = [{"role": "user", "content": "Hello Zoë 🌟"}, {"role": "assistant", "content": "Hello!"}]
    system = [{"role": "system", "content": "Be very polite."}]
    calls = toolcalls.call_messages(use, "get_weather")
    parallel = toolcalls.parallel_messages(use, toolcalls.weather(rng, WORLD), "get_weather")
    for messages, tools in [(plain, None), (system + plain, None), (plain + calls, schemas),
                            (system + parallel + plain, schemas)]:  # fmt: skip
        shipped = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        trained = "".join(text for text, _ in render_chat(messages, tools))
        if shipped != trained:
            raise SystemExit(f"the template renders\n{shipped}\nbut training saw\n{trained}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=CONFIGS)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(args.tokenizer / name, args.out / name)
    ids = {entry["content"]: entry["id"] for entry in json.loads((args.out / "tokenizer.json").read_text())["added_tokens"]}
    end_of_text, turn_end = ids[END_OF_TEXT], ids[TURN_END]

    model = LanguageModel(CONFIGS[args.model])
    state = torch.load(args.checkpoints / f"{args.model}.pt")
    model.load_state_dict(state["model"])
    write_json(args.out / "training.json", {"tokens": state["tokens_before"] + state["step"] * BATCH_TOKENS})
    weights = {name: weight.to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, args.out / "model.safetensors", metadata={"format": "pt"})
    write_json(args.out / "config.json", hf_config(model.config, end_of_text, turn_end))
    write_json(
        args.out / "generation_config.json",
        {"do_sample": True, "temperature": 0.7, "top_p": 0.95, "top_k": 40,
         "eos_token_id": [turn_end, end_of_text], "pad_token_id": end_of_text},
    )  # fmt: skip

    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    difference = check_logits(args.out, model.eval())
    check_template(args.out)
    size = sum(file.stat().st_size for file in args.out.iterdir())
    print(f"{args.out}: {size / 1e6:.2f} MB, logits within {difference:.1e} of transformers, template agrees")


if __name__ == "__main__":
    main()
