"""Makes the small demo model with experts from the draft model, and trains it for some minutes on one thread.

    python fit_moe.py --model ../../models/demo-draft --rows DIR --out ../../models/demo-moe

Every expert begins as the draft model's MLP, so the initial model equals the draft model (Komatsuzaki et al., "Sparse
Upcycling", ICLR 2023). Routers begin with random weights, so that the experts become different. The balance of
experts is a part of the loss (Fedus et al., "Switch Transformers", 2021). The folder contains a `Qwen3MoeForCausalLM`
with the draft's tokenizer. Its logits are compared with transformers'.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from corpus import LONG_ROW, SHORT_ROW
from model import DRAFT, MLP, LanguageModel, ModelConfig
from train import Rows

EXPERTS = 8
CHOSEN = 2
BALANCE = 0.01
BATCH_TOKENS = 4096
RATE = 5e-4
WARMUP_STEPS = 30


class Experts(nn.Module):
    """The MLPs that a router selects for each token. balance: loss of balance of the last batch."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.hidden_size, EXPERTS, bias=False)
        self.experts = nn.ModuleList(MLP(config) for _ in range(EXPERTS))
        self.balance = torch.tensor(0.0)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        shares = self.gate(rows).float().softmax(-1)
        weights, chosen = shares.topk(CHOSEN, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        used = F.one_hot(chosen, EXPERTS).float().mean((0, 1))
        self.balance = EXPERTS * (used * shares.mean(0)).sum()
        out = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            token, place = (chosen == number).nonzero(as_tuple=True)
            out = out.index_add(0, token, (expert(rows[token]) * weights[token, place, None]).to(rows.dtype))
        return out.view_as(x)


def upcycled(folder: Path) -> LanguageModel:
    """Returns the draft model of `folder`, in which every expert is a copy of its MLP."""
    model = LanguageModel(DRAFT)
    model.load_state_dict({name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()})
    for layer in model.model.layers:
        experts = Experts(DRAFT)
        nn.init.normal_(experts.gate.weight, std=0.02)
        for expert in experts.experts:
            expert.load_state_dict(layer.mlp.state_dict())
        layer.mlp = experts
    return model


def train(model: LanguageModel, rows: Path, steps: int) -> None:
    """Trains with AdamW, a short warm-up and a rate that falls linearly to zero. Every eighth step has long rows."""
    data = {length: Rows(rows, "train", length) for length in (SHORT_ROW, LONG_ROW)}
    held_out = Rows(rows, "heldout", SHORT_ROW).batch(0, 16)
    served = dict.fromkeys(data, 0)
    adam = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0)
    began = time.monotonic()
    for step in range(steps):
        length = LONG_ROW if step % 8 == 1 else SHORT_ROW
        count = BATCH_TOKENS // length
        tokens, targets = data[length].batch(served[length], count)
        served[length] += count
        with torch.autocast("cpu", torch.bfloat16):
            loss = model.loss(tokens, targets)
        balance = sum(layer.mlp.balance for layer in model.model.layers)
        (loss + BALANCE * balance).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARMUP_STEPS) * (1 - step / steps)
        adam.step()
        model.zero_grad()
        if step % 50 == 0 or step == steps - 1:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                held = model.loss(*held_out).item()
            print(f"step {step} of {steps}  loss {loss.item():.4f}  held out {held:.4f}  balance {balance.item():.3f}  "
                  f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip


def export(model: LanguageModel, source: Path, out: Path, tokens: int) -> float:
    """Writes the folder. Returns the largest difference of logits between transformers and our model, in float32."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(source / name, out / name)
    config = json.loads((source / "config.json").read_text())
    config |= dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_experts=EXPERTS, num_experts_per_tok=CHOSEN,
                   moe_intermediate_size=DRAFT.intermediate_size, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])  # fmt: skip
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    seen = json.loads((source / "training.json").read_text())["tokens"]
    (out / "training.json").write_text(json.dumps({"tokens": seen + tokens}, indent=2) + "\n")
    weights = {name: weight.bfloat16().contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})

    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    theirs = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    probe = torch.randint(0, DRAFT.vocab_size, (2, 300), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (theirs(probe).logits - model.eval()(probe)).abs().max().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="the exported draft model")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=float, default=8e5, help="that it is trained with")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = upcycled(args.model)
    steps = math.ceil(args.tokens / BATCH_TOKENS)
    train(model, args.rows, steps)
    difference = export(model, args.model, args.out, steps * BATCH_TOKENS)
    if difference > 2e-3:
        raise SystemExit(f"transformers' logits differ by {difference}")
    print(f"{args.out}: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters, logits within {difference:.1e} of transformers")


if __name__ == "__main__":
    main()
