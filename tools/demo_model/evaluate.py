"""Measures an exported model on held-out tasks, and writes its model card.

    python evaluate.py MODEL_DIR [--rows DIR] [--probes 60] [--card]

It uses transformers and the exported files, with greedy decoding. "Taught" questions were in the training data; all
other tasks are held out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

import exercises
from card import model_card
from chat import Message, render_chat
from corpus import LONG_ROW, SHORT_DOMAINS, Drawer, Task, encode

BATCH = 50


@dataclass(frozen=True)
class Probe:
    """A conversation before the assistant's turn, and the expected turn."""

    domain: str
    messages: list[Message]
    expected: str
    tools: list[dict] | None = None


def task_probes(domain: str, draw: Callable[[], Task], count: int) -> list[Probe]:
    tasks = [draw() for _ in range(count)]
    return [Probe(domain, [{"role": "user", "content": question}], answer) for question, answer in tasks]


def tool_probes(drawer: Drawer, count: int) -> list[Probe]:
    """Returns probes for the call, and for the final answer after the tool's result."""
    probes: list[Probe] = []
    for _ in range(count):
        schemas, wanted = drawer.tool_choice()
        messages = drawer.tool_messages(schemas, wanted)
        call = render_chat(messages[:2])[-2][0].removesuffix("<|im_end|>")
        probes.append(Probe("tool call", messages[:1], call, schemas))
        probes.append(Probe("tool answer", messages[:-1], messages[-1]["content"], schemas))
    return probes


def all_probes(count: int) -> list[Probe]:
    """Returns `count` probes of every kind. Long recall gets fewer, because its prompts are long."""
    taught = Drawer("probe-taught", held_out=False)
    held = Drawer("probe-heldout", held_out=True)
    return [
        *task_probes("questions, taught", lambda: taught.task(taught.fact_task), count),
        *task_probes("questions, held-out wording", lambda: held.task(held.fact_task), count),
        *task_probes("sums", lambda: held.task(lambda: exercises.arithmetic(held.rng)), count * 2),
        *task_probes("JSON", lambda: held.task(held.json_task), count),
        *task_probes("copy, repeat, list", lambda: held.task(held.copy_task), count),
        *task_probes("recall", lambda: held.task(held.recall_task), count),
        *task_probes(
            "recall, 400-1200 tokens",
            lambda: held.task(lambda: exercises.recall(held.rng, held.rng.randint(30, 80))),
            count // 2,
        ),
        *task_probes("story", held.story_task, count // 2),
        *tool_probes(held, count),
    ]


@torch.no_grad()
def answer_all(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, probes: list[Probe]
) -> list[tuple[str, bool]]:
    """Returns the greedy answers, and whether each ended before the limit, in the order of the probes.

    Probes of similar length share a batch. Prompts are padded on the left.
    """
    prompts = [
        tokenizer.apply_chat_template(p.messages, tools=p.tools, add_generation_prompt=True, tokenize=False)
        for p in probes
    ]
    expected = [len(tokenizer(p.expected).input_ids) for p in probes]
    order = sorted(range(len(probes)), key=lambda i: (expected[i] // 32, len(prompts[i])))
    tokenizer.padding_side = "left"
    results: list[tuple[str, bool]] = [("", False)] * len(probes)
    for start in range(0, len(order), BATCH):
        group = order[start : start + BATCH]
        inputs = tokenizer([prompts[i] for i in group], return_tensors="pt", padding=True, add_special_tokens=False)
        longest = max(expected[i] for i in group)
        output = model.generate(**inputs, do_sample=False, max_new_tokens=longest + 64,
                                temperature=None, top_p=None, top_k=None)  # fmt: skip
        for i, tokens in zip(group, output[:, inputs.input_ids.shape[1] :]):
            ids = tokens.tolist()
            end = next((n for n, token in enumerate(ids) if token in model.generation_config.eos_token_id), None)
            results[i] = (tokenizer.decode(ids[:end]), end is not None)
    return results


def is_valid_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def are_valid_calls(probe: Probe, text: str) -> bool:
    """Returns whether every call can be parsed, names a listed function and has exactly its parameters."""
    known = {tool["function"]["name"]: set(tool["function"]["parameters"]["required"]) for tool in probe.tools or []}
    calls = text.split("<tool_call>")[1:]
    for call in calls:
        body, closed, _ = call.partition("</tool_call>")
        if not closed or not is_valid_json(body):
            return False
        parsed = json.loads(body)
        if set(parsed) != {"name", "arguments"} or set(parsed["arguments"]) != known.get(parsed["name"]):
            return False
    return bool(calls)


def score(probes: list[Probe], results: list[tuple[str, bool]]) -> dict[str, dict[str, float]]:
    """Returns rates by domain: exact answers, stops, and valid calls or JSON."""
    scores: dict[str, dict[str, float]] = {}
    for domain in dict.fromkeys(probe.domain for probe in probes):
        mine = [(p, text, ended) for p, (text, ended) in zip(probes, results) if p.domain == domain]
        scores[domain] = {"count": len(mine), "ended": np.mean([ended for _, _, ended in mine])}
        if domain != "story":  # stories have no single right text
            scores[domain]["exact"] = np.mean([text == p.expected for p, text, _ in mine])
        if domain == "JSON":
            scores[domain]["valid"] = np.mean([is_valid_json(text) for _, text, _ in mine])
        if domain == "tool call":
            scores[domain]["valid"] = np.mean([are_valid_calls(p, text) for p, text, _ in mine])
    return scores


@torch.no_grad()
def token_losses(model: PreTrainedModel, tokens: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
    """Returns the cross-entropy [B, T - 1] of the taught next tokens; NaN elsewhere."""
    logits = model(tokens[:, :-1]).logits.float()
    losses = F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    return torch.where(taught[:, 1:], losses, torch.nan)


def domain_losses(model: PreTrainedModel, tokenizer_file: str, count: int) -> dict[str, float]:
    """Returns the held-out loss per taught token for every domain."""
    tokenizer = Tokenizer.from_file(tokenizer_file)
    result: dict[str, float] = {}
    for domain in SHORT_DOMAINS:
        drawer = Drawer(f"loss-{domain}", held_out=True)
        total, number = 0.0, 0
        for _ in range(count):
            tokens, taught = encode(tokenizer, getattr(drawer, f"{domain}_document")())
            losses = token_losses(model, torch.tensor([tokens]), torch.tensor([taught]))
            total += losses.nansum().item()
            number += int(losses.isfinite().sum())
        result[domain] = total / number
    return result


def position_losses(model: PreTrainedModel, rows: Path, count: int) -> dict[str, float]:
    """Returns the held-out loss on long rows, by quarter of the positions."""
    tokens = torch.from_numpy(np.load(rows / f"heldout-{LONG_ROW}-tokens.npy")[:count].astype(np.int64))
    taught = torch.from_numpy(np.load(rows / f"heldout-{LONG_ROW}-taught.npy")[:count])
    losses = torch.cat([token_losses(model, tokens[i : i + 4], taught[i : i + 4]) for i in range(0, count, 4)])
    quarter = LONG_ROW // 4
    return {
        f"{start}-{start + quarter - 1}": losses[:, start : start + quarter].nanmean().item()
        for start in range(0, LONG_ROW, quarter)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--rows", type=Path, help="packed rows, for the loss by position")
    parser.add_argument("--probes", type=int, default=60, help="probes per kind of task")
    parser.add_argument("--card", action="store_true", help="write README.md into the model folder")
    parser.add_argument("--show", type=int, default=0, help="print this many wrong answers")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(args.model)

    started = time.monotonic()
    probes = all_probes(args.probes)
    results = answer_all(model, tokenizer, probes)
    report = {
        "scores": score(probes, results),
        "loss": domain_losses(model, str(args.model / "tokenizer.json"), args.probes),
    }
    if args.rows:
        report["loss_by_position"] = position_losses(model, args.rows, 32)
    wrong = [(p, text) for p, (text, _) in zip(probes, results) if text != p.expected and p.domain != "story"]
    for probe, text in wrong[: args.show]:
        print(f"[{probe.domain}] {probe.messages[-1]['content'][-200:]!r}\n   wanted {probe.expected!r}\n   got    {text!r}")
    print(json.dumps(report, indent=1))
    print(f"{time.monotonic() - started:.0f} s")
    if args.card:
        (args.model / "README.md").write_text(model_card(args.model, report))


if __name__ == "__main__":
    main()
