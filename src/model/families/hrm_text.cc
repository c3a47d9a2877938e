// HRM-Text (Sapient, 2026; Wang et al., "Hierarchical Reasoning Model", 2025): two stacks of layers run in
// loops, L_cycles times the stack L and then once the stack H, all of it H_cycles times. A stack reads the
// sum of the states of both stacks. Its layers keep separate keys and values in each run.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {
namespace {

constexpr int kLow = 0, kHigh = 1;  // numbers of the states

}  // namespace

static Result<ModelSpec> describe_hrm_text(const Config& config) {
  for (const char* field : {"attention_bias", "mlp_bias"}) TRY_VOID(refuse(config, field, true));
  // Files in transformers' format have both fields. Then num_hidden_layers counts each run of a layer.
  constexpr std::string_view kStack = "num_layers_per_stack";
  const bool counts_stack = config.has(kStack);
  TRY(ModelSpec spec,
      describe_dense(config, {.layers = counts_stack ? kStack : "num_hidden_layers", .kv_heads = ""}));
  if (config.has("embedding_scale")) {
    TRY(spec.embedding.scale, multiplier(config, "embedding_scale"));
  } else {
    TRY(const float range, multiplier(config, "initializer_range"));
    spec.embedding.scale = 1 / range;
  }
  TRY(const int high, config.integer("H_cycles", {1, 64}));
  TRY(const int low, config.integer("L_cycles", {1, 64}));
  TRY(spec.media.whole_prompts, config.boolean("prefix_lm", true));
  LayerSpec layer = spec.layers[0];
  layer.pre_norm.stored = spec.final_norm.stored = false;
  layer.attention().output_gate = true;
  const int stack = static_cast<int>(spec.layers.size());
  spec.layers.clear();
  int state = kHigh;  // the residual's state: the embedding is the first state of the stack H
  for (int run = 0; run < high * (low + 1); ++run) {
    const bool is_high = run % (low + 1) == low;
    layer.part = is_high ? "H" : "L";
    for (layer.number = 0; layer.number < stack; ++layer.number) {
      LayerSpec& added = spec.layers.emplace_back(layer);
      if (layer.number == 0)
        added.join = JoinStates{.kept = state, .added = 1 - state, .first = run == 0, .norm = layer.pre_norm};
    }
    state = is_high ? kHigh : kLow;
  }
  spec.names.layers = "#_module.layers.";
  spec.names.attention.qkv = {"attn.gqkv_proj"};
  spec.names.attention.qkv_order = QkvOrder::gates_first;
  spec.names.attention.out = "attn.o_proj";
  spec.names.mlp.up = {"mlp.gate_up_proj"};
  return spec;
}

std::span<const Family> hrm_text_families() {
  static constexpr Family kRows[] = {{"HrmTextForCausalLM", describe_hrm_text}};
  return kRows;
}

}  // namespace octavo
