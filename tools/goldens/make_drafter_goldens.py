#!/usr/bin/env python3
"""Makes tests/data/drafters/: small random checkpoints of methods that propose tokens from hidden states, and torch's
results with them.

Needs torch and transformers (made with 2.15 and 5.23). Layers and targets are transformers'. The code around a layer
is written here, from the definitions: multi-token prediction of DeepSeek-V3 (arXiv:2412.19437, section 2.2) and MiMo
(the modeling_mimo.py of its checkpoint), EAGLE (arXiv:2401.15077), EAGLE-3 (arXiv:2503.01840), Medusa
(arXiv:2401.10774), MLP speculators (arXiv:2404.19124). As in vLLM, a predictor reads the target's hidden states after
its final norm.

Usage: make_drafter_goldens.py OUT_DIR

A folder has a target, or a head for the target `llama`, and golden.safetensors (not `markov` and its heads, which are
for tests of the engine):

    ids         I32 [n]            the text
    logits      F32 [n - 1, vocab] after each of its tokens except the first
    next_logits F32 [vocab]        after the likeliest next token, if the drafter reads its own row for it

For Medusa heads and MLP speculators:

    ids         I32 [n]
    logits      F32 [places, n - places, vocab]   of each position, from each token's hidden state and the tokens after it

Weights are stored in bf16. Everything is computed in f32.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNorm

VOCAB, DRAFT_VOCAB, TOKENS = 128, 80, 30
COMMON = dict(vocab_size=VOCAB, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2, attn_implementation="eager",
              tie_word_embeddings=False)
LLAMA = dict(COMMON, hidden_size=48, intermediate_size=64, num_hidden_layers=8, num_attention_heads=3, num_key_value_heads=1)
EXPERTS = dict(moe_intermediate_size=24, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, first_k_dense_replace=1,
               n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.5)
DEEPSEEK = dict(COMMON, **EXPERTS, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=2, q_lora_rank=40, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=32)
GLM = dict(COMMON, **EXPERTS, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
           head_dim=16, attention_bias=True, use_qk_norm=True)
QWEN3_NEXT = dict(COMMON, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
                  layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
                  linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=24,
                  decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True)
ERNIE = dict(COMMON, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, use_bias=False,
             moe_num_experts=4, moe_k=2, moe_intermediate_size=24, moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_interval=1)
MIMO = dict(COMMON, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1)


def randomise(module, generator):
    """Sets random weights with a scale that keeps numbers near 1, rounded to bf16."""
    with torch.no_grad():
        for name, p in list(module.named_parameters()) + list(module.named_buffers()):
            if not p.is_floating_point() or "inv_freq" in name:
                continue
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 1:
                p.copy_(noise * 0.1 + (1 if "norm" in name else 0))
            else:
                p.copy_(noise * 1.5 * p.shape[-1] ** -0.5)
            p.copy_(p.bfloat16())
    return module


def linear(rows, cols, generator, bias=False):
    return randomise(torch.nn.Linear(cols, rows, bias=bias), generator)


def rms_norm(dim, generator, eps=1e-6):
    norm = torch.nn.RMSNorm(dim, eps=eps)
    with torch.no_grad():
        norm.weight.copy_((1 + 0.1 * torch.randn(dim, generator=generator)).bfloat16())
    return norm


def run_layer(model, layer, x):
    """Runs a decoder layer of the target's class over [n, dim]."""
    n = len(x)
    positions = torch.arange(n)[None]
    mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
    angles = model.model.rotary_emb(x[None], positions)
    out = layer(x[None], attention_mask=mask, position_ids=positions, position_embeddings=angles)
    return (out[0] if isinstance(out, tuple) else out)[0]


def save(folder, tensors, config, golden=None, file="model.safetensors"):
    os.makedirs(folder, exist_ok=True)
    save_file({k: (t if t.dtype in (torch.int64, torch.bool) else t.bfloat16()).contiguous() for k, t in tensors.items()}, f"{folder}/{file}")
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f, indent=1, sort_keys=True)
    if golden:
        save_file(golden, f"{folder}/golden.safetensors")


def target(kind, config, generator):
    kind_of_config = getattr(transformers, kind + "TextConfig", None) or getattr(transformers, kind + "Config")
    model = getattr(transformers, kind + "ForCausalLM")(kind_of_config(**config)).eval()
    return randomise(model, generator)


def config_of(model, **more):
    config = model.config.to_dict()
    for field in ("_name_or_path", "transformers_version", "layer_types", "mlp_layer_types", "dtype", "rope_parameters"):
        config.pop(field, None)
    rope = model.config.rope_parameters
    return dict(config, architectures=[type(model).__name__], rope_theta=rope["rope_theta"],
                **({"partial_rotary_factor": rope["partial_rotary_factor"]} if "partial_rotary_factor" in rope else {}),
                torch_dtype="bfloat16", **more)


def make_predictor(out, name, kind, config, generator, hidden_first, normed_output, names, prefix, like=-1, norm=rms_norm, norm_prefix=None,
                   saved_config=None, split=True, **more):
    """names: of the norms of token and row, of the product of both, and of the last norm (if it exists)."""
    model = target(kind, config, generator)
    dim, eps = config["hidden_size"], model.config.rms_norm_eps
    layer = randomise(type(model.model.layers[like])(model.config, like % config["num_hidden_layers"]), generator)
    token_norm, hidden_norm, final_norm = (norm(dim, generator, eps) for _ in range(3))
    if len(names) < 4:
        final_norm = torch.nn.Identity()
    joint = linear(dim, 2 * dim, generator)
    ids = torch.randint(VOCAB, (TOKENS,), generator=generator)

    def inputs(tokens, rows):
        both = [token_norm(model.model.embed_tokens(tokens)), hidden_norm(rows)]
        return joint(torch.cat(both[::-1] if hidden_first else both, -1))

    with torch.no_grad():
        rows = model.model(ids[None]).last_hidden_state[0]
        x = inputs(ids[1:], rows[:-1])
        y = run_layer(model, layer, x)
        logits = model.lm_head(final_norm(y))
        own = final_norm(y[-1:]) if normed_output else y[-1:]
        x = torch.cat([x, inputs(logits[-1:].argmax(-1), own)])
        next_logits = model.lm_head(final_norm(run_layer(model, layer, x)))[-1]
    tensors = dict(model.state_dict())
    tensors |= {f"{prefix}{k}": t for k, t in layer.state_dict().items()}
    for part, module in zip(names, (token_norm, hidden_norm, joint, final_norm)):
        tensors[f"{prefix if norm_prefix is None else norm_prefix}{part}.weight"] = module.weight.detach()
    config = config_of(model, num_nextn_predict_layers=1) if saved_config is None else saved_config(model)
    save(f"{out}/{name}", split_experts(tensors) if split else tensors, config | more,
         dict(ids=ids.int(), logits=logits, next_logits=next_logits))


def make_hybrids(out):
    """Makes predictors for models with recurrent layers. The predictor is a layer with attention."""
    generator = torch.Generator().manual_seed(3)
    names = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm")

    def norm(dim, generator, eps):  # by 1 + weight
        return randomise(Qwen3NextRMSNorm(dim, eps), generator)

    def whole_config(model):
        config = model.config.to_dict() | dict(architectures=[type(model).__name__], dtype="bfloat16")
        return {field: value for field, value in config.items() if field not in ("_name_or_path", "transformers_version", "attn_implementation")}

    for kind, name, split in (("Qwen3Next", "qwen3_next", True), ("Qwen3_5Moe", "qwen3_5_moe", False)):
        make_predictor(out, name, kind, QWEN3_NEXT, generator, False, True, names, "mtp.layers.0.", norm=norm, norm_prefix="mtp.",
                       saved_config=whole_config, split=split)


def split_experts(tensors):
    """Splits the experts as in checkpoints: one matrix for each expert."""
    split = {}
    for name, t in tensors.items():
        if name.endswith("experts.gate_up_proj"):
            for e, both in enumerate(t):
                gate, up = both.chunk(2)
                split[f"{name[:-13]}.{e}.gate_proj.weight"], split[f"{name[:-13]}.{e}.up_proj.weight"] = gate.clone(), up.clone()
        elif name.endswith("experts.down_proj"):
            split |= {f"{name[:-10]}.{e}.down_proj.weight": matrix.clone() for e, matrix in enumerate(t)}
        else:
            split[name.replace("mlp.gate.moe_statics", "mlp.moe_statics")] = t  # ERNIE's
    return split


def make_eagle(out, model, generator):
    dim = LLAMA["hidden_size"]
    layer = randomise(type(model.model.layers[0])(model.config, 0), generator)
    layer.input_layernorm = torch.nn.Identity()
    fc = linear(dim, 2 * dim, generator, bias=True)
    ids = torch.randint(VOCAB, (TOKENS,), generator=generator)

    def inputs(tokens, rows):
        return fc(torch.cat([model.model.embed_tokens(tokens), rows], -1))

    with torch.no_grad():
        rows = model.model(ids[None]).last_hidden_state[0]
        x = inputs(ids[1:], rows[:-1])
        y = run_layer(model, layer, x)
        logits = model.lm_head(y)
        x = torch.cat([x, inputs(logits[-1:].argmax(-1), y[-1:])])
        next_logits = model.lm_head(run_layer(model, layer, x))[-1]
    tensors = {f"layers.0.{k}": t for k, t in layer.state_dict().items()}
    tensors |= {"fc.weight": fc.weight.detach(), "fc.bias": fc.bias.detach(), "embed_tokens.weight": model.model.embed_tokens.weight.detach()}
    save(f"{out}/eagle", tensors, config_of(model) | dict(num_hidden_layers=1), dict(ids=ids.int(), logits=logits, next_logits=next_logits))


def make_eagle3(out, model, generator, name, layer_name, normed_residual, reduced, own_embedding, ids_of_layers, config, more_layers=0):
    dim, eps = LLAMA["hidden_size"], model.config.rms_norm_eps
    layer = randomise(type(model.model.layers[0])(model.config, 0), generator)
    for part in ("q_proj", "k_proj", "v_proj"):
        setattr(layer.self_attn, part, linear(getattr(layer.self_attn, part).out_features, 2 * dim, generator))
    token_norm, hidden_norm, final_norm = (rms_norm(dim, generator, eps) for _ in range(3))
    rest = [randomise(type(model.model.layers[0])(model.config, 0), generator) for _ in range(more_layers)]
    fc = linear(dim, 3 * dim, generator)
    head = linear(DRAFT_VOCAB if reduced else VOCAB, dim, generator)
    embed = torch.nn.Embedding(VOCAB, dim) if own_embedding else model.model.embed_tokens
    if own_embedding:
        randomise(embed, generator)
    known = torch.randperm(VOCAB, generator=generator)[:DRAFT_VOCAB].sort().values if reduced else torch.arange(VOCAB)
    ids = torch.randint(VOCAB, (TOKENS,), generator=generator)

    def run(rows, tokens):
        """Returns the residual after the layer. Its mixer reads embedding and row, each after its norm."""
        n = len(rows)
        x = torch.cat([token_norm(embed(tokens)), hidden_norm(rows)], -1)[None]
        positions = torch.arange(n)[None]
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        mixed = layer.self_attn(x, attention_mask=mask, position_embeddings=model.model.rotary_emb(x, positions))[0][0]
        residual = (hidden_norm(rows) if normed_residual else rows) + mixed
        residual = residual + layer.mlp(layer.post_attention_layernorm(residual))
        for further in rest:
            residual = run_layer(model, further, residual)
        return residual

    with torch.no_grad():
        states = model.model(ids[None], output_hidden_states=True).hidden_states  # [i]: input of layer i
        rows = fc(torch.cat([states[i][0] for i in ids_of_layers], -1))[:-1]
        y = run(rows, ids[1:])
        logits = head(final_norm(y))
        rows = torch.cat([rows, y[-1:]])
        next_logits = head(final_norm(run(rows, torch.cat([ids[1:], known[logits[-1:].argmax(-1)]]))))[-1]
    tensors = {f"{layer_name}.{k}": t for k, t in layer.state_dict().items() if k != "input_layernorm.weight"}
    tensors |= {f"{layer_name}.input_layernorm.weight": token_norm.weight.detach(), f"{layer_name}.hidden_norm.weight": hidden_norm.weight.detach(),
                "norm.weight": final_norm.weight.detach(), "fc.weight": fc.weight.detach(), "lm_head.weight": head.weight.detach()}
    for number, further in enumerate(rest):
        tensors |= {f"layers.{number + 1}.{k}": t for k, t in further.state_dict().items()}
    if reduced:
        tensors["d2t"] = known - torch.arange(DRAFT_VOCAB)
        tensors["t2d"] = torch.zeros(VOCAB, dtype=torch.bool).index_fill(0, known, True)
    if own_embedding:
        tensors["embed_tokens.weight"] = embed.weight.detach()
    save(f"{out}/{name}", tensors, config, dict(ids=ids.int(), logits=logits, next_logits=next_logits))


def hidden_states(model, generator, places):
    """Returns a text, and rows [n - places, dim] of the tokens that have at least `places` tokens after them."""
    ids = torch.randint(VOCAB, (TOKENS,), generator=generator)
    return ids, model.model(ids[None]).last_hidden_state[0][: TOKENS - places]


def make_medusa(out, model, generator, name, block_name, output_name, bias, blocks, outputs, token_map, config):
    """Makes blocks x + silu(W x + b), then an output matrix for each position or one for all, of a smaller vocabulary
    if there is a token_map."""
    dim, places = LLAMA["hidden_size"], 3
    heads = [[linear(dim, dim, generator, bias) for _ in range(blocks)] for _ in range(places)]
    own = [linear(VOCAB, dim, generator) for _ in range(outputs)]
    known = torch.randperm(VOCAB, generator=generator)[:DRAFT_VOCAB] if token_map else torch.arange(VOCAB)
    logits = []
    with torch.no_grad():
        ids, rows = hidden_states(model, generator, places)
        for place, head in enumerate(heads):
            x = rows
            for layer in head:
                x = x + torch.nn.functional.silu(layer(x))
            logits.append((own[min(place, outputs - 1)] if own else model.lm_head)(x)[:, known])
    tensors = {}
    for place, head in enumerate(heads):
        for number, layer in enumerate(head):
            tensors |= {block_name.format(place, number) + f".{k}": t.detach() for k, t in layer.state_dict().items()}
    tensors |= {output_name.format(place) + ".weight": matrix.weight.detach() for place, matrix in enumerate(own)}
    if token_map:
        tensors["token_map"] = known
    save(f"{out}/{name}", tensors, config, dict(ids=ids.int(), logits=torch.stack(logits)),
         file="medusa_lm_head.safetensors" if "medusa_num_heads" in config else "model.safetensors")


def make_mlp_speculator(out, model, generator, name, prefix, inner, tied, scaled):
    dim, places = LLAMA["hidden_size"], 3
    count = 1 if tied else places
    tables = [randomise(torch.nn.Embedding(VOCAB, inner), generator) for _ in range(count)]
    products = [linear(inner, dim if place == 0 else inner, generator) for place in range(2 if tied else places)]
    norms = [(rms_norm(inner, generator).weight.detach(), (torch.randn(inner, generator=generator) * 0.1).bfloat16().float()) for _ in range(count)]
    outputs = [linear(VOCAB, inner, generator) for _ in range(count)]
    state_weight = 0.5 ** (0.5 / places)
    token_weight = ((1 - state_weight**2) * inner / 2) ** 0.5

    def normed(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    logits = []
    with torch.no_grad():
        ids, state = hidden_states(model, generator, places)
        if scaled:
            state = normed(state) / 2**0.5
        for place in range(places):
            tokens = ids[1 + place : 1 + place + TOKENS - places]
            weight, bias = norms[min(place, len(norms) - 1)]
            state = products[min(place, len(products) - 1)](state) + token_weight / state_weight * tables[min(place, count - 1)](tokens)
            state = torch.nn.functional.gelu(weight * normed(state) + bias)
            logits.append(outputs[min(place, count - 1)](state))
    tensors = {}
    for kind, matrices in (("emb", tables), ("proj", products), ("head", outputs)):
        tensors |= {f"{prefix}{kind}.{i}.weight": m.weight.detach() for i, m in enumerate(matrices)}
    for i, (weight, bias) in enumerate(norms):
        tensors |= {f"{prefix}ln.{i}.weight": weight, f"{prefix}ln.{i}.bias": bias}
    save(f"{out}/{name}", tensors, speculator_config(inner, places, tied, scaled), dict(ids=ids.int(), logits=torch.stack(logits)))


def speculator_config(inner, places, tied, scaled):
    return dict(architectures=["MLPSpeculatorPreTrainedModel"], model_type="mlp_speculator", vocab_size=VOCAB, emb_dim=LLAMA["hidden_size"],
                inner_dim=inner, n_predict=places, tie_weights=tied, scale_input=scaled, top_k_tokens_per_head=[1] * places)


def make_place_heads(out, llama, markov):
    """Makes heads for `llama`, and for `markov` heads that are often right: an MLP speculator that is a table of next
    tokens, and Medusa heads whose output matrices are fitted to the tokens at distances two and three."""
    generator = torch.Generator().manual_seed(2)
    medusa = dict(architectures=["MedusaModel"], model_type="medusa", hidden_size=LLAMA["hidden_size"], vocab_size=VOCAB, num_heads=3)
    make_medusa(out, llama, generator, "medusa", "blocks.{}.layers.{}", "lm_heads.{}", False, 2, 3, False, dict(medusa, num_hidden_layers=2))
    make_medusa(out, llama, generator, "medusa-authors", "{}.{}.linear", "{}.1", True, 1, 3, False,
                dict(medusa_num_heads=3, medusa_num_layers=1, base_model_name_or_path="llama"))
    make_medusa(out, llama, generator, "medusa-token-map", "medusa_heads.blocks.{}.layers.{}", "medusa_heads.lm_heads.{}", True, 1, 1, True,
                dict(medusa, num_hidden_layers=1, medusa_fc_bias=True, original_lm_head=True, truncated_vocab_size=DRAFT_VOCAB))
    make_medusa(out, llama, generator, "medusa-borrowing", "blocks.{}.layers.{}", "", False, 1, 0, False, dict(medusa, num_hidden_layers=1))
    make_mlp_speculator(out, llama, generator, "mlp-speculator", "speculator.", 40, False, True)
    make_mlp_speculator(out, llama, generator, "mlp-speculator-tied", "", 48, True, False)

    dim = LLAMA["hidden_size"]
    with torch.no_grad():
        rows = markov.model(torch.arange(VOCAB)[:, None]).last_hidden_state[:, 0]
        follows = markov.lm_head(rows).argmax(-1)
        tensors, on = {}, follows
        for place in range(3):
            on = follows[on]
            wanted = torch.nn.functional.one_hot(on, VOCAB).float()
            tensors[f"blocks.{place}.layers.0.weight"] = torch.zeros(dim, dim)
            tensors[f"lm_heads.{place}.weight"] = torch.linalg.lstsq(rows, wanted).solution.T * 30
    save(f"{out}/markov-medusa", tensors, dict(medusa, num_hidden_layers=1))
    tensors = {"emb.0.weight": torch.eye(VOCAB), "proj.0.weight": torch.zeros(VOCAB, dim), "proj.1.weight": torch.zeros(VOCAB, VOCAB),
               "ln.0.weight": torch.ones(VOCAB), "ln.0.bias": torch.zeros(VOCAB), "head.0.weight": torch.nn.functional.one_hot(follows, VOCAB).T.float()}
    save(f"{out}/markov-mlp", tensors, speculator_config(VOCAB, 3, True, False))


def make_markov(out, generator):
    """Makes a target whose next token depends almost only on the last one, and an EAGLE head that reads only that
    token and is often right."""
    model = target("Llama", dict(LLAMA, num_hidden_layers=2), generator)
    layer = type(model.model.layers[0])(model.config, 0)
    fc = torch.zeros(LLAMA["hidden_size"], 2 * LLAMA["hidden_size"])
    fc[:, : len(fc)] = torch.eye(len(fc))
    with torch.no_grad():
        model.model.norm.weight.fill_(1)
        for name, p in [*model.model.layers.named_parameters(), *layer.named_parameters()]:
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                p.mul_(0.02 if "0." in name or "1." in name else 0)
    save(f"{out}/markov", dict(model.state_dict()), config_of(model))
    tensors = {f"layers.0.{k}": t for k, t in layer.state_dict().items() if k != "input_layernorm.weight"}
    save(f"{out}/markov-eagle", tensors | {"fc.weight": fc}, config_of(model) | dict(num_hidden_layers=1))
    return model


def main():
    out = sys.argv[1]
    generator = torch.Generator().manual_seed(1)
    deepseek_names = ("enorm", "hnorm", "eh_proj", "shared_head.norm")
    make_predictor(out, "deepseek_v3", "DeepseekV3", DEEPSEEK, generator, False, False, deepseek_names, "model.layers.2.")
    make_predictor(out, "glm4_moe", "Glm4Moe", GLM, generator, False, False, deepseek_names, "model.layers.2.")
    make_predictor(out, "mimo", "Qwen2", MIMO, generator, True, True,
                   ("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm"), "model.mtp_layers.0.",
                   architectures=["MiMoForCausalLM"])
    llama = target("Llama", LLAMA, generator)
    save(f"{out}/llama", dict(llama.state_dict()), config_of(llama))
    make_eagle(out, llama, generator)
    layer = config_of(llama) | dict(num_hidden_layers=1)
    make_eagle3(out, llama, generator, "eagle3", "midlayer", False, True, False, (2, 4, 5), dict(layer, draft_vocab_size=DRAFT_VOCAB))
    make_eagle3(out, llama, generator, "eagle3-speculators", "layers.0", True, False, True, (1, 3, 6),
                dict(architectures=["Eagle3Speculator"], speculators_model_type="eagle3", transformer_layer_config=layer,
                     draft_vocab_size=VOCAB, norm_before_residual=True, eagle_aux_hidden_state_layer_ids=[1, 3, 6]))
    make_place_heads(out, llama, make_markov(out, generator))
    make_eagle3(out, llama, torch.Generator().manual_seed(5), "eagle3-layers", "layers.0", False, True, False, (2, 4, 5),
                dict(layer, num_hidden_layers=2, draft_vocab_size=DRAFT_VOCAB), more_layers=1)
    make_hybrids(out)
    make_predictor(out, "ernie4_5_moe", "Ernie4_5_Moe", ERNIE, torch.Generator().manual_seed(4), False, False,
                   ("mtp_emb_norm.0", "mtp_hidden_norm.0", "mtp_linear_proj.0"), "model.mtp_block.0.", like=0, norm_prefix="model.")


if __name__ == "__main__":
    main()
