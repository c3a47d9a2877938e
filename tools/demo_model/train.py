"""Trains one of the two models on packed rows, and continues from its last checkpoint.

    python train.py main --rows DIR --checkpoints DIR --tokens 20e6

Hidden matrices are trained with Muon (orthogonalised momentum), which needs far fewer tokens here than AdamW. The
embedding and the norms use AdamW. Workers with one thread each share a batch and average their gradients. On a busy
machine, this is faster than threads that synchronise after every operation. The learning rate is constant, then falls
linearly almost to zero over the last part of the token budget. Until that part, the budget may be changed when
training continues.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from pathlib import Path
from threading import Barrier

import numpy as np
import torch
import torch.multiprocessing as mp
from safetensors.torch import load_file
from torch import Tensor

from corpus import LONG_ROW, SHORT_ROW
from model import CONFIGS, LanguageModel

BATCH_TOKENS = 4096
WARMUP_STEPS = 100
DECAY_PART = 0.4
LONG_PART = 0.25
MUON_RATE = 6e-3
ADAM_RATE = 3e-3
SAVE_EVERY_S = 120


class Rows:
    """Packed rows of one length and split, in a fixed random order."""

    def __init__(self, folder: Path, split: str, length: int) -> None:
        self.tokens = np.load(folder / f"{split}-{length}-tokens.npy", mmap_mode="r")
        self.taught = np.load(folder / f"{split}-{length}-taught.npy", mmap_mode="r")
        self.order = np.random.default_rng(0).permutation(len(self.tokens))

    def batch(self, start: int, count: int) -> tuple[Tensor, Tensor]:
        """Returns inputs and targets [count, length]. Targets without loss are -100."""
        picked = np.sort(self.order[np.arange(start, start + count) % len(self.order)])
        tokens = torch.from_numpy(self.tokens[picked].astype(np.int64))
        taught = torch.from_numpy(self.taught[picked])
        return tokens[:, :-1], torch.where(taught, tokens, -100)[:, 1:]


def rate_factor(step: int, steps: int) -> float:
    """Returns the factor of the learning rate: warm-up, plateau, then a linear fall to a twentieth over
    DECAY_PART."""
    decay = max(1, int(steps * DECAY_PART))
    fall = min(1.0, max(0, step - (steps - decay)) / decay)
    return min(1.0, (step + 1) / WARMUP_STEPS) * (1 - 0.95 * fall)


def is_long(step: int, steps: int) -> bool:
    """Returns whether a step has long rows: every eighth step, and every third step in the last part."""
    return step % (3 if step > steps * (1 - LONG_PART) else 8) == 1


class Exchange:
    """Averages gradients of the workers in shared memory."""

    def __init__(self, rank: int, shared: Tensor, barrier: Barrier) -> None:
        self.rank = rank
        self.shared = shared  # [workers, number of parameters]
        self.barrier = barrier

    def average(self, gradients: list[Tensor]) -> None:
        """Replaces every gradient by its mean over the workers."""
        torch.cat([g.flatten() for g in gradients], out=self.shared[self.rank])
        self.barrier.wait()
        mean = self.shared.mean(dim=0)
        self.barrier.wait()  # until here, no process may overwrite data that another one reads
        for gradient, part in zip(gradients, mean.split([g.numel() for g in gradients])):
            gradient.copy_(part.view_as(gradient))


def orthogonalise(matrix: Tensor) -> Tensor:
    """Moves all singular values of a matrix towards one (Newton-Schulz, bfloat16)."""
    x = matrix.bfloat16()
    x = x / (x.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x.T if tall else x


class Muon:
    """Momentum with orthogonalised updates of matrices. Each worker updates a part of the matrices."""

    MOMENTUM = 0.95
    DECAY = 0.1

    def __init__(self, matrices: list[Tensor], exchange: Exchange) -> None:
        self.matrices = matrices
        self.exchange = exchange
        self.momenta = [torch.zeros_like(matrix) for matrix in matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Does one update. The factor 0.2 * sqrt(longer side) gives it the size of an Adam step."""
        rank, shared, barrier = self.exchange.rank, self.exchange.shared, self.exchange.barrier
        workers = len(shared)
        sizes = [matrix.numel() for matrix in self.matrices]
        updates = [row.split(sizes) for row in shared[:, : sum(sizes)]]
        for i, (matrix, momentum) in enumerate(zip(self.matrices, self.momenta)):
            momentum.lerp_(matrix.grad, 1 - self.MOMENTUM)
            if i % workers == rank:
                ahead = matrix.grad.lerp(momentum, self.MOMENTUM)
                updates[rank][i].copy_(orthogonalise(ahead).flatten())
        barrier.wait()
        for i, matrix in enumerate(self.matrices):
            matrix.mul_(1 - rate * self.DECAY)
            matrix.add_(updates[i % workers][i].view_as(matrix), alpha=-rate * 0.2 * max(matrix.shape) ** 0.5)
        barrier.wait()


class Trainer:
    """Model, optimisers and position in the data of one worker."""

    def __init__(self, name: str, rows: Path, checkpoints: Path, start: Path | None, exchange: Exchange) -> None:
        torch.manual_seed(0)
        self.exchange = exchange
        self.file = checkpoints / f"{name}.pt"
        self.model = LanguageModel(CONFIGS[name])
        matrices = [p for n, p in self.model.named_parameters() if p.dim() == 2 and "embed" not in n]
        others = [p for n, p in self.model.named_parameters() if p.dim() == 1 or "embed" in n]
        self.muon = Muon(matrices, exchange)
        self.adam = torch.optim.AdamW(others, lr=ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0)
        self.data = {length: Rows(rows, "train", length) for length in (SHORT_ROW, LONG_ROW)}
        self.held_out = {length: Rows(rows, "heldout", length) for length in (SHORT_ROW, LONG_ROW)}
        self.step = 0
        self.served = {SHORT_ROW: 0, LONG_ROW: 0}
        self.tokens_before = 0  # number of tokens in the training of the initial weights
        if start and not self.file.exists():
            self.model.load_state_dict(load_file(start / "model.safetensors"))
            self.tokens_before = json.loads((start / "training.json").read_text())["tokens"]
        if self.file.exists():
            state = torch.load(self.file)
            self.model.load_state_dict(state["model"])
            self.muon.momenta = state["momenta"]
            self.adam.load_state_dict(state["adam"])
            self.step, self.served = state["step"], state["served"]
            self.tokens_before = state["tokens_before"]

    def save(self) -> None:
        """Writes the checkpoint to a new file, then renames it."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(".new")
        state = {
            "model": self.model.state_dict(),
            "momenta": self.muon.momenta,
            "adam": self.adam.state_dict(),
            "step": self.step,
            "served": self.served,
            "tokens_before": self.tokens_before,
        }
        torch.save(state, fresh)
        fresh.replace(self.file)

    def train_step(self, steps: int) -> float:
        """Does one optimiser step over BATCH_TOKENS tokens, and returns the loss."""
        length = LONG_ROW if is_long(self.step, steps) else SHORT_ROW
        count = BATCH_TOKENS // length
        mine = count // len(self.exchange.shared)
        tokens, targets = self.data[length].batch(self.served[length] + self.exchange.rank * mine, mine)
        self.served[length] += count
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.model.loss(tokens, targets)
        loss.backward()
        self.exchange.average([p.grad for p in self.model.parameters()])
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        factor = rate_factor(self.step, steps)
        self.muon.step(MUON_RATE * factor)
        self.adam.param_groups[0]["lr"] = ADAM_RATE * factor
        self.adam.step()
        self.model.zero_grad()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def held_out_loss(self, length: int) -> float:
        """Returns the mean loss over the first held-out rows of one length (16384 tokens)."""
        tokens, targets = self.held_out[length].batch(0, 16384 // length)
        with torch.autocast("cpu", torch.bfloat16):
            return self.model.loss(tokens, targets).item()


def run(rank: int, args: argparse.Namespace, shared: Tensor, barrier: Barrier) -> None:
    """Runs the training loop of one worker. The first worker also reports and saves."""
    torch.set_num_threads(1)
    trainer = Trainer(args.model, args.rows, args.checkpoints, args.start, Exchange(rank, shared, barrier))
    steps = math.ceil(args.tokens / BATCH_TOKENS)
    leads = rank == 0
    if leads:
        print(f"{args.model}: {shared.shape[1] / 1e6:.2f}M parameters, step {trainer.step} of {steps}", flush=True)
    barrier.wait()  # the checkpoint must not change while another worker reads it
    shown = saved = time.monotonic()
    losses: list[float] = []
    while trainer.step < steps:
        losses.append(trainer.train_step(steps))
        if leads and (trainer.step % 100 == 0 or trainer.step == steps):
            speed = len(losses) * BATCH_TOKENS / (time.monotonic() - shown)
            held = {length: round(trainer.held_out_loss(length), 4) for length in (SHORT_ROW, LONG_ROW)}
            print(f"step {trainer.step}  loss {np.mean(losses):.4f}  held out {held}  {speed:.0f} tokens/s", flush=True)
            shown, losses = time.monotonic(), []
        if leads and time.monotonic() - saved > SAVE_EVERY_S:
            trainer.save()
            saved = time.monotonic()
    if leads:
        trainer.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=CONFIGS)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="exported model to continue from, instead of random weights")
    parser.add_argument("--tokens", type=float, default=20e6, help="token budget of the whole run")
    parser.add_argument("--workers", type=int, default=2, choices=[1, 2, 4])
    args = parser.parse_args()
    # Daemons end with this process. After a signal, this process must end normally.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    size = sum(p.numel() for p in LanguageModel(CONFIGS[args.model]).parameters())
    shared = torch.zeros(args.workers, size).share_memory_()
    mp.spawn(run, (args, shared, mp.get_context("spawn").Barrier(args.workers)), nprocs=args.workers, daemon=True)


if __name__ == "__main__":
    main()
