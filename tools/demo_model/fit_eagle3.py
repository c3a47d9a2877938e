"""Trains an EAGLE-3 head for the exported main model.

    python fit_eagle3.py --model ../../models/demo --rows DIR --out DIR

EAGLE-3 (Li et al., 2025): a head of one layer reads the residual before three of the model's layers, and the next
token. It is trained as it is used: from its second draft token on, its inputs are rows that it has computed itself.
Its targets are the model's predictions, not the text. Half of the texts are the corpus's. The other half are the
model's own continuations of random tokens, and half as long.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from threading import Barrier

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from corpus import SHORT_ROW
from model import MAIN, Attention, LanguageModel, MLP, ModelConfig, RMSNorm, rope_tables, rotate
from train import ADAM_RATE, MUON_RATE, Exchange, Muon, Rows

LAYERS = (1, 3, 5)  # layers before which the residual is read
DEPTH = 3  # number of draft tokens in training
DRAFT_VOCAB = 1024
# a token passes only through the values, so they are as wide as the model
HEAD = ModelConfig(num_key_value_heads=8, intermediate_size=256)
BATCH, FADE = 2, 0.8
WARMUP_STEPS, FALL_PART = 20, 0.6
RANDOM = 32  # random tokens before the model's own answer
HELD = 32  # held-out texts of each kind


class Mixer(Attention):
    """Attention over embedding and row. Like Llama's, it has no norms of heads."""

    def __init__(self) -> None:
        super().__init__(HEAD)
        for name, count in (("q_proj", HEAD.num_attention_heads), ("k_proj", HEAD.num_key_value_heads), ("v_proj", HEAD.num_key_value_heads)):
            setattr(self, name, nn.Linear(2 * HEAD.hidden_size, count * HEAD.head_dim, bias=False))
        self.q_norm = self.k_norm = None


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.mlp = Mixer(), MLP(HEAD)
        for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
            setattr(self, name, RMSNorm(HEAD.hidden_size, HEAD.rms_norm_eps))


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(len(LAYERS) * MAIN.hidden_size, HEAD.hidden_size, bias=False)
        self.midlayer = Layer()
        self.norm = RMSNorm(HEAD.hidden_size, HEAD.rms_norm_eps)
        self.lm_head = nn.Linear(HEAD.hidden_size, DRAFT_VOCAB, bias=False)

    @torch.no_grad()
    def begin(self, model: LanguageModel, known: Tensor) -> None:
        """Adds the model's prediction after its first five layers."""
        for weight in (self.midlayer.self_attn.o_proj.weight, self.midlayer.mlp.down_proj.weight):
            nn.init.zeros_(weight)
        nn.init.normal_(self.fc.weight, std=0.01)
        self.fc.weight[:, -MAIN.hidden_size :] += torch.eye(MAIN.hidden_size)
        self.norm.weight.copy_(model.model.norm.weight)
        self.lm_head.weight.copy_(model.model.embed_tokens.weight[known])

    def forward(self, states: Tensor, embedded: Tensor) -> list[Tensor]:
        """Returns the logits of each draft token, [B, T - its number, draft vocab], for states [B, T, 3 D] and the
        tokens after them.

        A row of a draft token attends to the model's rows up to the start of its chain, and to the rows of its chain.
        """
        layer, attention = self.midlayer, self.midlayer.self_attn
        rows, length, _ = states.shape
        cos, sin = rope_tables(HEAD, length)
        future = torch.full((length, length), -torch.inf).triu(1)
        x, own, found = self.fc(states), [], []
        for depth in range(DEPTH):
            count = length - depth
            x = x[:, :count]
            both = torch.cat([layer.input_layernorm(embedded[:, depth:]), layer.hidden_norm(x)], dim=-1)
            q, k, v = (proj(both).view(rows, count, -1, HEAD.head_dim).transpose(1, 2)
                       for proj in (attention.q_proj, attention.k_proj, attention.v_proj))
            q, k = rotate(q, cos[depth:], sin[depth:]), rotate(k, cos[depth:], sin[depth:])
            k, v = k.repeat_interleave(attention.group, dim=1), v.repeat_interleave(attention.group, dim=1)
            if depth == 0:
                first_k, first_v = k, v
            else:
                own.append((k, v))
            scores = [q @ first_k[:, :, :count].transpose(-1, -2) + future[:count, :count]]
            scores += [(q * k[:, :, :count]).sum(-1, keepdim=True) for k, _ in own]
            weights = (torch.cat(scores, dim=-1) * HEAD.head_dim**-0.5).softmax(-1)
            mixed = weights[..., :count] @ first_v[:, :, :count]
            for i, (_, v) in enumerate(own):
                mixed = mixed + weights[..., count + i : count + i + 1] * v[:, :, :count]
            x = x + attention.o_proj(mixed.transpose(1, 2).flatten(2))
            x = x + layer.mlp(layer.post_attention_layernorm(x))
            found.append(self.lm_head(self.norm(x)))
        return found


@torch.no_grad()
def read(model: LanguageModel, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns states [B, T, 3 D], embeddings [B, T, D] and logits [B, T, vocab] for ids [B, T]."""
    x = embedded = model.model.embed_tokens(ids)
    cos, sin = model.cos[: ids.shape[1]], model.sin[: ids.shape[1]]
    states = []
    for number, layer in enumerate(model.model.layers):
        if number in LAYERS:
            states.append(x)
        x = layer(x, cos, sin)
    return torch.cat(states, dim=-1), embedded, F.linear(model.model.norm(x), model.model.embed_tokens.weight)


@torch.no_grad()
def own_answers(folder: Path, count: int) -> Tensor:
    """Returns texts [count, SHORT_ROW // 2]: random tokens and the model's continuation. Half of the continuations
    are sampled at temperature 0.8."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None  # as in a benchmark
    parts = []
    for begin in range(0, count, 128):
        prompt = torch.randint(0, MAIN.vocab_size, (min(128, count - begin), RANDOM))
        drawn = dict(do_sample=True, temperature=0.8, top_k=0) if len(parts) % 2 else dict(do_sample=False)
        parts.append(model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=SHORT_ROW // 2 - RANDOM, pad_token_id=0, **drawn))
        print(f"own answers: {begin + len(prompt)} of {count}", flush=True)
    return torch.cat(parts)


def batches(rows: Rows, own: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
    """Returns texts [B, T] and the positions of answers in them. The corpus and the model's own texts alternate."""
    answers = torch.arange(own.shape[1]) >= RANDOM
    found = []
    for begin in range(0, count, BATCH):
        ids, targets = rows.batch(begin, BATCH)
        found.append((ids, F.pad(targets[:, :-1] != -100, (1, 0))))
        ids = own[begin : begin + BATCH]
        if len(ids):
            found.append((ids, answers.expand(ids.shape)))
    return found


def losses(head: Head, model: LanguageModel, known: Tensor, ids: Tensor, answers: Tensor) -> list[Tensor]:
    """Returns the cross entropy against the model's predictions of tokens that the head knows, by draft token."""
    states, embedded, logits = read(model, ids)
    said = logits[..., known].softmax(-1)
    covered = torch.zeros(MAIN.vocab_size, dtype=torch.bool).index_fill(0, known, True)[logits.argmax(-1)]
    # The row of token t reads token t + 1 and proposes token t + 2, which the model predicts at t + 1.
    found = []
    for depth, own in enumerate(head(states[:, :-2], embedded[:, 1:-1])):
        at = (answers[:, 2 + depth :] & covered[:, 1 + depth : -1]).flatten().nonzero().squeeze(1)
        found.append(F.cross_entropy(own.flatten(0, 1)[at], said[:, 1 + depth : -1].flatten(0, 1)[at]))
    return found


@torch.no_grad()
def ranks(head: Head, model: LanguageModel, known: Tensor, ids: Tensor, answers: Tensor) -> Tensor:
    """Returns [N, DEPTH]: the number of tokens that the head finds more likely than the model's token, by draft
    token; -1 if the head does not know that token."""
    states, embedded, logits = read(model, ids)
    place = torch.full((MAIN.vocab_size,), -1).index_copy(0, known, torch.arange(len(known)))
    said = place[logits.argmax(-1)]
    chains = ids.shape[1] - 2 - DEPTH + 1
    found = []
    for depth, own in enumerate(head(states[:, :-2], embedded[:, 1:-1])):
        wanted = said[:, 1 + depth : 1 + depth + chains, None]
        score = own[:, :chains].gather(-1, wanted.clamp(min=0))
        found.append(torch.where(wanted[..., 0] < 0, -1, (own[:, :chains] > score).sum(-1)))
    # A chain counts while the text follows the model.
    as_said = [ids[:, 2 + depth : 2 + depth + chains] == logits.argmax(-1)[:, 1 + depth : 1 + depth + chains] for depth in range(DEPTH - 1)]
    at = torch.stack([answers[:, 2 : 2 + chains], *as_said]).all(0)
    return torch.stack(found, dim=-1)[at]


def acceptance_length(found: Tensor) -> float:
    return 1 + (found == 0).float().cumprod(-1).sum(-1).mean().item()


def save(head: Head, known: Tensor, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    tensors = {name: weight.detach().bfloat16().contiguous() for name, weight in head.state_dict().items()}
    tensors["d2t"] = known - torch.arange(len(known))
    tensors["t2d"] = torch.zeros(MAIN.vocab_size, dtype=torch.bool).index_fill(0, known, True)
    save_file(tensors, out / "model.safetensors")
    config = dict(architectures=["LlamaForCausalLMEagle3"], model_type="llama", vocab_size=MAIN.vocab_size, draft_vocab_size=DRAFT_VOCAB,
                  hidden_size=HEAD.hidden_size, intermediate_size=HEAD.intermediate_size, num_hidden_layers=1,
                  num_attention_heads=HEAD.num_attention_heads, num_key_value_heads=HEAD.num_key_value_heads, head_dim=HEAD.head_dim,
                  hidden_act="silu", max_position_embeddings=HEAD.max_position_embeddings, rms_norm_eps=HEAD.rms_norm_eps,
                  rope_theta=HEAD.rope_theta, tie_word_embeddings=False, torch_dtype="bfloat16",
                  eagle_config=dict(eagle_aux_hidden_state_layer_ids=LAYERS))  # fmt: skip
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=304, help="rows of the corpus; and as many texts of the model's own, half as long")
    parser.add_argument("--ranks", type=Path, help="write ranks of held-out texts here, for draft_trees.py")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = LanguageModel(MAIN)
    model.load_state_dict({name: t.float() for name, t in load_file(args.model / "model.safetensors").items()})
    rows, held_rows = Rows(args.rows, "train", SHORT_ROW), Rows(args.rows, "heldout", SHORT_ROW)
    own = own_answers(args.model, args.count + HELD)
    own, held_own = own[:-HELD], own[-HELD:]
    counts = np.bincount(rows.tokens[rows.taught], minlength=MAIN.vocab_size) + np.bincount(own[:, RANDOM:].flatten(), minlength=MAIN.vocab_size)
    known = torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[:DRAFT_VOCAB]))
    print(f"{DRAFT_VOCAB} tokens are {counts[known].sum() / counts.sum():.4f} of all", flush=True)

    head = Head()
    head.begin(model, known)
    texts = batches(rows, own, args.count)
    held = {"corpus": batches(held_rows, own[:0], HELD), "own answers": batches(held_rows, held_own, HELD)[1::2]}
    matrices = [weight for name, weight in head.named_parameters() if weight.dim() == 2 and name != "lm_head.weight"]
    muon = Muon(matrices, Exchange(0, torch.zeros(1, sum(matrix.numel() for matrix in matrices)), Barrier(1)))
    adam = torch.optim.AdamW([*(weight for weight in head.parameters() if weight.dim() == 1), head.lm_head.weight], betas=(0.9, 0.95), weight_decay=0.0)
    began = time.monotonic()
    for step, (ids, answers) in enumerate(texts):
        by_depth = losses(head, model, known, ids, answers)
        sum(FADE**depth * loss for depth, loss in enumerate(by_depth)).backward()
        nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        factor = min(1, (step + 1) / WARMUP_STEPS, (len(texts) - step) / (FALL_PART * len(texts)))
        muon.step(MUON_RATE * factor)
        adam.param_groups[0]["lr"] = ADAM_RATE * factor
        adam.step()
        head.zero_grad()
        if step % 20 == 0 or step == len(texts) - 1:
            print(f"step {step} of {len(texts)}, losses {' '.join(f'{loss.item():.3f}' for loss in by_depth)}, {time.monotonic() - began:.0f} s", flush=True)
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(weight.bfloat16())
    found = {name: torch.cat([ranks(head, model, known, *text) for text in texts]) for name, texts in held.items()}
    for name, of_texts in found.items():
        right = (of_texts == 0).float().cumprod(-1).mean(0)
        print(f"{name}: chains right up to each draft token {' '.join(f'{share:.3f}' for share in right)}, acceptance length {acceptance_length(of_texts):.2f}")
    if args.ranks:
        save_file({name.replace(" ", "_"): of_texts for name, of_texts in found.items()}, args.ranks)
    save(head, known, args.out)


if __name__ == "__main__":
    main()
