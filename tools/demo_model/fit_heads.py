"""Trains Medusa heads and an MLP speculator for the exported main model, from its hidden states. This takes some minutes
on an idle core.

    python fit_heads.py medusa --model ../../models/demo --rows DIR --out DIR
    python fit_heads.py mlp_speculator --model ../../models/demo --rows DIR --out DIR

Medusa (Cai et al., 2024): head i proposes the token at distance i + 2 from the state only. The output matrix is the
model's. MLP speculator (Wertheimer et al., 2024): each position passes its state to the next one and adds the last
proposed token. All positions share one set of matrices. Both are written in the layout that vLLM reads.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from corpus import SHORT_ROW
from model import MAIN, LanguageModel
from train import Rows

DIM = MAIN.hidden_size
PLACES, BLOCKS, INNER = 3, 2, 256
BATCH, RATE = 512, 2e-3


class Medusa(nn.Module):
    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"layers": nn.ModuleList(nn.Linear(DIM, DIM, bias=False) for _ in range(BLOCKS))}) for _ in range(PLACES))
        for weight in self.parameters():
            nn.init.zeros_(weight)
        self.output = [output]  # not trained

    def forward(self, state: Tensor, tokens: Tensor) -> list[Tensor]:
        """Returns the logits of each position, [N, vocab]. Does not read tokens [N, PLACES]."""
        found = []
        for block in self.blocks:
            x = state
            for layer in block["layers"]:
                x = x + F.silu(layer(x))
            found.append(F.linear(x, self.output[0]))
        return found

    def config(self) -> dict:
        return dict(architectures=["MedusaModel"], model_type="medusa", hidden_size=DIM, vocab_size=MAIN.vocab_size, num_heads=PLACES,
                    num_hidden_layers=BLOCKS, torch_dtype="bfloat16")


class MlpSpeculator(nn.Module):
    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self.emb = nn.ModuleList([nn.Embedding(MAIN.vocab_size, INNER)])
        self.proj = nn.ModuleList([nn.Linear(DIM, INNER, bias=False), nn.Linear(INNER, INNER, bias=False)])
        self.ln = nn.ParameterDict({"weight": torch.ones(INNER), "bias": torch.zeros(INNER)})
        self.head = nn.ModuleList([nn.Linear(INNER, MAIN.vocab_size, bias=False)])
        nn.init.normal_(self.emb[0].weight, std=INNER**-0.5)
        with torch.no_grad():
            self.head[0].weight.copy_(output)

    def forward(self, state: Tensor, tokens: Tensor) -> list[Tensor]:
        """Returns the logits of each position, [N, vocab], after tokens [N, PLACES]."""
        kept = 0.5 ** (0.5 / PLACES)
        taken = math.sqrt((1 - kept**2) * INNER / 2) / kept
        found = []
        for place in range(PLACES):
            x = self.proj[min(place, 1)](state) + taken * self.emb[0](tokens[:, place])
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            state = F.gelu(self.ln["weight"] * x + self.ln["bias"])
            found.append(self.head[0](state))
        return found

    def config(self) -> dict:
        return dict(architectures=["MLPSpeculatorPreTrainedModel"], model_type="mlp_speculator", emb_dim=DIM, inner_dim=INNER, n_predict=PLACES,
                    vocab_size=MAIN.vocab_size, tie_weights=True, scale_input=False, top_k_tokens_per_head=[1] * PLACES, torch_dtype="bfloat16")


def examples(model: LanguageModel, rows: Rows, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns states [N, DIM], the tokens after each state [N, PLACES], and the model's predictions after those [N,
    PLACES]."""
    states, tokens, said = [], [], []
    for start in range(0, count, 4):
        ids = rows.batch(start, 4)[0]
        with torch.no_grad():
            hidden = model.hidden(ids)
            best = F.linear(hidden, model.model.embed_tokens.weight).argmax(-1)
        length = ids.shape[1] - PLACES
        states.append(hidden[:, :length].flatten(0, 1))
        tokens.append(torch.stack([ids[:, 1 + i : 1 + i + length] for i in range(PLACES)], -1).flatten(0, 1))
        said.append(torch.stack([best[:, 1 + i : 1 + i + length] for i in range(PLACES)], -1).flatten(0, 1))
    return torch.cat(states), torch.cat(tokens), torch.cat(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["medusa", "mlp_speculator"])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=400, help="rows of text")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = LanguageModel(MAIN)
    model.load_state_dict({name: t.float() for name, t in load_file(args.model / "model.safetensors").items()})
    states, tokens, said = examples(model, Rows(args.rows, "train", SHORT_ROW), args.count)
    held = examples(model, Rows(args.rows, "heldout", SHORT_ROW), 16)
    output = model.model.embed_tokens.weight.detach()
    heads = Medusa(output) if args.kind == "medusa" else MlpSpeculator(output)
    steps = args.epochs * (len(states) // BATCH)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.05)
    order = torch.cat([torch.randperm(len(states)) for _ in range(args.epochs)])
    for step in range(steps):
        at = order[step * BATCH : (step + 1) * BATCH]
        logits = heads(states[at], tokens[at])
        loss = sum(0.8**place * F.cross_entropy(x, said[at, place]) for place, x in enumerate(logits))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step} of {steps}, loss {loss.item():.3f}", flush=True)
    with torch.no_grad():
        found = [(x.argmax(-1) == held[2][:, place]).float().mean().item() for place, x in enumerate(heads(held[0], held[1]))]
    print("agreement by draft token: " + " ".join(f"{share:.3f}" for share in found))
    tensors = {name.replace("ln.", "ln.0."): t.detach().bfloat16().contiguous() for name, t in heads.state_dict().items()}
    args.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, args.out / "model.safetensors")
    (args.out / "config.json").write_text(json.dumps(heads.config(), indent=2) + "\n")


if __name__ == "__main__":
    main()
