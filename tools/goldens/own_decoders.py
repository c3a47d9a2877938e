"""Decoders of 2025 and 2026 that transformers lacks, from the code of vLLM 0.33, for make_model_goldens.py.

Plain torch code, which is slow and easy to check."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, MuseGlimmerTextConfig, MuseGlimmerTextModel, NemotronHConfig, NemotronHForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


def normed(x, weight=None, eps=1e-6):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide if weight is None else wide * weight.float()).to(x.dtype)


def rotated(x, theta):
    """Applies rotary embeddings to [tokens, heads, dim], whose halves are pairs."""
    dim = x.shape[-1]
    angles = torch.arange(x.shape[0], dtype=torch.float32)[:, None] * theta ** (-torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    cos, sin = (torch.cat([part, part], -1)[:, None].to(x.dtype) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def attended(q, k, v, window=0, bias=None):
    """Causal attention of q [tokens, heads, dim] to k and v [tokens, key heads, dim]. `bias` is [heads, tokens, tokens]."""
    n, heads, dim = q.shape
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k).float() * dim ** -0.5
    if bias is not None:
        scores = scores + bias
    distance = torch.arange(n)[:, None] - torch.arange(n)
    hidden = (distance < 0) | (distance >= window if window else False)
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, float("-inf")).softmax(-1).to(v.dtype), v).reshape(n, -1)


class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return normed(x, self.weight, self.eps)


class GatedMlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Projections(nn.Module):
    """The matrices of attention."""

    def __init__(self, config, head_dim, bias=False):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.num_key_value_heads, head_dim
        dim = config.hidden_size
        self.q_proj = nn.Linear(dim, self.heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(dim, self.kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(dim, self.kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(self.heads * head_dim, dim, bias=bias)

    def heads_of(self, x):
        return (proj(x).view(x.shape[0], -1, self.head_dim) for proj in (self.q_proj, self.k_proj, self.v_proj))


class Decoder(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class OwnForCausalLM(PreTrainedModel):
    layer_class, decoder_class = None, Decoder

    def __init__(self, config):
        super().__init__(config)
        self.model = self.decoder_class(config, self.layer_class)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def logits(self, x):
        return self.lm_head(x)

    def forward(self, input_ids, use_cache=False):
        return CausalLMOutput(logits=self.logits(self.model(input_ids[0]))[None])


class BeamConfig(PretrainedConfig):
    model_type = "beam"


class BeamAttention(Projections):
    def __init__(self, config, number):
        super().__init__(config, config.head_dim)
        self.sliding, self.window, self.theta = config.layer_types[number] == "sliding_attention", config.sliding_window, config.rope_parameters["rope_theta"]
        self.gate_proj = nn.Linear(config.hidden_size, self.heads * self.head_dim, bias=False)
        self.gate_bias = nn.Parameter(torch.zeros(self.heads))
        self.q_norm, self.k_norm = Norm(self.head_dim, config.rms_norm_eps), Norm(self.head_dim, config.rms_norm_eps)

    def forward(self, x):
        q, k, v = self.heads_of(x)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.sliding:
            q, k = rotated(q, self.theta), rotated(k, self.theta)
        else:
            q = q * ((1 + torch.arange(1, x.shape[0] + 1) / 2048) ** 0.1)[:, None, None].to(q.dtype)
        gate = self.gate_proj(x).view(x.shape[0], self.heads, -1) + self.gate_bias[:, None]
        return self.o_proj(attended(q, k, v, self.window if self.sliding else 0) * torch.sigmoid(gate).view(x.shape[0], -1))


class BeamExperts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.chosen, self.groups, self.kept, self.scale = config.num_experts_per_tok, config.n_group, config.topk_group, config.routed_scaling_factor
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.gate.register_buffer("e_score_correction_bias", torch.zeros(config.num_experts))
        self.experts = nn.ModuleList(GatedMlp(config.hidden_size, config.moe_intermediate_size) for _ in range(config.num_experts))

    def forward(self, x):
        scores = self.gate(x).float().sigmoid()
        ranks = (scores + self.gate.e_score_correction_bias.float()).view(x.shape[0], self.groups, -1)
        best = ranks.topk(2, -1).values.sum(-1)
        dropped = torch.ones_like(best, dtype=torch.bool).scatter(1, best.topk(self.kept, -1).indices, False)
        chosen = ranks.masked_fill(dropped[:, :, None], float("-inf")).flatten(1).topk(self.chosen, -1).indices
        weights = scores.gather(1, chosen)
        weights = weights / weights.sum(-1, keepdim=True) * self.scale
        return sum((weights * (chosen == e)).sum(-1, keepdim=True).to(x.dtype) * expert(x) for e, expert in enumerate(self.experts))


class BeamLayer(nn.Module):
    def __init__(self, config, number):
        super().__init__()
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            setattr(self, name + "_layernorm", Norm(config.hidden_size, config.rms_norm_eps))
        self.self_attn = BeamAttention(config, number)
        self.mlp = BeamExperts(config) if config.mlp_layer_types[number] == "sparse" else GatedMlp(config.hidden_size, config.intermediate_size)
        self.number = number

    @staticmethod
    def added(x, y, n):
        return x * math.sqrt((n - 1) / n) + y * math.sqrt(1 / n)

    def forward(self, x):
        x = self.added(x, self.post_attention_layernorm(self.self_attn(self.input_layernorm(x))), 2 * self.number + 2)
        return self.added(x, self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x))), 2 * self.number + 3)


class BeamForCausalLM(OwnForCausalLM):
    config_class, layer_class = BeamConfig, BeamLayer

    def logits(self, x):
        return torch.tanh(self.lm_head(x).float() / self.config.final_logit_softcapping) * self.config.final_logit_softcapping


class Step1Config(PretrainedConfig):
    model_type = "step1"


class Step1Attention(Projections):
    def __init__(self, config):
        own = copy.deepcopy(config)
        own.num_key_value_heads = config.num_attention_groups
        super().__init__(own, config.hidden_size // config.num_attention_heads, config.attention_bias)

    def slopes(self):
        whole = 2 ** math.floor(math.log2(self.heads))
        first = [2 ** (-8 * i / whole) for i in range(1, whole + 1)]
        return torch.tensor(first + [2 ** (-4 * i / whole) for i in range(1, 2 * (self.heads - whole), 2)])

    def forward(self, x):
        q, k, v = self.heads_of(x)
        distance = (torch.arange(x.shape[0])[:, None] - torch.arange(x.shape[0])).clamp(min=0)
        return self.o_proj(attended(q, k, v, bias=-self.slopes()[:, None, None] * distance.float().sqrt()))


class Step1Layer(nn.Module):
    def __init__(self, config, _):
        super().__init__()
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Step1Attention(config)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.mlp = GatedMlp(config.hidden_size, config.intermediate_size)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Step1ForCausalLM(OwnForCausalLM):
    config_class, layer_class = Step1Config, Step1Layer


class DomynEdgeConfig(PretrainedConfig):
    model_type = "domyn_edge"


class DomynEdgeAttention(Projections):
    def __init__(self, config, number):
        super().__init__(config, config.head_dims[number])
        self.rotates, self.theta = config.position_layers[number] == "rope", config.rope_parameters["rope_theta"]
        self.window = config.window_sizes[number][0] + 1
        self.k_norm = Norm(self.head_dim, config.rms_norm_eps)

    def forward(self, x):
        q, k, v = self.heads_of(x)
        q, k = normed(q, eps=self.k_norm.eps), self.k_norm(k)
        if self.rotates:
            q, k = rotated(q, self.theta), rotated(k, self.theta)
        return self.o_proj(attended(q, k, v, self.window))


class DomynEdgeLayer(nn.Module):
    def __init__(self, config, number):
        super().__init__()
        for name in ("pre_attention", "post_attention", "pre_feedforward", "post_feedforward"):
            setattr(self, name + "_norm", Norm(config.hidden_size, config.rms_norm_eps))
        self.attention = DomynEdgeAttention(config, number)
        self.feedforward = GatedMlp(config.hidden_size, config.intermediate_size)

    def forward(self, x):
        x = x + self.post_attention_norm(self.attention(self.pre_attention_norm(x)))
        return x + self.post_feedforward_norm(self.feedforward(self.pre_feedforward_norm(x)))


class DomynEdgeForCausalLM(OwnForCausalLM):
    config_class, layer_class = DomynEdgeConfig, DomynEdgeLayer


MuseGlimmerConfig = MuseGlimmerTextConfig


class MuseGlimmerForCausalLM(PreTrainedModel):
    """The text model of Muse Glimmer, which transformers has only together with images."""

    config_class = MuseGlimmerTextConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = MuseGlimmerTextModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def forward(self, input_ids, use_cache=False):
        logits = self.lm_head(self.model(input_ids, use_cache=use_cache).last_hidden_state) * self.config.output_multiplier
        cap = self.config.final_logit_softcapping
        return CausalLMOutput(logits=torch.tanh(logits / cap) * cap)


class LingDelta(nn.Module):
    """Kimi delta attention with a strongest decay, whose decays and gates have one matrix each."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.dim, self.least = config.num_attention_heads, config.linear_head_dim, config.kda_lower_bound
        inner, width = self.heads * self.dim, config.short_conv_kernel_size
        for letter in "qkvfg":
            setattr(self, letter + "_proj", nn.Linear(config.hidden_size, inner, bias=False))
        for letter in "qkv":
            setattr(self, letter + "_conv1d", nn.Conv1d(inner, inner, width, groups=inner, padding=width - 1, bias=False))
        self.b_proj = nn.Linear(config.hidden_size, self.heads, bias=False)
        self.A_log = nn.Parameter(torch.zeros(1, 1, self.heads, 1))
        self.dt_bias = nn.Parameter(torch.zeros(inner))
        self.o_norm = Norm(self.dim, config.rms_norm_eps)
        self.o_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, hidden_states, **_):
        x = hidden_states[0]
        n = x.shape[0]
        q, k, v = (F.silu(conv(proj(x).T)[:, :n].T).view(n, self.heads, -1) for proj, conv in (
            (self.q_proj, self.q_conv1d), (self.k_proj, self.k_conv1d), (self.v_proj, self.v_conv1d)))
        q, k = (y.float() * torch.rsqrt(y.float().square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        rate = (self.f_proj(x).float() + self.dt_bias.float()).view(n, self.heads, -1) * self.A_log.float().exp()[0]
        decay, beta = torch.exp(self.least * rate.sigmoid()), self.b_proj(x).float().sigmoid()
        state, out = torch.zeros(self.heads, self.dim, self.dim), []  # [heads, keys, values]
        for t in range(n):
            state = state * decay[t][:, :, None]
            change = beta[t][:, None] * (v[t].float() - torch.einsum("hk,hkv->hv", k[t], state))
            state = state + k[t][:, :, None] * change[:, None]
            out.append(torch.einsum("hk,hkv->hv", q[t], state) * self.dim ** -0.5)
        gated = self.o_norm(torch.stack(out).to(x.dtype)) * torch.sigmoid(self.g_proj(x)).view(n, self.heads, -1)
        return self.o_proj(gated.reshape(n, -1))[None], None


class GatedLatent(nn.Module):
    """Multiplies the heads of latent attention by gates."""

    def __init__(self, attention, config):
        super().__init__()
        self.attention, self.heads, self.dense = attention, config.num_attention_heads, attention.o_proj
        attention.o_proj = nn.Identity()
        self.g_proj = nn.Linear(config.hidden_size, self.heads, bias=False)

    def forward(self, hidden_states, **arguments):
        out, weights = self.attention(hidden_states=hidden_states, **arguments)
        gate = torch.sigmoid(self.g_proj(hidden_states))[..., None]
        return self.dense((out.unflatten(-1, (self.heads, -1)) * gate).flatten(-2)), weights


BailingMoeV3Config = DeepseekV3Config


class BailingMoeV3ForCausalLM(DeepseekV3ForCausalLM):
    """DeepSeek-V3 with LingDelta in most layers, and gates in the others."""

    def __init__(self, config):
        super().__init__(config)
        period = config.layer_group_size
        for i, layer in enumerate(self.model.layers):
            delta = (i + 1) % period != 0 and i < config.num_hidden_layers // period * period
            layer.self_attn = LingDelta(config) if delta else GatedLatent(layer.self_attn, config)

    def _init_weights(self, module):
        """The caller sets the weights."""


NemotronHPuzzleConfig = NemotronHConfig


class NemotronHPuzzleForCausalLM(NemotronHForCausalLM):
    """A Nemotron-H whose blocks of the same type differ (Puzzle)."""

    def __init__(self, config):
        super().__init__(config)
        for layer, block in zip(self.model.layers, config.block_configs):
            own = copy.deepcopy(config)
            for field, value in block.items():
                setattr(own, field, value)
            layer.mixer = type(layer.mixer)(own, layer_idx=getattr(layer.mixer, "layer_idx", None))

    def _init_weights(self, module):
        """The caller sets the weights."""
