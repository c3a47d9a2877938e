"""Makes tests/data/beam_search/demo.json: beam search of the demo model by transformers.

    python tools/goldens/make_beam_search_goldens.py

Everything is in float32. A score is the sum of log-probabilities (length_penalty 0), because transformers divides by
a power of the answer's length, and vLLM by one of the length of prompt and answer. No token ends a text, because
transformers accepts an end only among the num_beams best continuations of a step, and vLLM anywhere among the 2 *
num_beams likeliest of a beam.
"""

import json
import pathlib

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/demo"
OUT = ROOT / "tests/data/beam_search/demo.json"
PROMPTS = ["One rainy morning in", "Mira lives", "The old", "Once upon a time there was a", "Why did the"]


def main():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    cases = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False).input_ids
        for beams, tokens in ((2, 12), (4, 24), (8, 16)):
            model.generation_config.eos_token_id = None
            with torch.no_grad():
                out = model.generate(ids, num_beams=beams, num_return_sequences=beams, do_sample=False,
                                     max_new_tokens=tokens, length_penalty=0.0, early_stopping="never",
                                     temperature=None, top_p=None, top_k=None, output_scores=True,
                                     return_dict_in_generate=True, pad_token_id=4089)
            cases.append({"prompt": ids[0].tolist(), "beams": beams, "tokens": tokens,
                          "answers": [sequence[ids.shape[1]:].tolist() for sequence in out.sequences],
                          "scores": [round(score, 6) for score in out.sequences_scores.tolist()]})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(cases, separators=(",", ":")).replace('},{', '},\n{') + "\n")


if __name__ == "__main__":
    main()
