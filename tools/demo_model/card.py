"""The model card: the model, its training and its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from model import CONFIGS

TEXT = """\
# {title}

{size:.2f}M parameters, bf16, Hugging Face layout (`Qwen3ForCausalLM`). Trained from scratch,
on a CPU, on text that `tools/demo_model` generates. It exists so that Octavo can be shown and
tested with a model that was really trained: it tells stories about its own small world, answers
what it was taught, writes JSON and calls tools. It was also trained on sums, copying, repeating
and recall; the table below says how far each of these got. It knows nothing of the real world and
must not be used to learn about it.

## Architecture

| | |
|---|---|
| layers | {num_hidden_layers} |
| hidden / feed-forward size | {hidden_size} / {intermediate_size} |
| query / key-value heads | {num_attention_heads} / {num_key_value_heads}, {head_dim} wide |
| vocabulary | {vocab_size}, byte-level BPE, embeddings tied to the output |
| context | {max_position_embeddings} positions, RoPE with theta {rope_theta:.0f} |

Chat format: ChatML with `<tools>`, `<tool_call>` and `<tool_response>`. A turn ends with
`<|im_end|>`, a plain document with `<|endoftext|>`.

## Data and training

Everything is generated from fixed seeds: 48 people, 16 places, 24 animals and 24 things with
fixed facts; stories and portraits, questions with system prompts and follow-ups, JSON records,
sums, tool calls with replies, copying, counting and lists, recall from long lists. One key in
twenty (a question, or the hero and object of a story) is held out of training. Loss is taken on
stories and on the assistant's own words. Muon on hidden matrices, AdamW on the rest, rows of 512
tokens with some of 2048.

These weights saw {tokens:.1f}M tokens. The figures below are of these very weights.

## Measured on held-out data

Greedy decoding through transformers in float32 on these bf16 weights.

| task | probes | exact | valid | ended by itself |
|---|---|---|---|---|
{scores}

| domain | loss per taught token (nats) |
|---|---|
{losses}

| positions (rows of 2048) | loss |
|---|---|
{positions}

## Made by

`tools/demo_model/make_demo.sh` makes the tokenizer, the data, both models and this page again.
"""


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def model_card(folder: Path, report: dict[str, Any]) -> str:
    """Returns README.md for the model in `folder`. Reads `training.json`, which describes the training."""
    config = json.loads((folder / "config.json").read_text())
    training = json.loads((folder / "training.json").read_text())
    main = config["num_hidden_layers"] == CONFIGS["main"].num_hidden_layers
    scores = [
        f"| {domain} | {s['count']} | {percent(s.get('exact'))} | {percent(s.get('valid'))} | {percent(s['ended'])} |"
        for domain, s in report["scores"].items()
    ]
    weights = (folder / "model.safetensors").stat().st_size
    return TEXT.format(
        title="Octavo demo model" if main else "Octavo demo draft model",
        size=weights / 2e6,
        tokens=training["tokens"] / 1e6,
        scores="\n".join(scores),
        losses="\n".join(f"| {domain} | {loss:.3f} |" for domain, loss in report["loss"].items()),
        positions="\n".join(f"| {part} | {loss:.3f} |" for part, loss in report.get("loss_by_position", {}).items()),
        **config,
    )
