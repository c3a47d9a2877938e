// IQuest Loop Coder (IQuest, 2026): a Llama whose layers run loop_num times. From the second time on,
// attention to the last tokens is mixed with attention to the keys and values of the first time.
#include "model/families/common.h"
#include "model/families/families.h"

namespace octavo {

static Result<ModelSpec> describe_loop_coder(const Config& config) {
  for (const char* field : {"attention_bias", "mlp_bias"}) TRY_VOID(refuse(config, field, true));
  TRY_VOID(refuse_any(config, "dual_chunk_attention_config"));
  TRY(ModelSpec spec, describe_dense(config, {.head_dim = ""}));
  TRY(const int times, config.integer("loop_num", {1, 16}, 2));
  TRY(const int window, config.integer("loop_window_size", {1, 1 << 27}, 64));
  const int layers = static_cast<int>(spec.layers.size());
  LayerSpec layer = spec.layers[0];
  LoopAttention loop{.attention = layer.attention()};
  loop.attention.mask.window = window;
  for (int i = layers; i < times * layers; ++i) {
    loop.source = layer.number = i % layers;
    layer.part = std::to_string(layer.number);
    layer.mixer = loop;
    spec.layers.push_back(layer);
  }
  if (times == 1) spec.names.ignorable.emplace_back("model.gate_projections.*");
  return spec;
}

std::span<const Family> loop_coder_families() {
  static constexpr Family kRows[] = {{"IQuestLoopCoderForCausalLM", describe_loop_coder}};
  return kRows;
}

}  // namespace octavo
