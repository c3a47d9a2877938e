"""Fit a small EAGLE head for the exported main model by least squares: a minute in place of a training.

    python fit_eagle.py --model ../../models/demo --rows DIR --out DIR

EAGLE (Li et al., 2024) proposes the model's next hidden state from the last one and
the token behind it. This head does so by its first product alone: its layer is as
narrow as a layer can be, and adds nothing. The second fit has the states that the
first one has proposed itself, since the head goes on from its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor

from corpus import SHORT_ROW
from model import MAIN, LanguageModel
from train import Rows

DIM = MAIN.hidden_size
HEAD = 32  # of the layer that adds nothing: its one head, and its MLP
RIDGE = 1e-3


@torch.no_grad()
def read(model: LanguageModel, rows: Rows, count: int) -> tuple[Tensor, Tensor]:
    """Embeddings and last hidden states [rows, T, D]."""
    parts = [rows.batch(start, 4)[0] for start in range(0, count, 4)]
    states = torch.cat([model.hidden(tokens) for tokens in parts])
    return model.model.embed_tokens(torch.cat(parts)), states


def fit(inputs: Tensor, targets: Tensor) -> Tensor:
    """W [D, 2 D + 1] of least |W inputs - targets|, in f64."""
    x, y = inputs.double(), targets.double()
    gram = x.T @ x
    gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.double)
    return torch.linalg.solve(gram, x.T @ y).T.float()


def inputs_of(embedded: Tensor, states: Tensor) -> Tensor:
    return torch.cat([embedded, states, torch.ones(*states.shape[:-1], 1)], dim=-1)


def agreement(weight: Tensor, model: LanguageModel, embedded: Tensor, states: Tensor) -> list[float]:
    """How often the first, the second and the third draft token are what the model says."""
    said = F.linear(states, model.model.embed_tokens.weight).argmax(-1)
    found, x = [], states
    for step in range(1, 4):
        x = inputs_of(embedded[:, step:], x[:, :-1]) @ weight.T
        draft_tokens = F.linear(x, model.model.embed_tokens.weight).argmax(-1)
        found.append((draft_tokens == said[:, step:]).float().mean().item())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=40, help="rows of text")
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = LanguageModel(MAIN)
    model.load_state_dict({name: t.float() for name, t in load_file(args.model / "model.safetensors").items()})
    embedded, states = read(model, Rows(args.rows, "train", SHORT_ROW), args.count)
    first = inputs_of(embedded[:, 1:], states[:, :-1])
    weight = fit(first.flatten(0, 1), states[:, 1:].flatten(0, 1))
    own = first @ weight.T
    second = inputs_of(embedded[:, 2:], own[:, :-1])
    weight = fit(torch.cat([first.flatten(0, 1), second.flatten(0, 1)]),
                 torch.cat([states[:, 1:].flatten(0, 1), states[:, 2:].flatten(0, 1)]))
    held = read(model, Rows(args.rows, "heldout", SHORT_ROW), 16)
    print("agreement by draft token: " + " ".join(f"{share:.3f}" for share in agreement(weight, model, *held)))

    shapes = {"self_attn.q_proj": (HEAD, DIM), "self_attn.k_proj": (HEAD, DIM), "self_attn.v_proj": (HEAD, DIM), "self_attn.o_proj": (DIM, HEAD),
              "mlp.gate_proj": (HEAD, DIM), "mlp.up_proj": (HEAD, DIM), "mlp.down_proj": (DIM, HEAD)}
    tensors = {f"layers.0.{name}.weight": torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes.items()}
    tensors["layers.0.post_attention_layernorm.weight"] = torch.ones(DIM, dtype=torch.bfloat16)
    tensors["fc.weight"] = weight[:, : 2 * DIM].bfloat16().contiguous()
    tensors["fc.bias"] = weight[:, 2 * DIM].bfloat16().contiguous()
    args.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, args.out / "model.safetensors")
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", vocab_size=MAIN.vocab_size, hidden_size=DIM, intermediate_size=HEAD,
                  num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=HEAD, hidden_act="silu",
                  max_position_embeddings=MAIN.max_position_embeddings, rms_norm_eps=MAIN.rms_norm_eps, rope_theta=MAIN.rope_theta,
                  tie_word_embeddings=False, torch_dtype="bfloat16")
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
