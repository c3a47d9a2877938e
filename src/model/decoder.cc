#include "model/decoder.h"

#include <utility>

namespace octavo {
namespace {

const ForwardBatch kNoBatch{};

}  // namespace

Result<Decoder> Decoder::make(const Model& model, const CacheLayout& layout, Backend& backend,
                              const DecoderLimits& limits, ProcessGroup* group) {
  CHECK((group != nullptr ? group->size() : 1) == model.spec.shard.size);
  TRY(Workspaces workspaces, Workspaces::allocate(model, backend, limits));
  return Decoder(model, layout, backend, limits, std::move(workspaces), group);
}

Decoder::Decoder(const Model& model, const CacheLayout& layout, Backend& backend, const DecoderLimits& limits,
                 Workspaces workspaces, ProcessGroup* group)
    : model_(model),
      layout_(layout),
      backend_(backend),
      group_(group),
      keeper_(limits.kept_layers, model.spec.dim),
      workspaces_(std::move(workspaces)),
      residual_(backend, model.network.residual->residual(workspaces_.slots())) {}

Step Decoder::step(const ForwardBatch& batch, StepRows rows) {
  residual_.see(rows);
  return {.backend = backend_,
          .batch = batch,
          .rows = rows,
          .slots = workspaces_.slots(),
          .residual = residual_,
          .rotation = {model_.ropes, model_.temperatures},
          .scratch = workspaces_.of_block(),
          .adapter_scratch = workspaces_.of_adapters(),
          .ranks = group_,
          .experts = experts_};
}

// The step that heads receive.
Step Decoder::step() { return step(kNoBatch, {0, tokens_}); }

void Decoder::begin(const ForwardBatch& batch) {
  tokens_ = batch.positions.size(0);
  const std::int64_t most = residual_.all().size(0);
  CHECK(tokens_ > 0 && tokens_ <= most, "{} tokens, room for {}", tokens_, most);
  residual_.put({});
  const Step all = step(batch, {0, tokens_});
  for (const auto& input : model_.network.inputs) input->run(all);
}

void Decoder::run_layers(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t first,
                         std::size_t end) {
  CHECK(cache.size() == layout_.layers.size() && batch.groups.size() == layout_.groups.size());
  Step all = step(batch, {0, tokens_});
  for (std::size_t i = first; i < end; ++i) {
    const Layer& layer = model_.network.layers[i];
    all.memory = layer_memory(layout_, i, layer.state_floats, batch, cache, all.rows);
    keeper_.before(i, all);
    for (const auto& phase : layer.phases) phase->run(all);
  }
  if (end == model_.network.layers.size()) model_.network.residual->end(all);
}

void Decoder::assist() {
  const Step none = step(kNoBatch, {});
  for (const Layer& layer : model_.network.layers)
    for (const Block* block : layer.blocks()) block->assist(none);
}

// Adds pending outputs to the residual before and after `function`, because each call for some of the rows
// must find the same state.
template <typename Function>
void Decoder::on_part(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                      StepRows part, const Function& function) {
  residual_.see({0, tokens_});
  residual_.settle();
  Step step = this->step(batch, part);
  step.memory = layer_memory(layout_, layer, 0, batch, cache, part);
  function(step);
  residual_.settle();
}

void Decoder::store_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                         StepRows part) {
  on_part(batch, cache, layer, part,
          [&](const Step& step) { model_.network.layers[layer].caching_phase().store_rows(step); });
}

void Decoder::run_rows(const ForwardBatch& batch, std::span<const KvLayer> cache, std::size_t layer,
                       StepRows part) {
  on_part(batch, cache, layer, part, [&](const Step& step) {
    for (const auto& phase : model_.network.layers[layer].phases) phase->run(step);
  });
}

void Decoder::read_hidden(const Decoder& from, const View& rows) {
  const bool own = &from == this;
  const Network& other = from.model_.network;
  model_.network.input<HiddenRowsInput>()->read(
      backend_, workspaces_.slots(),
      {.kept = own ? std::vector<View>() : from.keeper_.kept(from.workspaces_.slots()),
       .residual = from.residual_.all(),
       .final_norm = other.ends->final_norm.norm(),
       .own = own},
      rows);
}

void Decoder::project(std::int64_t first, const View& out, const View& starts) {
  const ProjectHead& head = *model_.network.project;
  head.run(step(kNoBatch, head.rows_of(first, out.size(0))), starts, out);
}

AttentionLimits attention_limits(const Model& model, const LayerGroup& group, int max_tokens,
                                 int max_sequences) {
  return {.max_tokens = max_tokens,
          .max_sequences = max_sequences,
          .max_length = model.max_model_len,
          .q_heads = group.q_heads,
          .kv = group.kv,
          .window = group.window,
          .causal = group.causal};
}

}  // namespace octavo
