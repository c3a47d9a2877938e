#!/usr/bin/env python3
"""Compares the vectors of a running server with those of sentence-transformers, and ranks a small corpus with them.

    pip install sentence-transformers openai
    octavo serve FOLDER --port 8000 &
    tools/encoders/compare_with_sentence_transformers.py FOLDER http://127.0.0.1:8000/v1

Fails if the cosine of two vectors of one text is below 0.9999.
"""
import sys

import numpy as np
import openai
from sentence_transformers import SentenceTransformer

CORPUS = [
    "The cat sits on the mat and watches the birds.",
    "Photosynthesis turns light into chemical energy in the leaves of plants.",
    "The central bank raised its interest rate by a quarter of a point.",
    "To bake bread you need flour, water, yeast, salt and patience.",
    "A transformer's attention lets every token look at every other.",
    "Mount Everest is the highest mountain above sea level.",
    "Der Zug nach München hat heute zwanzig Minuten Verspätung.",
    "SELECT name FROM users WHERE age > 30 ORDER BY name;",
    "x",
    "  Spaces,\ttabs\nand line breaks — and an em dash, café, 北京, 🎈!  ",
    "A long text. " * 60,
]
QUERIES = {"How do plants make energy?": 1, "What did the bank do to rates?": 2, "recipe for a loaf": 3, "tallest peak": 5,
           "How does self-attention work?": 4, "a feline on a rug": 0}


def main():
    folder, base = sys.argv[1:]
    client = openai.OpenAI(base_url=base, api_key="none")
    model = client.models.list().data[0].id
    texts = CORPUS + list(QUERIES)
    reply = client.embeddings.create(model=model, input=texts, extra_body={"truncate_prompt_tokens": -1})
    ours = np.array([item.embedding for item in reply.data])
    theirs = SentenceTransformer(folder, device="cpu").encode(texts)
    cosines = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    print(f"{len(texts)} texts, {reply.usage.prompt_tokens} tokens: least cosine {cosines.min():.7f}, "
          f"greatest difference {np.abs(ours - theirs).max():.1e}")
    right = 0
    for (query, expected), vector in zip(QUERIES.items(), ours[len(CORPUS):]):
        best = int((ours[:len(CORPUS)] @ vector).argmax())
        right += best == expected
        print(f"  {query:34} {CORPUS[best]}")
    if cosines.min() < 0.9999 or right < len(QUERIES):
        sys.exit(1)


if __name__ == "__main__":
    main()
