#!/usr/bin/env python3
"""Makes tests/data/quantized/: small random checkpoints in each format of tools/formats/packers.py, and transformers'
results with the numbers that they represent. Also makes tests/data/rounded/: fp8 checkpoints whose results have
activations that are rounded to fp8, as their quantization_config says.

Needs torch and transformers. Usage: make_quantized_goldens.py OUT_DIR [CASE ...]
       make_quantized_goldens.py --rounded OUT_DIR

A case is a directory with config.json, model.safetensors and golden.safetensors (ids I32 [n], logits F32 [n, vocab]),
computed in f32. In some cases, one of three fused matrices is not quantised.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "formats"))
from packers import FP8_TOKENS, compressed, formats, fp8, rounded_fp8, rounded_rows  # noqa: E402

GROUP = 32
TOKENS = 12
PLAIN = ("model.layers.0.self_attn.k_proj", "lm_head")  # modules that are not quantised

SIZES = dict(vocab_size=32, hidden_size=64, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=1, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             tie_word_embeddings=True)
# Latent attention and an MLP.
LATENT = dict(num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32,
              n_routed_experts=2, num_experts_per_tok=1, n_shared_experts=1, moe_intermediate_size=8, first_k_dense_replace=1)
OF_LATENT = ("fp8-block", "awq-4bit")
# Experts, with separate matrices.
EXPERTS = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=32, head_dim=16)
OF_EXPERTS = ("nvfp4", "nvfp4-modelopt", "gptq-4bit", "w4a16-group")
EXPERTS_ALONE = ("w4a16-group",)  # only experts are quantised, as in Kimi K2's files
MIXED = {"w8a8", "w4a16-group-asymmetric", "fp8-block"}  # formats in which PLAIN is not quantised


# Fused matrices, whose activations have the largest of their scales, with factors that make the scales differ.
FUSED = dict(q_proj="qkv", k_proj="qkv", v_proj="qkv", gate_proj="gate_up", up_proj="gate_up")
FACTORS = dict(q_proj=0.75, k_proj=1, v_proj=0.875, gate_proj=1, up_proj=0.5, o_proj=1, down_proj=1)


def rounded_cases():
    """Returns name: (quantization_config, packer of a matrix, rounding of activations, sizes). The rounding is None if
    the checkpoint has the scales."""
    block = dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128])
    return {
        "fp8-block": (block, lambda w: fp8(w, (128, 128), name="weight_scale_inv"), lambda x: rounded_rows(x, 128),
                      dict(SIZES, hidden_size=256, intermediate_size=128)),
        "fp8-channel": (compressed("channel", 8, "float", form="float-quantized", activations=FP8_TOKENS),
                        lambda w: fp8(w, (1, w.shape[1]), torch.bfloat16), rounded_rows, SIZES),
        "fp8-tensor": (dict(quant_method="fp8", activation_scheme="static"), fp8, None, SIZES),
    }


def make_rounded(out, name, quantization, packer, rounding, sizes):
    torch.manual_seed(9)
    config = transformers.LlamaConfig(**sizes)
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(3, sizes["vocab_size"], (1, TOKENS))
    tensors = {}
    linears = {module: part for module, part in model.named_modules() if "_proj" in module}
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * 0.1 + (1 if "norm" in key else 0))
            p.copy_(p.to(torch.bfloat16).to(torch.float32))
            module = key.removesuffix(".weight")
            if module in linears:
                packed, dequantized = packer(p.numpy())
                tensors |= {f"{module}.{part}": t.contiguous() for part, t in packed.items()}
                p.copy_(torch.tensor(dequantized))
            else:
                tensors[key] = p.to(torch.bfloat16)
        if rounding is None:  # calibrates
            largest = {}
            for module, part in linears.items():
                part.register_forward_pre_hook(lambda _, args, m=module: largest.update({m: args[0].abs().max() / 448}))
            model(ids)
            scales = {m: scale * FACTORS[m.rsplit(".", 1)[1]] for m, scale in largest.items()}
            tensors |= {f"{m}.input_scale": scale.reshape(1) for m, scale in scales.items()}
        for module, part in linears.items():
            stem, last = module.rsplit(".", 1)
            together = [m for m in linears if m == module or m.startswith(stem) and FUSED.get(m.rsplit(".", 1)[1], 0) == FUSED.get(last, 1)]
            rounds = rounding or (lambda x, s=max(scales[m] for m in together): rounded_fp8(x, s))
            part.register_forward_pre_hook(lambda _, args, rounds=rounds: rounds(args[0]))
        logits = model(ids).logits[0]
    write(os.path.join(out, name), config, sizes, "Llama", quantization, tensors, ids, logits)


def matrices(key, p):
    """Returns the matrices of a parameter, with the names that files have."""
    if p.dim() < 3:
        return [(key, p)]
    stem, made = key.rsplit(".", 1)[0], []
    for e, each in enumerate(p):
        if key.endswith("gate_up_proj"):
            made += zip((f"{stem}.{e}.gate_proj.weight", f"{stem}.{e}.up_proj.weight"), each.chunk(2))
        else:
            made.append((f"{stem}.{e}.down_proj.weight", each))
    return made


def make(out, name, quantization, packer, latent=False, experts=False):
    torch.manual_seed(7)
    biased = name == "gptq-4bit-asymmetric"
    kind = "DeepseekV2" if latent else "Qwen3Moe" if experts else "Qwen2" if biased else "Llama"
    sizes = dict(SIZES, **LATENT) if latent else dict(SIZES, **EXPERTS) if experts else SIZES
    config = getattr(transformers, kind + "Config")(**sizes)
    model = getattr(transformers, kind + "ForCausalLM")(config).eval()
    tensors = {}
    with torch.no_grad():
        for key, p in [matrix for key, p in model.named_parameters() for matrix in matrices(key, p)]:
            p.copy_(torch.randn_like(p) * (0.3 if p.dim() == 2 else 0.1) + (1 if "norm" in key else 0))
            p.copy_(p.to(torch.bfloat16).to(torch.float32))
            module = key.removesuffix(".weight")
            keep = name in MIXED and module in PLAIN and not latent or experts and name in EXPERTS_ALONE and ".experts." not in module
            if p.dim() == 2 and "_proj" in module and not keep:
                packed, dequantized = packer(p.numpy())
                tensors |= {f"{module}.{part}": t.contiguous() for part, t in packed.items()}
                p.copy_(torch.tensor(dequantized))
            else:
                tensors[key] = p.to(torch.bfloat16)
    ids = torch.randint(3, SIZES["vocab_size"], (1, TOKENS))
    with torch.no_grad():
        logits = model(ids).logits[0]
    directory = os.path.join(out, "deepseek_v2-" + name if latent else "qwen3_moe-" + name if experts else name)
    write(directory, config, sizes, kind, quantization, tensors, ids, logits)


def write(directory, config, sizes, kind, quantization, tensors, ids, logits):
    os.makedirs(directory, exist_ok=True)
    written = config.to_dict()
    written = {k: written.get(k, sizes.get(k)) for k in [*sizes, "rms_norm_eps", "rope_parameters", "hidden_act"] if k in written or k in sizes}
    written |= dict(architectures=[kind + "ForCausalLM"], model_type=config.model_type, dtype="bfloat16",
                    quantization_config=quantization)
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(written, f, indent=1)
    save_file(tensors, os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
    save_file({"ids": ids[0].to(torch.int32), "logits": logits}, os.path.join(directory, "golden.safetensors"))


if __name__ == "__main__":
    if sys.argv[1] == "--rounded":
        for case, parts in rounded_cases().items():
            make_rounded(sys.argv[2], case, *parts)
        sys.exit()
    for case, (settings, pack) in formats(GROUP).items():
        if case not in (sys.argv[2:] or [case]):
            continue
        make(sys.argv[1], case, settings, pack)
        if case in OF_LATENT:
            make(sys.argv[1], case, settings, pack, latent=True)
        if case in OF_EXPERTS:
            make(sys.argv[1], case, settings, pack, experts=True)
