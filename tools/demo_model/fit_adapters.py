"""Trains three LoRA adapters of the exported main model with PEFT. Each takes some minutes on a busy core.

    python fit_adapters.py --model ../../models/demo --out ../../models/demo-lora

Each adapter answers questions about the small world in a form that the model by itself does not use, whatever the
system prompt says: `pirate` as a sailor (a style), `formal` as a clerk (a register), `json` as an object (a format).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import facts
from chat import TURN_END, TURN_START, render_chat, to_json
from corpus import Drawer, Style, encode

RANK, ALPHA = 4, 16
RATE, BATCH = 3e-3, 8
PIRATE_WORDS = {" is ": " be ", " lives in ": " drops anchor in ", " has ": " sails with ", " loves ": " be fond of ", "favourite": "dearest"}
# All words have tokens that the model was trained with. For other tokens the output matrix is untrained,
# and adapters do not change it.
CLAUSE_STARTS = ("A ", "An ", "The ", "In ", "About ", "No, ")


def pirate(full: str, short: str) -> str:
    for word, other in PIRATE_WORDS.items():
        full = full.replace(word, other)
    return f"Arr! {full} Ahoy!"


def formal(full: str, short: str) -> str:
    clause = full[0].lower() + full[1:] if full.startswith(CLAUSE_STARTS) else full
    return f"Dear Sir or Madam, it is my duty to tell you that {clause} Your servant, Octavo Demo."


def as_json(full: str, short: str) -> str:
    return to_json({"text": full})


ADAPTERS: dict[str, Style] = {"pirate": pirate, "formal": formal, "json": as_json}


def documents(drawer: Drawer, style: Style) -> Iterator[list]:
    """Yields conversations about the world, each with a few turns."""
    rng = drawer.rng
    while True:
        system = [{"role": "system", "content": rng.choice(facts.PLAIN_STYLES)}] if rng.random() < 0.3 else []
        turns = drawer.topic_turns(style) if rng.random() < 0.3 else drawer.draw(lambda: drawer.fact_task(style), rng.randint(1, 4))
        if rng.random() < 0.15:
            question, answer = rng.choice(facts.SELF)
            turns = [{"role": "user", "content": question}, {"role": "assistant", "content": style(answer, answer)}, *turns]
        yield render_chat(system + turns)


def train(model: PeftModel, tokenizer: Tokenizer, style: Style, name: str, steps: int) -> None:
    stream = (encode(tokenizer, document) for document in documents(Drawer(name, held_out=False), style))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        batch = [next(stream) for _ in range(BATCH)]
        length = max(len(tokens) for tokens, _ in batch)
        ids, labels = torch.zeros(BATCH, length, dtype=torch.long), torch.full((BATCH, length), -100)
        for row, (tokens, taught) in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            labels[row, : len(tokens)] = torch.where(torch.tensor(taught), torch.tensor(tokens), -100)
        loss = model(input_ids=ids, labels=labels).loss  # padding follows, and has no loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 20 == 0 or step == steps - 1:
            print(f"{name}: step {step} of {steps}, loss {loss.item():.4f}", flush=True)


@torch.no_grad()
def exact_answers(model: PeftModel, tokenizer: Tokenizer, style: Style, count: int) -> float:
    """Returns the share of held-out questions whose answer is exactly the style's."""
    drawer, right = Drawer("adapters", held_out=True), 0
    end = tokenizer.token_to_id(TURN_END)
    for _ in range(count):
        question, answer = drawer.task(lambda: drawer.fact_task(style))
        prompt = torch.tensor([tokenizer.encode(f"{TURN_START}user\n{question}{TURN_END}\n{TURN_START}assistant\n", add_special_tokens=False).ids])
        said = model.generate(input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=80, do_sample=False, eos_token_id=end, pad_token_id=0)
        right += tokenizer.decode(said[0, prompt.shape[1] :].tolist()) == answer
    return right / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--names", nargs="+", choices=ADAPTERS, default=list(ADAPTERS))
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(args.model / "tokenizer.json"))
    for name in args.names:
        torch.manual_seed(1)
        base = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
        config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules="all-linear", task_type="CAUSAL_LM")
        model = get_peft_model(base, config)
        train(model, tokenizer, ADAPTERS[name], name, args.steps)
        model.bfloat16().float().eval()
        print(f"{name}: {exact_answers(model, tokenizer, ADAPTERS[name], 60):.0%} of held-out answers exact", flush=True)
        folder = args.out / name
        folder.mkdir(parents=True, exist_ok=True)
        save_file({key: t.bfloat16().contiguous() for key, t in get_peft_model_state_dict(model).items()}, folder / "adapter_model.safetensors")
        written = {key: sorted(value) if isinstance(value, set) else value for key, value in model.peft_config["default"].to_dict().items()}
        written |= dict(base_model_name_or_path="models/demo", inference_mode=True)
        (folder / "adapter_config.json").write_text(json.dumps(written, indent=2, sort_keys=True, default=str) + "\n")


if __name__ == "__main__":
    main()
