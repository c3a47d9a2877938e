"""Networks that transformers lacks, from the formulas of their papers, for make_model_goldens.py.

Plain torch code, which is slow and easy to check."""
import copy

import torch
from own_decoders import *  # noqa: F403
from own_latest import *  # noqa: F403
from torch import nn
from torch.nn import functional as F
from transformers import DeepseekV3ForCausalLM, LlamaConfig, LlamaForCausalLM, PretrainedConfig, PreTrainedModel, Step3p7TextConfig, Step3p7TextModel
from transformers.modeling_outputs import CausalLMOutput
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3DecoderLayer
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


class GatedMlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def turned(x, theta):
    """Applies rotary embeddings to [tokens, heads, dim], whose halves are pairs."""
    dim = x.shape[-1]
    angles = torch.arange(x.shape[0], dtype=torch.float32)[:, None] * theta ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    cos, sin = (torch.cat([part, part], -1)[:, None].to(x.dtype) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Step3TextConfig(PretrainedConfig):
    model_type = "step3_text"


class Step3Attention(nn.Module):
    """Multi-matrix factorization attention: queries of a normalised latent, one key head."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.dim, self.theta = config.num_attention_heads, config.head_dim, config.rope_theta
        self.q_proj = nn.Linear(config.hidden_size, config.share_q_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.dim, bias=False)
        self.inter_norm = RmsNorm(config.share_q_dim, config.rms_norm_eps)
        self.wq = nn.Linear(config.share_q_dim, self.heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, config.hidden_size, bias=False)

    def forward(self, x):
        n = x.shape[0]
        q = turned(self.wq(self.inter_norm(self.q_proj(x))).view(n, self.heads, self.dim), self.theta)
        k = turned(self.k_proj(x)[:, None], self.theta)[:, 0]
        scores = torch.einsum("qhd,kd->hqk", q, k) * self.dim ** -0.5
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
        shares = scores.float().softmax(-1).to(x.dtype)
        return self.o_proj(torch.einsum("hqk,kd->qhd", shares, self.v_proj(x)).reshape(n, -1))


class Stack(nn.Module):
    """One matrix for each expert."""

    def __init__(self, count, rows, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(count, rows, cols))


class Step3Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.chosen, self.renormalise = config.moe_top_k, config.norm_expert_weight
        self.gate = nn.Linear(config.hidden_size, config.moe_num_experts, bias=False)
        hidden = config.moe_intermediate_size
        self.gate_proj = Stack(config.moe_num_experts, hidden, config.hidden_size)
        self.up_proj = Stack(config.moe_num_experts, hidden, config.hidden_size)
        self.down_proj = Stack(config.moe_num_experts, config.hidden_size, hidden)

    def forward(self, x):
        weights, experts = self.gate(x).float().softmax(-1).topk(self.chosen)
        if self.renormalise:
            weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for t in range(x.shape[0]):
            for weight, e in zip(weights[t], experts[t]):
                hidden = F.silu(self.gate_proj.weight[e] @ x[t]) * (self.up_proj.weight[e] @ x[t])
                out[t] += weight.to(x.dtype) * (self.down_proj.weight[e] @ hidden)
        return out


class Step3Layer(nn.Module):
    def __init__(self, config, number):
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Step3Attention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.sparse = str(number) in config.moe_layers_enum.split(",")
        if self.sparse:
            self.moe = Step3Experts(config)
            self.share_expert = GatedMlp(config.hidden_size, config.share_expert_dim)
        else:
            self.mlp = GatedMlp(config.hidden_size, config.intermediate_size)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        y = self.post_attention_layernorm(x)
        return x + (self.moe(y) + self.share_expert(y) if self.sparse else self.mlp(y))


class Step3Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Step3Layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = RmsNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Step3TextForCausalLM(PreTrainedModel):
    config_class = Step3TextConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = Step3Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def forward(self, input_ids, use_cache=False):
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids[0]))[None])


Step3p5Config = Step3p7TextConfig


class Step3p5ForCausalLM(PreTrainedModel):
    """The text model of Step-3.7, which transformers has only together with images."""

    config_class = Step3p5Config

    def __init__(self, config):
        # gguf_files.py knows which layers have other numbers of heads
        config.allow_global_per_layer_attribute_access = True
        super().__init__(config)
        self.model = Step3p7TextModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def forward(self, input_ids, use_cache=False):
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids, use_cache=use_cache).last_hidden_state))


class RWKV7Config(PretrainedConfig):
    model_type = "rwkv7"


class LowRank(nn.Module):
    """Two matrices with an activation between them, with flash-linear-attention's names."""

    def __init__(self, dim, rank, rows, activation=None, bias=True):
        super().__init__()
        self.lora = nn.Sequential(nn.Linear(dim, rank, bias=False), activation or nn.Identity(), nn.Linear(rank, rows, bias=bias))

    def forward(self, x):
        return self.lora(x)


def before(x):
    """Returns the row before each row, [tokens, dim]."""
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


class Rwkv7TimeMix(nn.Module):
    """Peng et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", 2025, equations 3 to 25."""

    def __init__(self, config, number):
        super().__init__()
        dim, self.head_dim, self.first, self.fused = config.hidden_size, config.head_dim, number == 0, config.fuse_norm
        for letter in "rwkvag":
            setattr(self, "x_" + letter, nn.Parameter(torch.zeros(1, 1, dim)))
        self.k_k = nn.Parameter(torch.zeros(dim))
        self.k_a = nn.Parameter(torch.zeros(dim))
        self.r_k = nn.Parameter(torch.zeros(dim // self.head_dim, self.head_dim))
        for letter in "rkvo":
            setattr(self, letter + "_proj", nn.Linear(dim, dim, bias=False))
        self.w_lora = LowRank(dim, config.decay_low_rank_dim, dim, nn.Tanh())
        self.a_lora = LowRank(dim, config.a_low_rank_dim, dim)
        self.g_lora = LowRank(dim, config.gate_low_rank_dim, dim, nn.Sigmoid(), bias=False)
        if not self.first:
            self.v_lora = LowRank(dim, config.v_low_rank_dim, dim)
        self.g_norm = nn.GroupNorm(dim // self.head_dim, dim, eps=self.head_dim * config.norm_eps)

    def forward(self, x, first_values):
        n, heads = x.shape[0], x.shape[1] // self.head_dim
        earlier = before(x) - x
        mixed = {letter: x + earlier * getattr(self, "x_" + letter)[0] for letter in "rwkvag"}
        r, k, v = self.r_proj(mixed["r"]), self.k_proj(mixed["k"]), self.v_proj(mixed["v"])
        decay = torch.exp(-0.6065306597126334 * self.w_lora(mixed["w"]).float().sigmoid())
        if self.first:
            first_values = v
        else:
            v = torch.lerp(v, first_values, self.v_lora(mixed["v"]).sigmoid())
        rate, gate = self.a_lora(mixed["a"]).sigmoid(), self.g_lora(mixed["g"])
        unit = (k * self.k_k).view(n, heads, -1)
        if self.fused:
            unit = unit * torch.rsqrt(unit.float().square().sum(-1, keepdim=True) + 1e-6).to(x.dtype)
        else:
            unit = F.normalize(unit, dim=-1)
        k = k * (1 + (rate - 1) * self.k_a)
        r, k, v, rate, decay = (y.view(n, heads, -1) for y in (r, k, v, rate, decay))
        state = torch.zeros(heads, self.head_dim, self.head_dim)  # [heads, keys, values]
        out = []
        for t in range(n):
            found = torch.einsum("hk,hkv->hv", unit[t].float(), state)
            state = decay[t][:, :, None] * state - (unit[t] * rate[t]).float()[:, :, None] * found[:, None] + k[t].float()[:, :, None] * v[t].float()[:, None]
            out.append(torch.einsum("hk,hkv->hv", r[t].float(), state))
        normed = self.g_norm(torch.stack(out).to(x.dtype).view(n, -1))
        bonus = (r * k * self.r_k).sum(-1, keepdim=True) * v
        return self.o_proj((normed + bonus.view(n, -1)) * gate), first_values


class Rwkv7ChannelMix(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.x_k = nn.Parameter(torch.zeros(config.hidden_size))
        self.key = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.value = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.value(self.key(x + (before(x) - x) * self.x_k).relu().square())


class Rwkv7Layer(nn.Module):
    def __init__(self, config, number):
        super().__init__()

        def norm():
            return nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=config.norm_bias)

        if number == 0 and config.norm_first:
            self.pre_norm = norm()
        self.attn_norm, self.attn = norm(), Rwkv7TimeMix(config, number)
        self.ffn_norm, self.ffn = norm(), Rwkv7ChannelMix(config)

    def forward(self, x, first_values):
        if hasattr(self, "pre_norm"):
            x = self.pre_norm(x)
        change, first_values = self.attn(self.attn_norm(x), first_values)
        x = x + change
        return x + self.ffn(self.ffn_norm(x)), first_values


class Rwkv7Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Rwkv7Layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=config.norm_bias)

    def forward(self, ids):
        x, first_values = self.embeddings(ids), None
        for layer in self.layers:
            x, first_values = layer(x, first_values)
        return self.norm(x)


class RWKV7ForCausalLM(PreTrainedModel):
    config_class = RWKV7Config

    def __init__(self, config):
        super().__init__(config)
        self.model = Rwkv7Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def forward(self, input_ids, use_cache=False):
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids[0]))[None])


class DeciLMConfig(LlamaConfig):
    model_type = "nemotron-nas"
    block_configs: list | None = None


class Nothing(nn.Module):
    def __init__(self, pair=False):
        super().__init__()
        self.pair = pair

    def forward(self, hidden_states, **_):
        zeros = torch.zeros_like(hidden_states)
        return (zeros, None) if self.pair else zeros


class DeciLMForCausalLM(LlamaForCausalLM):
    """A Llama whose layers have different numbers of key heads and MLP widths, or lack attention or MLP (Puzzle,
    2024)."""

    config_class = DeciLMConfig

    def __init__(self, config):
        super().__init__(config)
        for number, (layer, block) in enumerate(zip(self.model.layers, config.block_configs)):
            own = copy.deepcopy(config)
            if block["attention"].get("no_op"):
                layer.self_attn, layer.input_layernorm = Nothing(pair=True), nn.Identity()
            else:
                own.num_key_value_heads = config.num_attention_heads // block["attention"]["n_heads_in_group"]
                layer.self_attn = LlamaAttention(own, number)
            if block["ffn"].get("no_op"):
                layer.mlp, layer.post_attention_layernorm = Nothing(), nn.Identity()
            else:
                multiple = int(2 * block["ffn"].get("ffn_mult", 0) * config.hidden_size / 3)
                own.intermediate_size = block["ffn"].get("intermediate_size", -(-multiple // 256) * 256)
                layer.mlp = LlamaMLP(own)


class SolarConfig(LlamaConfig):
    model_type = "solar"
    bskcn_1: list | None = None
    bskcn_2: list | None = None
    bskcn_3: list | None = None
    bskcn_4: list | None = None
    bskcn_tv: list | None = None


class SolarForCausalLM(LlamaForCausalLM):
    """A Llama that mixes the inputs of earlier layers into those of later ones."""

    config_class = SolarConfig

    def __init__(self, config):
        super().__init__(config)
        kept = {}
        share = config.bskcn_tv[1]

        def before(number):
            def hook(_, inputs, kwargs):
                x = inputs[0]
                pairs = ((config.bskcn_1, config.bskcn_3), (config.bskcn_2, config.bskcn_4))
                for which, (keeps, _) in enumerate(pairs):
                    if number in keeps:
                        kept[which] = x
                for which, (_, mixes) in enumerate(pairs):
                    if number in mixes:
                        x = kept[which] * share + x * (1 - share)
                return (x, *inputs[1:]), kwargs
            return hook

        for number, layer in enumerate(self.model.layers):
            layer.register_forward_pre_hook(before(number), with_kwargs=True)


class SandwichLayer(DeepseekV3DecoderLayer):
    def __init__(self, config, number):
        super().__init__(config, number)
        self.pre_mlp_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)
        self.post_mlp_layernorm = RmsNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, hidden_states, **kwargs):
        attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **kwargs)
        x = hidden_states + self.post_attention_layernorm(attended)
        return x + self.post_mlp_layernorm(self.mlp(self.pre_mlp_layernorm(x)))


class PanguUltraMoEForCausalLM(DeepseekV3ForCausalLM):
    """DeepSeek-V3 with norms before and after attention and MLP."""

    def __init__(self, config):
        super().__init__(config)
        self.model.layers = nn.ModuleList(SandwichLayer(config, i) for i in range(config.num_hidden_layers))


class GroupedLightning(nn.Module):
    """Ling 2.5's lightning attention: normalised queries and keys with RoPE, a norm of each group of heads, a
    gate."""

    def __init__(self, config, number):
        super().__init__()
        self.heads, self.dim, self.groups, self.theta = config.num_attention_heads, config.linear_head_dim, config.group_norm_size, config.linear_theta
        self.turning = int(self.dim * config.linear_share)
        inner, hidden = self.heads * self.dim, config.hidden_size
        self.query_key_value = nn.Linear(hidden, 3 * inner, bias=False)
        self.g_proj = nn.Linear(hidden, inner, bias=False)
        self.dense = nn.Linear(inner, hidden, bias=False)
        self.query_layernorm, self.key_layernorm = RmsNorm(self.dim, config.rms_norm_eps), RmsNorm(self.dim, config.rms_norm_eps)
        self.g_norm = RmsNorm(inner, config.rms_norm_eps)
        whole = 2 ** (self.heads.bit_length() - 1)
        slopes = [2 ** (-8 * i / whole) for i in range(1, whole + 1)] + [2 ** (-4 * i / whole) for i in range(1, 2 * (self.heads - whole), 2)]
        self.rates = [slope * (1 - number / (config.num_hidden_layers - 1) + 1e-5) for slope in slopes]

    def forward(self, hidden_states, **_):
        x = hidden_states[0]
        n = x.shape[0]
        q, k, v = self.query_key_value(x).float().view(n, 3, self.heads, self.dim).unbind(1)
        q, k = (torch.cat([turned(y[..., :self.turning], self.theta), y[..., self.turning:]], -1)
                for y in (self.query_layernorm(q).float(), self.key_layernorm(k).float()))
        kept = torch.tensor(self.rates).neg().exp()[:, None, None]
        state, out = torch.zeros(self.heads, self.dim, self.dim), []
        for t in range(n):
            state = kept * state + k[t][:, :, None] * v[t][:, None]
            out.append(torch.einsum("hk,hkv->hv", q[t] * self.dim ** -0.5, state))
        grouped = torch.stack(out).view(n, self.groups, -1)
        grouped = grouped * torch.rsqrt(grouped.square().mean(-1, keepdim=True) + self.g_norm.eps)
        normed = grouped.view(n, -1) * self.g_norm.weight * self.g_proj(x).float().sigmoid()
        return self.dense(normed.to(x.dtype))[None], None


class BailingMoeV2_5ForCausalLM(DeepseekV3ForCausalLM):
    """DeepSeek-V3 with GroupedLightning in all layers except every layer_group_size-th one."""

    def __init__(self, config):
        super().__init__(config)
        for number, layer in enumerate(self.model.layers):
            if (number + 1) % config.layer_group_size:
                layer.self_attn = GroupedLightning(config, number)
