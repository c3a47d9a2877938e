"""Decoders of 2026 that transformers lacks, from the code of vLLM 0.33, for make_model_goldens.py: loops over layers
and mixtures of earlier outputs.

Plain torch code, which is slow and easy to check."""
import torch
from own_decoders import BeamExperts, Decoder, GatedMlp, Norm, OwnForCausalLM, Projections, attended, normed, rotated
from torch import nn
from torch.nn import functional as F
from transformers import LongcatFlashConfig, LongcatFlashForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput


class IQuestLoopCoderConfig(PretrainedConfig):
    model_type = "iquestloopcoder"


class LoopLayer(nn.Module):
    def __init__(self, config, _):
        super().__init__()
        self.theta, self.window = config.rope_theta, config.loop_window_size
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Projections(config, config.hidden_size // config.num_attention_heads)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.mlp = GatedMlp(config.hidden_size, config.intermediate_size)

    def forward(self, x, gate, first):
        """`first` has the keys and values of the first time, or is empty."""
        q, k, v = self.self_attn.heads_of(self.input_layernorm(x))
        q, k = rotated(q, self.theta), rotated(k, self.theta)
        out = attended(q, k, v, self.window if first else 0)
        if first:
            share = torch.sigmoid(torch.einsum("thd,hd->th", q, gate.weight) + gate.bias).repeat_interleave(q.shape[-1], 1)
            out = attended(q, *first) * share + out * (1 - share)
        else:
            first.extend((k, v))
        x = x + self.self_attn.o_proj(out)
        return x + self.mlp(self.post_attention_layernorm(x))


class LoopDecoder(Decoder):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.times = config.loop_num
        self.gate_projections = nn.ModuleList(
            nn.Linear(config.hidden_size // config.num_attention_heads, config.num_attention_heads) for _ in self.layers)

    def forward(self, ids):
        x, firsts = self.embed_tokens(ids), [[] for _ in self.layers]
        for _ in range(self.times):
            for layer, gate, first in zip(self.layers, self.gate_projections, firsts):
                x = layer(x, gate, first)
        return self.norm(x)


class IQuestLoopCoderForCausalLM(OwnForCausalLM):
    config_class, layer_class, decoder_class = IQuestLoopCoderConfig, LoopLayer, LoopDecoder


class AliceAIConfig(PretrainedConfig):
    model_type = "alice_ai"


class OneMore(Norm):
    """A norm that stores its weight minus 1."""

    def forward(self, x):
        return normed(x, 1 + self.weight.float(), self.eps)


class AliceAttention(Projections):
    def __init__(self, config):
        super().__init__(config, config.head_dim)
        self.q_proj = nn.Linear(config.hidden_size, 2 * self.heads * self.head_dim, bias=False)
        self.q_norm, self.k_norm = OneMore(self.head_dim, config.rms_norm_eps), OneMore(self.head_dim, config.rms_norm_eps)
        self.theta, self.rotated_dim = config.rope_parameters["rope_theta"], int(self.head_dim * config.rope_parameters["partial_rotary_factor"])

    def rotated(self, x):
        return torch.cat([rotated(x[..., :self.rotated_dim], self.theta), x[..., self.rotated_dim:]], -1)

    def forward(self, x):
        n = x.shape[0]
        q, gate = self.q_proj(x).view(n, self.heads, 2 * self.head_dim).chunk(2, -1)
        k, v = (proj(x).view(n, self.kv_heads, self.head_dim) for proj in (self.k_proj, self.v_proj))
        out = attended(self.rotated(self.q_norm(q)), self.rotated(self.k_norm(k)), v)
        return self.o_proj(out * torch.sigmoid(gate.reshape(n, -1)))


class AliceDelta(nn.Module):
    """Kimi delta attention, whose decays and gates have two matrices each."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.dim = config.linear_num_key_heads, config.linear_key_head_dim
        inner, width = self.heads * self.dim, config.linear_conv_kernel_dim
        for letter in "qkv":
            setattr(self, letter + "_proj", nn.Linear(config.hidden_size, inner, bias=False))
            setattr(self, letter + "_conv1d", nn.Conv1d(inner, inner, width, groups=inner, padding=width - 1, bias=False))
        for letter in "fg":
            setattr(self, letter + "_a_proj", nn.Linear(config.hidden_size, self.dim, bias=False))
            setattr(self, letter + "_b_proj", nn.Linear(self.dim, inner, bias=False))
        self.b_proj = nn.Linear(config.hidden_size, self.heads, bias=False)
        self.a_log_bias, self.dt_bias = nn.Parameter(torch.zeros(self.heads)), nn.Parameter(torch.zeros(inner))
        self.o_norm = Norm(self.dim, config.rms_norm_eps)
        self.o_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, x):
        n = x.shape[0]
        q, k, v = (F.silu(conv(proj(x).T)[:, :n].T).view(n, self.heads, -1) for proj, conv in (
            (self.q_proj, self.q_conv1d), (self.k_proj, self.k_conv1d), (self.v_proj, self.v_conv1d)))
        q, k = (y.float() * torch.rsqrt(y.float().square().sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        rate = F.softplus(self.f_b_proj(self.f_a_proj(x)).float() + self.dt_bias.float()).view(n, self.heads, -1)
        decay, beta = torch.exp(-rate * self.a_log_bias.float().exp()[:, None]), self.b_proj(x).float().sigmoid()
        state, out = torch.zeros(self.heads, self.dim, self.dim), []  # [heads, keys, values]
        for t in range(n):
            state = state * decay[t][:, :, None]
            change = beta[t][:, None] * (v[t].float() - torch.einsum("hk,hkv->hv", k[t], state))
            state = state + k[t][:, :, None] * change[:, None]
            out.append(torch.einsum("hk,hkv->hv", q[t], state) * self.dim ** -0.5)
        gated = self.o_norm(torch.stack(out).to(x.dtype)) * torch.sigmoid(self.g_b_proj(self.g_a_proj(x))).view(n, self.heads, -1)
        return self.o_proj(gated.reshape(n, -1))


class AliceExperts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.chosen = config.num_experts_per_tok
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.gate.register_buffer("e_score_correction_bias", torch.zeros(config.num_experts))
        self.experts = nn.ModuleList(GatedMlp(config.hidden_size, config.moe_intermediate_size) for _ in range(config.num_experts))
        self.shared_expert = GatedMlp(config.hidden_size, config.shared_expert_intermediate_size)
        self.shared_expert_gate = nn.Linear(config.hidden_size, 1, bias=False)

    def forward(self, x):
        scores = self.gate(x).float().sigmoid()
        chosen = (scores + self.gate.e_score_correction_bias.float()).topk(self.chosen, -1).indices
        weights = scores.gather(1, chosen)
        weights = weights / weights.sum(-1, keepdim=True)
        routed = sum((weights * (chosen == e)).sum(-1, keepdim=True).to(x.dtype) * expert(x) for e, expert in enumerate(self.experts))
        return routed + torch.sigmoid(self.shared_expert_gate(x)) * self.shared_expert(x)


class SourceMix(nn.Module):
    """Attention over sources, from two tensors of `owner`."""

    @staticmethod
    def make(owner, name, dim):
        setattr(owner, name + "_proj", nn.Linear(dim, 1, bias=False))
        setattr(owner, name + "_norm_weight", nn.Parameter(torch.ones(dim)))

    @staticmethod
    def mixed(owner, name, sources, eps):
        x = torch.stack(sources, 1)
        query = getattr(owner, name + "_norm_weight").float() * getattr(owner, name + "_proj").weight[0].float()
        shares = (normed(x.float(), eps=eps) @ query).softmax(-1)
        return (shares[..., None] * x.float()).sum(1).to(x.dtype)


class AliceLayer(nn.Module):
    def __init__(self, config, number):
        super().__init__()
        self.number, self.eps = number, config.rms_norm_eps
        self.input_layernorm = OneMore(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = OneMore(config.hidden_size, config.rms_norm_eps)
        self.linear = config.layer_types[number] == "linear_attention"
        if self.linear:
            self.linear_attn = AliceDelta(config)
        else:
            self.self_attn = AliceAttention(config)
        self.mlp = AliceExperts(config)
        if number > 0:
            SourceMix.make(self, "attn_res", config.hidden_size)
        SourceMix.make(self, "mlp_res", config.hidden_size)

    def forward(self, bank, part):
        sources = bank + ([part] if part is not None else [])
        x = self.input_layernorm(SourceMix.mixed(self, "attn_res", sources, self.eps) if self.number > 0 else bank[0])
        out = self.linear_attn(x) if self.linear else self.self_attn(x)
        part = out if part is None else part + out
        return part + self.mlp(self.post_attention_layernorm(SourceMix.mixed(self, "mlp_res", bank + [part], self.eps)))


class AliceDecoder(Decoder):
    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.norm = OneMore(config.hidden_size, config.rms_norm_eps)
        self.group = config.block_attn_res_block_size
        self.attnres_final = nn.Module()
        SourceMix.make(self.attnres_final, "res", config.hidden_size)

    def forward(self, ids):
        bank, part = [self.embed_tokens(ids)], None
        for i, layer in enumerate(self.layers):
            if i > 0 and i % self.group == 0:
                bank, part = bank + [part], None
            part = layer(bank, part)
        return self.norm(SourceMix.mixed(self.attnres_final, "res", bank + [part], self.norm.eps))


class AliceAIForCausalLM(OwnForCausalLM):
    config_class, layer_class, decoder_class = AliceAIConfig, AliceLayer, AliceDecoder


class PanguProMoEV2Config(PretrainedConfig):
    model_type = "pangu_pro_moe_v2"


class PanguAttention(nn.Module):
    """Attention to the tokens and to fixed keys."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.kv_heads, self.value_dim = config.num_attention_heads, config.num_key_value_heads, config.v_channels
        self.rotated_dim, self.dim = config.qk_rope_dim, config.qk_rope_dim + config.qk_nope_dim
        dim = config.hidden_size
        self.q_proj = nn.Linear(dim, self.heads * self.dim, bias=True)
        self.k_proj = nn.Linear(dim, self.kv_heads * self.dim, bias=True)
        self.v_proj = nn.Linear(dim, self.kv_heads * self.value_dim, bias=True)
        self.o_proj = nn.Linear(self.heads * self.value_dim, dim, bias=False)
        self.k_layernorm = Norm(self.dim, config.rms_norm_eps)
        self.param_sink_key = nn.Parameter(torch.zeros(config.param_sink_number, self.kv_heads, self.dim))
        self.param_sink_value = nn.Parameter(torch.zeros(config.param_sink_number, self.kv_heads, self.value_dim))

    def rotated(self, x):
        """Rotates pairs of neighbours at the beginning of each head."""
        halves = x[..., :self.rotated_dim].unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
        turned = rotated(halves, 10000.0).unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)
        return torch.cat([turned, x[..., self.rotated_dim:]], -1)

    def forward(self, x):
        n, each = x.shape[0], self.heads // self.kv_heads
        q = self.rotated(self.q_proj(x).view(n, self.heads, self.dim))
        k = self.rotated(self.k_layernorm(self.k_proj(x).view(n, self.kv_heads, self.dim)))
        v = self.v_proj(x).view(n, self.kv_heads, self.value_dim)
        fixed = self.param_sink_key.shape[0]
        k = torch.cat([self.k_layernorm(self.param_sink_key), k]).repeat_interleave(each, 1)
        v = torch.cat([self.param_sink_value, v]).repeat_interleave(each, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k).float() * self.dim ** -0.5
        hidden = torch.arange(n)[:, None] < torch.arange(fixed + n) - fixed
        shares = scores.masked_fill(hidden, float("-inf")).softmax(-1).to(v.dtype)
        return self.o_proj(torch.einsum("hqk,khd->qhd", shares, v).reshape(n, -1))


class PanguExperts(BeamExperts):
    def __init__(self, config):
        super().__init__(config)
        self.shared_experts = GatedMlp(config.hidden_size, config.n_shared_experts * config.moe_intermediate_size)

    def forward(self, x):
        return super().forward(x) + self.shared_experts(x)


class PanguLayer(nn.Module):
    def __init__(self, config, number):
        super().__init__()
        for name in ("input", "post_attention", "pre_mlp", "post_mlp"):
            setattr(self, name + "_layernorm", Norm(config.hidden_size, config.rms_norm_eps))
        self.self_attn = PanguAttention(config)
        self.mlp = PanguExperts(config) if number >= config.first_k_dense_replace else GatedMlp(config.hidden_size, config.intermediate_size)

    def forward(self, x):
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x)))
        return x + self.post_mlp_layernorm(self.mlp(self.pre_mlp_layernorm(x)))


class PanguProMoEV2ForCausalLM(OwnForCausalLM):
    config_class, layer_class = PanguProMoEV2Config, PanguLayer


LongcatFlashNgramConfig = LongcatFlashConfig


class LongcatFlashNgramForCausalLM(LongcatFlashForCausalLM):
    """A LongCat-Flash whose input is the mean of embeddings of the last tokens."""

    def __init__(self, config):
        super().__init__(config)
        count = config.emb_split_num * (config.emb_neighbor_num - 1)
        dim = config.hidden_size // count
        self.rows = [int(config.ngram_vocab_size_ratio * config.vocab_size + 2 * i + 1) for i in range(count)]
        grams = self.model.ngram_embeddings = nn.Module()
        grams.embedders = nn.ModuleList(nn.Embedding(rows, dim) for rows in self.rows)
        grams.post_projs = nn.ModuleList(nn.Linear(dim, config.hidden_size, bias=False) for _ in self.rows)

    def _init_weights(self, module):
        """The caller sets the weights."""

    def before(self, ids, distance):
        """The id `distance` tokens earlier, or 0 beyond a stop token."""
        found = []
        for t in range(len(ids)):
            passed = ids[max(0, t - distance):t]
            found.append(ids[t - distance] if len(passed) == distance and self.config.eos_token_id not in passed else 0)
        return found

    def forward(self, input_ids, use_cache=False):
        ids, grams, config = input_ids[0].tolist(), self.model.ngram_embeddings, self.config
        parts = [self.model.embed_tokens(input_ids[0])]
        for i, (table, matrix) in enumerate(zip(grams.embedders, grams.post_projs)):
            length = 2 + i // config.emb_split_num
            sums = [sum(x * config.vocab_size ** d for d, x in enumerate(tokens)) % self.rows[i]
                    for tokens in zip(*(self.before(ids, d) for d in range(length)))]
            parts.append(matrix(table(torch.tensor(sums))))
        return super().forward(inputs_embeds=torch.stack(parts).mean(0)[None], use_cache=use_cache)


class DoryConfig(PretrainedConfig):
    """layer_kinds and ropes are the published layer_types and rope_parameters, which transformers refuses."""
    model_type = "dory"


def unit(x):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().sum(-1, keepdim=True) + 1e-6)).to(x.dtype)


class DoryAttention(Projections):
    def __init__(self, config, layer):
        super().__init__(config, config.head_dim)
        size, kind = self.heads * self.head_dim, config.layer_kinds[layer]
        self.g_proj = nn.Linear(config.hidden_size, size, bias=False)
        self.sqk = nn.Parameter(torch.zeros(size))
        self.s_gate = nn.Parameter(torch.zeros(size))
        self.query_factor = self.head_dim ** 0.5 / config.initializer_range
        self.gate_factor = (config.attention_output_gate_logit_scale_init or config.hidden_size ** 0.5) ** 0.5 / config.initializer_range
        self.window = config.sliding_window if kind == "sliding_attention" else 0
        self.theta = config.ropes[kind]["rope_theta"]

    def forward(self, x):
        q, k, v = self.heads_of(x)
        q, k = unit(rotated(q, self.theta)), unit(rotated(k, self.theta))
        q = ((self.sqk.float() * self.query_factor).square().view(self.heads, -1) * q.float()).to(q.dtype)
        out = attended(q, k, v, self.window)
        gate = self.g_proj(x).float() * (self.s_gate.float() * self.gate_factor).square()
        return self.o_proj(unit((out.float() * gate.sigmoid()).to(x.dtype)))


class DoryMlp(GatedMlp):
    def __init__(self, config):
        super().__init__(config.hidden_size, config.intermediate_size)
        self.suv_gate = nn.Parameter(torch.zeros(config.intermediate_size))
        self.suv_up = nn.Parameter(torch.zeros(config.intermediate_size))
        self.factor = config.hidden_size ** 0.5

    def forward(self, x):
        gate, up = ((proj(x).float() * (scale.float() * self.factor)).to(x.dtype)
                    for proj, scale in ((self.gate_proj, self.suv_gate), (self.up_proj, self.suv_up)))
        return self.down_proj(unit((F.silu(gate.float()) * up.float()).to(x.dtype)))


class DoryLayer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.reads = config.layer_kinds[layer] != "mlp"
        self.mixer = DoryAttention(config, layer) if self.reads else DoryMlp(config)
        setattr(self, "attn_alpha" if self.reads else "mlp_alpha", nn.Parameter(torch.zeros(config.hidden_size)))
        self.scale = config.ngpt_alpha_init / config.initializer_range

    def forward(self, x):
        before, after = unit(x).float(), unit(self.mixer(x)).float()
        share = ((self.attn_alpha if self.reads else self.mlp_alpha).float() * self.scale).abs()
        return unit(before + share * (after - before)).to(x.dtype)


class DoryBackbone(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DoryLayer(config, i) for i in range(config.num_hidden_layers))

    def forward(self, ids):
        x = self.embeddings(ids)
        first, last = self.config.n_input_layers, self.config.num_hidden_layers - self.config.n_output_layers
        for layer in self.layers[:first]:
            x = layer(x)
        start = x
        for _ in range(self.config.n_recurrent_loops):
            x = unit(x + start)
            for layer in self.layers[first:last]:
                x = layer(x)
            x = unit(x)
        for layer in self.layers[last:]:
            x = layer(x)
        return x


class DoryForCausalLM(PreTrainedModel):
    config_class = DoryConfig

    def __init__(self, config):
        super().__init__(config)
        self.backbone = DoryBackbone(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.lm_head.logit_scale = nn.Parameter(torch.zeros(config.vocab_size))
        self.post_init()

    def _init_weights(self, module):
        """The caller sets the weights."""

    def forward(self, input_ids, use_cache=False):
        logits = self.lm_head(self.backbone(input_ids[0])).float() * (self.lm_head.logit_scale.float() / self.config.initializer_range)
        return CausalLMOutput(logits=logits[None])
