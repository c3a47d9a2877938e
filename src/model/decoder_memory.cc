// What a decoder needs beside weights and cache, and its allocation: once, for the largest step.
#include <algorithm>
#include <numeric>
#include <set>

#include "model/decoder.h"

namespace octavo {
namespace {

// What the layers need beside the residual.
struct Needs {
  bool second = false;             // one is parallel, or has two mixers
  std::int64_t scratch_bytes = 0;  // the most
};

// Of what project() takes.
std::int64_t projector_bytes(const ModelSpec& spec, std::int64_t tokens, DType activation) {
  const std::int64_t merged = spec.joined(), count = tokens / merged;
  Scratch scratch;
  scratch.take(DType::f32, {count, spec.dim});
  scratch.take(activation, {count, spec.dim * merged});
  const int deep = spec.image ? spec.image->deep_projector.hidden : 0;
  const std::int64_t hidden = std::max(spec.projector().hidden, deep);
  for (int i = 0; i < 2; ++i) scratch.take(activation, {count, hidden});
  if (spec.projector().merged) scratch.take(activation, {count, spec.dim});
  return scratch.bytes();
}

// Of what the head's layers take of the texts' vectors.
std::int64_t head_bytes(const Head& head, std::int64_t rows, DType activation) {
  Scratch scratch;
  for (const HeadLayer& layer : head.layers) {
    for (int i = 0; i < 3; ++i) scratch.take(activation, {rows, layer.outputs});
    scratch.take(DType::f32, {rows, layer.outputs});
  }
  return scratch.bytes();
}

// Numbers of zeros that those of all heads need.
std::int64_t head_zeros(const ModelSpec& spec, std::int64_t rows) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < spec.heads(); ++i)
    for (const HeadLayer& layer : spec.head_at(i).layers)
      if (layer.activation || layer.norm.kind != NormKind::none)
        most = std::max(most, rows * std::int64_t{layer.outputs});
  return most;
}

bool shares_matrices(const ModelSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& layer) { return layer.shared.has_value(); });
}

bool has_shortcuts(const ModelSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& layer) { return layer.shortcut.has_value(); });
}

// The layers before which the residual is kept for others: Blend.
std::set<int> blended_layers(const ModelSpec& spec) {
  std::set<int> layers;
  for (const LayerSpec& layer : spec.layers)
    if (layer.blend) layers.insert(layer.blend->layer);
  return layers;
}

// Of the first layer's values, which the others read: TimeMix.
std::int64_t first_values_of(const ModelSpec& spec) {
  for (const LayerSpec& layer : spec.layers)
    if (const auto* mix = std::get_if<TimeMix>(&layer.mixer)) return mix->inner();
  return 0;
}

// Tokens that the indexers of latent attention choose; layers hand them on to others.
std::int64_t chosen_of(const ModelSpec& spec) {
  std::int64_t most = 0;
  for (const LayerSpec& layer : spec.layers)
    if (const auto* latent = std::get_if<LatentAttention>(&layer.mixer); latent && latent->indexer)
      most = std::max<std::int64_t>(most, latent->indexer->chosen);
  return most;
}

Needs needs_of(const ModelSpec& spec, const Network& network, const DecoderLimits& limits, DType activation) {
  const std::int64_t tokens = limits.max_tokens;
  Needs needs;
  for (const LayerSpec& layer : spec.layers)
    needs.second |= layer.residual == Residual::parallel || layer.residual == Residual::parallel_shared;
  for (const Layer& layer : network.layers) {
    needs.second |= layer.second_mixer != nullptr;
    for (const Block* block : layer.blocks())
      needs.scratch_bytes = std::max(needs.scratch_bytes, block->scratch_bytes(tokens, activation));
  }
  if (spec.encodes_media() && spec.joined() > 0)
    needs.scratch_bytes = std::max(needs.scratch_bytes, projector_bytes(spec, tokens, activation));
  for (std::size_t i = 0; i < spec.heads(); ++i)
    needs.scratch_bytes =
        std::max(needs.scratch_bytes, head_bytes(spec.head_at(i), limits.max_logit_rows, activation));
  return needs;
}

}  // namespace

std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits) {
  const Needs needs = needs_of(spec, network_of(spec), limits, activation);
  const auto element = static_cast<std::int64_t>(size_of(activation));
  const bool split = spec.shard.size > 1;
  const std::int64_t rows = 4 + (needs.second ? 2 : 1) * (element + (split ? 4 : element));
  const std::int64_t own_ids = split ? 4 * limits.max_tokens : 0;
  const std::int64_t inputs = spec.layer_inputs ? std::ssize(spec.layers) * spec.layer_inputs->size : 0;
  std::int64_t angles = 0;  // of a token
  for (const RopeSpec& rope : spec.ropes) angles += rope.rotary_dim;
  std::int64_t streams = spec.streams ? spec.streams->count * (4 * std::int64_t{spec.dim} + 4) : 0;
  if (spec.hyper) streams = 4 * (std::int64_t{spec.hyper->count} * spec.dim + spec.hyper->rows());
  const std::int64_t pairs = shares_matrices(spec) ? 2 * (4 + element) * spec.dim + 4 : 0;
  const std::int64_t first_values = first_values_of(spec) * element;
  const std::int64_t blends = 4 * std::ssize(blended_layers(spec)) * spec.dim;
  const std::int64_t shortcut = has_shortcuts(spec) ? (split ? 4 : element) * spec.dim : 0;
  return limits.max_tokens * (spec.dim * rows + pairs + streams + blends + shortcut +
                              inputs * (4 + 2 * element) + 4 * angles + first_values + 4 * chosen_of(spec)) +
         own_ids + needs.scratch_bytes +
         adapter_scratch_bytes(spec, activation, limits.max_tokens, limits.max_logit_rows,
                               limits.max_adapter_rank) +
         limits.max_logit_rows * spec.dim * (4 + element) + 4 * head_zeros(spec, limits.max_logit_rows);
}

Result<> Decoder::allocate(const DecoderLimits& limits) {
  const std::int64_t n = limits.max_tokens;
  const DType act = model_.activation;
  const std::int64_t dim = model_.spec.dim;
  const Needs needs = needs_of(model_.spec, model_.network, limits, act);
  if (const auto& streams = model_.spec.streams) {
    TRY_VOID(allocate(streams_, DType::f32, {n, streams->count * dim}));
    TRY_VOID(allocate(before_, DType::f32, {n, dim}));
    TRY_VOID(allocate(routed_, DType::f32, {n, streams->count}));
    residual_.all = streams_.all.columns(0, dim);
  } else {
    TRY_VOID(allocate(residual_, DType::f32, {n, dim}));
  }
  if (const auto& hyper = model_.spec.hyper) {
    TRY_VOID(allocate(streams_, DType::f32, {n, hyper->count * dim}));
    TRY_VOID(allocate(posts_, DType::f32, {n, hyper->count}));
    TRY_VOID(allocate(mixes_, DType::f32, {n, std::int64_t{hyper->count} * hyper->count}));
  }
  for (const RopeSpec& rope : model_.spec.ropes) {
    Angles& angles = angles_.emplace_back();
    for (Workspace* half : {&angles.cos, &angles.sin})
      TRY_VOID(allocate(*half, DType::f32, {n, rope.rotary_dim / 2}));
    ropes_.push_back({.rotary_dim = rope.rotary_dim, .interleaved = rope.interleaved});
  }
  TRY_VOID(allocate(x_, act, {n, dim}));
  const DType delta = group_ != nullptr ? DType::f32 : act;
  TRY_VOID(allocate(delta_, delta, {n, dim}));
  if (needs.second) {
    TRY_VOID(allocate(second_x_, act, {n, dim}));
    TRY_VOID(allocate(second_delta_, delta, {n, dim}));
  }
  if (has_shortcuts(model_.spec)) TRY_VOID(allocate(shortcut_, delta, {n, dim}));
  if (group_ != nullptr) {
    TRY_VOID(allocate(own_ids_, DType::i32, {n}));
    Shard shard = model_.spec.shard;
    for (shard.rank = 0; shard.rank <= shard.size; ++shard.rank)
      logit_bytes_.push_back(static_cast<std::size_t>(shard.first(model_.spec.vocab)) * sizeof(float));
  }
  if (model_.spec.layer_inputs) {
    const std::int64_t all = std::ssize(model_.spec.layers) * model_.spec.layer_inputs->size;
    TRY_VOID(allocate(input_sum_, DType::f32, {n, all}));
    TRY_VOID(allocate(input_delta_, act, {n, all}));
    TRY_VOID(allocate(inputs_, act, {n, all}));
  }
  TRY_VOID(allocate(scratch_, DType::u8, {needs.scratch_bytes}));
  if (limits.max_adapter_rank > 0)
    TRY_VOID(allocate(adapter_scratch_, DType::u8,
                      {adapter_scratch_bytes(model_.spec, act, n, limits.max_logit_rows, limits.max_adapter_rank)}));
  kept_layers_ = limits.kept_layers;
  kept_.resize(kept_layers_.size());
  for (Workspace& kept : kept_) TRY_VOID(allocate(kept, DType::f32, {n, dim}));
  if (const std::optional<HiddenInput>& input = model_.spec.hidden) {
    TRY_VOID(allocate(hidden_, DType::f32, {n, std::max(dim, input->row())}));
    TRY_VOID(allocate(hidden_x_, act, {n, input->row()}));
    TRY_VOID(allocate(joint_, act, {n, dim + (input->joined ? input->row() : dim)}));
  }
  if (const std::int64_t values = first_values_of(model_.spec); values > 0)
    TRY_VOID(allocate(first_values_, act, {n, values}));
  if (const std::int64_t chosen = chosen_of(model_.spec); chosen > 0)
    TRY_VOID(allocate(chosen_, DType::i32, {n, chosen}));
  for (const int layer : blended_layers(model_.spec)) TRY_VOID(allocate(earlier_[layer], DType::f32, {n, dim}));
  const bool shares = shares_matrices(model_.spec);
  if (shares) {
    TRY_VOID(allocate(pair_, DType::f32, {n, 2 * dim}));
    TRY_VOID(allocate(pair_x_, act, {n, 2 * dim}));
  }
  if (model_.spec.hidden || model_.spec.streams || model_.spec.hyper || shares || !kept_.empty() || !earlier_.empty()) {
    TRY_VOID(allocate(every_row_, DType::i32, {n}));
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    backend_.device->upload(*backend_.stream, every_row_.all, numbers.data());
    backend_.stream->synchronize();
  }
  if (const std::int64_t zeros = head_zeros(model_.spec, limits.max_logit_rows); zeros > 0)
    TRY_VOID(allocate(zeros_, DType::f32, {zeros}));
  TRY_VOID(allocate(logit_residual_, DType::f32, {limits.max_logit_rows, dim}));
  return allocate(logit_x_, act, {limits.max_logit_rows, dim});
}

Result<> Decoder::allocate(Workspace& workspace, DType type, std::initializer_list<std::int64_t> shape) {
  const View wanted = View::of(nullptr, type, shape);
  TRY(workspace.buffer, backend_.device->allocate(static_cast<std::size_t>(wanted.bytes())));
  workspace.all = workspace.buffer.view(type, shape);
  return {};
}

}  // namespace octavo
