"""Computes what a tree of draft tokens would gain over a chain, from the ranks of draft tokens.
docs/design/speculative.md has the figures.

    python draft_trees.py --model ../../models/demo --draft ../../models/demo-draft --rows DIR [--ranks FILE]

For positions of held-out texts, it counts the tokens that the drafter finds more likely than the model's token. It
does this for each draft token whose predecessors are right: of the draft model, and of an EAGLE-3 head if FILE is
given (written by `fit_eagle3.py --ranks`). A tree accepts a node if its whole path is right. The best tree of n nodes
has the n nodes that are right most often. It is the same at all positions, as vLLM's `speculative_token_tree` is. The
chain is the best one with at most the tree's number of nodes and depth.
"""

from __future__ import annotations

import argparse
import collections
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from corpus import SHORT_ROW
from fit_eagle3 import batches, own_answers
from model import DRAFT, MAIN, LanguageModel, ModelConfig
from train import Rows

SIZES = (1, 2, 3, 4, 5, 7, 10, 15, 31)
DEPTH = 4  # of chains
ROWS = 32


def load(config: ModelConfig, folder: Path) -> LanguageModel:
    model = LanguageModel(config)
    model.load_state_dict({name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()})
    return model


@torch.no_grad()
def ranks_of_draft_model(model: LanguageModel, draft: LanguageModel, texts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Returns [N, DEPTH], like fit_eagle3.ranks."""
    found = []
    for ids, answers in texts:
        said = model(ids).argmax(-1)
        rank = ranks_of(draft(ids), said)
        found.append(chains_of([rank[:, depth:] for depth in range(DEPTH)], ids, said, answers))
    return torch.cat(found)


def ranks_of(logits: Tensor, said: Tensor) -> Tensor:
    return (logits > logits.gather(-1, said[..., None])).sum(-1)


def chains_of(ranks: list[Tensor], ids: Tensor, said: Tensor, answers: Tensor) -> Tensor:
    """Returns [N, DEPTH] of ranks by draft token, at positions before tokens of answers at which the text follows the
    model."""
    chains = ids.shape[1] - DEPTH
    as_said = [said[:, depth : depth + chains] == ids[:, depth + 1 : depth + 1 + chains] for depth in range(DEPTH - 1)]
    at = torch.stack([answers[:, 1 : chains + 1], *as_said]).all(0)
    return torch.stack([rank[:, :chains] for rank in ranks], dim=-1)[at]


def best_tree(shares: dict[tuple[int, ...], float], nodes: int) -> list[tuple[int, ...]]:
    """Returns the paths that are right most often. A node is right at most as often as its parent, so the paths form
    a tree."""
    return sorted(shares, key=lambda path: (-shares[path], len(path)))[:nodes]


def report(name: str, ranks: Tensor) -> None:
    counts: collections.Counter[tuple[int, ...]] = collections.Counter()
    for row in ranks.tolist():
        known = row.index(-1) if -1 in row else len(row)
        counts.update(tuple(row[: depth + 1]) for depth in range(known))
    shares = {path: count / len(ranks) for path, count in counts.items()}
    among = [sum(shares.get((rank,), 0) for rank in range(k)) for k in range(1, 5)]
    print(f"{name}: {len(ranks)} places; right among the likeliest 1, 2, 3, 4 first tokens: {' '.join(f'{share:.3f}' for share in among)}")
    for nodes in SIZES:
        chain = 1 + sum(shares.get((0,) * depth, 0) for depth in range(1, min(nodes, ranks.shape[1]) + 1))
        tree = best_tree(shares, nodes)
        firsts, deepest = sum(len(path) == 1 for path in tree), max(map(len, tree))
        print(f"  {nodes:>2} nodes: chain {chain:.2f}, tree {1 + sum(shares[path] for path in tree):.2f} ({firsts} first tokens, {deepest} deep)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "draft", "rows"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--ranks", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name, ranks in load_file(args.ranks).items() if args.ranks else ():
        report(f"EAGLE-3, {name}", ranks)
    model, draft = load(MAIN, args.model), load(DRAFT, args.draft)
    texts = batches(Rows(args.rows, "heldout", SHORT_ROW), own_answers(args.model, ROWS), ROWS)
    for name, some in (("corpus", texts[::2]), ("own answers", texts[1::2])):
        report(f"draft model, {name}", ranks_of_draft_model(model, draft, some))


if __name__ == "__main__":
    main()
