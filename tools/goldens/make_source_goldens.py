#!/usr/bin/env python3
"""Makes tests/data/source/: small random encoder-decoder models, and transformers' results with them.

Needs torch, transformers, tokenizers and gguf (made with 2.13, 5.23, 0.23 and 0.19). Usage: make_source_goldens.py
OUT_DIR [CASE ...]

A case is a checkpoint with its tokenizer (T5's is a Unigram model) and golden.safetensors. NAME is short or long:

    source.NAME  I32 [n]           a prompt
    ids          I32 [m]           text of the decoder
    logits.NAME  F32 [m, vocab]    of this text, after that prompt
    greedy.NAME  I32 [k]           output of generate() for the prompt, without the tokens with which it begins
    text         I32 [n]           the tokens of TEXT
    said         I32 [k]           output for TEXT

Everything is computed in f32. Weights are stored in bf16.
"""
import os
import pathlib
import sys

import gguf_encoders
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

TEXT = "summarize: the encoder reads all of a prompt at once."
CORPUS = [TEXT, "translate English to German: the house is small and old.", "the decoder says one token after the other",
          "question: what does it read? context: it reads the prompt, and no more than that."]
VOCAB = 120

T5 = dict(vocab_size=VOCAB, d_model=48, d_kv=16, d_ff=72, num_layers=2, num_decoder_layers=3, num_heads=5, pad_token_id=0,
          eos_token_id=1, decoder_start_token_id=0, n_positions=320)
BART = dict(vocab_size=VOCAB, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3, decoder_attention_heads=2,
            encoder_ffn_dim=56, decoder_ffn_dim=72, max_position_embeddings=320, scale_embedding=True, pad_token_id=1, bos_token_id=0,
            eos_token_id=2)
CASES = {
    "t5": (transformers.T5ForConditionalGeneration, transformers.T5Config(
        **T5, relative_attention_num_buckets=20, relative_attention_max_distance=50)),
    # Only a GGUF file, which cannot store the maximum distance.
    "t5-gguf": (transformers.T5ForConditionalGeneration, transformers.T5Config(**dict(T5, num_heads=3))),
    "flan-t5": (transformers.T5ForConditionalGeneration, transformers.T5Config(
        **dict(T5, d_kv=24, num_heads=3), feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "bart": (transformers.BartForConditionalGeneration, transformers.BartConfig(
        **BART, decoder_start_token_id=2, forced_bos_token_id=0, forced_eos_token_id=None)),
    "mbart": (transformers.MBartForConditionalGeneration, transformers.MBartConfig(**BART, decoder_start_token_id=7, forced_eos_token_id=None)),
}


def tokenizer_of(case, directory):
    if case.endswith("bart"):
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        special = ["<s>", "<pad>", "</s>"]
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=special)
        template = dict(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    else:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
        tokenizer.decoder = tokenizers.decoders.Metaspace()
        special = ["<pad>", "</s>", "<unk>"]
        trainer = tokenizers.trainers.UnigramTrainer(vocab_size=VOCAB, special_tokens=special, unk_token="<unk>")
        template = dict(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(**template)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")
    fast.save_pretrained(directory)
    return fast


def randomise(model):
    """Sets weights so that attention is sharp and no part dominates: the output depends on the prompt and on earlier
    output."""
    bart = hasattr(model, "final_logits_bias")
    # Norms before the parts: the residual keeps the last token, which the parts must outweigh.
    mbart = isinstance(model, transformers.MBartForConditionalGeneration)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name and name.endswith("weight"):
                p.copy_(1 + 0.3 * torch.randn_like(p))
            elif "relative_attention_bias" in name:
                p.copy_(2 * torch.randn_like(p))
            elif mbart and "positions" in name:
                p.copy_(3 * torch.randn_like(p))
            elif "shared" in name or "positions" in name:
                p.copy_((0.2 if bart else 0.4) * torch.randn_like(p))
            elif name.endswith("Attention.q.weight"):  # T5's scores are not scaled, so the weights have
                                                       # T5's initial size
                p.copy_(0.1 * torch.randn_like(p))
            elif bart and "q_proj" not in name and "k_proj" not in name:
                p.copy_((0.4 if mbart and p.dim() > 1 else 0.05 if mbart else 0.18) * torch.randn_like(p))
            else:
                p.copy_((0.1 if p.dim() == 1 else 0.35) * torch.randn_like(p))
        if bart:
            model.final_logits_bias.copy_(0.3 * torch.randn_like(model.final_logits_bias))


def make(case, directory):
    torch.manual_seed(0)
    os.makedirs(directory, exist_ok=True)
    kind, config = CASES[case]
    tokenizer = tokenizer_of(case, directory)
    model = kind(config).eval()
    if case == "flan-t5":
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    randomise(model)
    model.generation_config = transformers.GenerationConfig(
        max_length=200, pad_token_id=config.pad_token_id, eos_token_id=config.eos_token_id, decoder_start_token_id=config.decoder_start_token_id, forced_bos_token_id=0 if case == "bart" else None)
    model.to(torch.bfloat16).save_pretrained(directory)
    wide = model.float()
    begin = 2 if case == "bart" else 1
    ids = torch.randint(3, VOCAB, (1, 90))
    ids[0, 0] = config.decoder_start_token_id
    golden = {"ids": ids}
    text = tokenizer(TEXT, return_tensors="pt")["input_ids"]

    def said(source):
        return wide.generate(source, max_new_tokens=24, do_sample=False, num_beams=1, use_cache=False)[:, begin:]

    with torch.no_grad():
        for name, length in (("short", 7), ("long", 301)):
            source = torch.randint(3, VOCAB, (1, length))
            golden[f"source.{name}"] = source
            golden[f"logits.{name}"] = wide(input_ids=source, decoder_input_ids=ids, use_cache=False).logits
            golden[f"greedy.{name}"] = said(source)
        golden["text"], golden["said"] = text, said(text)
    print(case, golden["greedy.short"].tolist(), golden["said"].tolist(), tokenizer.decode(golden["said"][0]))
    save_file({name: (t[0] if t.is_floating_point() else t[0].to(torch.int32)).contiguous() for name, t in golden.items()},
              f"{directory}/golden.safetensors")
    if case == "t5-gguf":
        gguf_encoders.write(pathlib.Path(directory))
        for file in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json"):
            os.remove(f"{directory}/{file}")


def main():
    out, *cases = sys.argv[1:]
    for case in cases or CASES:
        make(case, f"{out}/{case}")


if __name__ == "__main__":
    main()
