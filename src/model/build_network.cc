#include "model/build_network.h"

#include <algorithm>
#include <cmath>

#include "model/blocks/grams.h"
#include "model/inputs/hidden.h"
#include "model/inputs/layer_inputs.h"
#include "model/inputs/media.h"
#include "model/inputs/tokens.h"
#include "model/residual/across_layers.h"
#include "model/residual/hyper.h"
#include "model/residual/sources.h"
#include "model/residual/sphere.h"
#include "model/residual/streams.h"

namespace octavo {
namespace {

// The encoder's output is (x * sqrt(dim) - bias) * scale. This norm leaves out the factor sqrt(dim), because
// the next norm cancels it.
NormParameter standard_norm(const ModelSpec& spec, const Namer& top) {
  NormParameter norm{.spec = spec.final_norm,
                     .weight = top.vector({spec.names.encoder.standard_scale}, {spec.dim}),
                     .bias = top.vector({spec.names.encoder.standard_bias}, {spec.dim})};
  norm.bias.scale = norm.weight.parts[0];
  norm.bias.factors = {{0, spec.dim, -1 / std::sqrt(static_cast<float>(spec.dim))}};
  return norm;
}

// Returns no norm if `tensor` is empty, unless the norm has no stored weight.
NormParameter post_norm(const NormSpec& norm, const Namer& name, const std::string& tensor,
                        std::int64_t dim) {
  return norm.stored && tensor.empty() ? NormParameter{} : name.norm(norm, tensor, dim);
}

// Returns whether a later layer blends in the residual before this layer.
bool is_blended(const ModelSpec& spec, std::size_t layer) {
  return std::ranges::any_of(spec.layers, [layer](const LayerSpec& other) {
    return other.blend && std::cmp_equal(other.blend->layer, layer);
  });
}

bool shares_matrices(const ModelSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& layer) { return layer.shared.has_value(); });
}

}  // namespace

Network NetworkBuilder::build() {
  network_.ignorable = spec_.names.ignorable;
  add_ends();
  network_.residual = make_residual();
  add_inputs();
  for (std::size_t i = spec_.first_layer(); i < spec_.end_layer(); ++i)
    network_.layers.push_back(make_layer(i));
  add_heads();
  return std::move(network_);
}

// Keeps the rows for this rank's part of the vocabulary.
MatrixParameter NetworkBuilder::own_rows(MatrixParameter table) const {
  if (spec_.shard.size > 1)
    keep_rows(table, {{spec_.shard.first(spec_.vocab), spec_.shard.count(spec_.vocab)}});
  return table;
}

MatrixParameter NetworkBuilder::output_matrix() const {
  const Namer name(spec_.names, "");
  MatrixParameter matrix = name.table(spec_.names.lm_head, spec_.vocab, spec_.dim, MatrixUse::table);
  if (const std::string& scale = spec_.names.logits_scale; !scale.empty())
    matrix.scales = {{.slot = name.vector({scale}, {spec_.vocab}).parts[0]}};
  return own_rows(std::move(matrix));
}

void NetworkBuilder::add_ends() {
  const Names& names = spec_.names;
  const Stage& stage = spec_.stage;
  Ends& ends = *network_.ends;
  ends.embed_scale = spec_.embedding.scale;
  if (spec_.inputs.hidden) {
    if (spec_.inputs.hidden->own_embedding)
      ends.embedding =
          top_.table(names.embedding.tokens, spec_.inputs.hidden->vocab, spec_.dim, MatrixUse::table);
  } else if (!spec_.encodes_media() && (stage.is_first() || (stage.is_last() && spec_.logits.tied))) {
    ends.embedding = own_rows(top_.table(names.embedding.tokens, spec_.vocab, spec_.dim, MatrixUse::table));
  }
  if (!names.encoder.standard_scale.empty())
    ends.final_norm = standard_norm(spec_, top_);
  else if (stage.is_last())
    ends.final_norm = top_.norm(spec_.final_norm, names.final_norm, spec_.dim);
  const bool borrows = spec_.inputs.hidden && !spec_.inputs.hidden->own_output;
  if (spec_.logits.tied || spec_.head || spec_.encodes_media() || borrows)
    // Some programs store a tied matrix twice. The second name is this one.
    network_.ignorable.push_back(names.lm_head + ".weight");
  else if (stage.is_last())
    ends.lm_head = output_matrix();
}

std::unique_ptr<ResidualScheme> NetworkBuilder::make_residual() const {
  if (spec_.residual.streams)
    return std::make_unique<StreamsScheme>(*spec_.residual.streams, top_, spec_.dim);
  if (spec_.residual.hyper)
    return std::make_unique<HyperScheme>(*spec_.residual.hyper, top_, spec_.dim, spec_.stage.is_last());
  if (spec_.residual.sources)
    return std::make_unique<SourceScheme>(*spec_.residual.sources, top_, spec_.dim,
                                          static_cast<int>(spec_.layers.size()));
  return std::make_unique<ResidualScheme>(spec_.dim);
}

void NetworkBuilder::add_first_input() {
  if (spec_.inputs.image)
    add_input<PatchInput>(spec_, top_, prefix_);
  else if (spec_.inputs.sound)
    add_input<SoundInputRows>(spec_, top_);
  else
    add_input<TokenInput>(spec_, top_, *network_.ends);
}

void NetworkBuilder::add_inputs() {
  if (!spec_.ropes.empty()) add_input<RotaryInput>(spec_.ropes);
  if (!spec_.stage.is_first()) return;
  add_first_input();
  if (spec_.inputs.hidden) add_input<HiddenRowsInput>(spec_, top_, namer_of(0));
  if (spec_.embedding.norm.kind != NormKind::none)
    add_input<InputNorm>(top_.norm(spec_.embedding.norm, spec_.names.embedding.norm, spec_.dim));
  if (spec_.inputs.by_layer) add_input<LayerInputsPhase>(spec_, top_);
  add_input<BeginResidual>(*network_.residual);
  if (shares_matrices(spec_)) add_input<CopyEmbedding>(spec_.dim);
}

std::string NetworkBuilder::name_of(std::size_t layer) const {
  const Names& names = spec_.names;
  if (!names.only_layer.empty()) return names.only_layer;
  const int number = spec_.layers[layer].number;
  return fmt::format("{}{}.", names.layers, number < 0 ? static_cast<int>(layer) : number);
}

Namer NetworkBuilder::namer_of(std::size_t layer) const {
  const LayerSpec& own = spec_.layers[layer];
  return {spec_.names, prefix_ + name_of(layer) + own.prefix, spec_.shard, own.part};
}

Layer NetworkBuilder::make_layer(std::size_t index) {
  const LayerSpec& spec = spec_.layers[index];
  const Namer name = namer_of(index);
  Layer layer;
  if (is_blended(spec_, index)) add<KeepResidual>(layer, static_cast<int>(index), spec_.dim);
  if (spec.blend) add<BlendResidual>(layer, *spec.blend);
  if (const auto& sources = spec_.residual.sources; sources && static_cast<int>(index) % sources->group == 0)
    add<BankResidual>(layer, static_cast<int>(index) / sources->group, spec_.dim);
  if (const auto& grams = spec_.inputs.grams; grams && index == 0)
    add<LayerHalf>(layer, make_grams(*grams, top_, spec_.dim, spec_.vocab), HalfNorms{}, grams->scale,
                   spec_.dim);
  if (spec.join) add<JoinedStates>(layer, *spec.join, top_, spec_.dim);
  if (spec.loop) add<AddLoopStart>(layer, *spec.loop, spec_.dim);
  if (spec.residual == Residual::parallel || spec.residual == Residual::parallel_shared)
    layer.phases.push_back(make_parallel_halves(spec, name));
  else
    add_halves(spec, name, index, layer);
  add_behind(index, layer);
  for (Block* block : layer.blocks()) {
    if (block->state_floats() > 0) block->put_state(layer.state_floats);
    layer.state_floats += block->state_floats();
  }
  return layer;
}

HalfNorms NetworkBuilder::mixer_norms(const LayerSpec& spec, const Namer& name) const {
  const Names& names = spec_.names;
  HalfNorms norms{.pre = {}, .post = post_norm(spec.post_norm, name, names.attention.post_norm, spec_.dim)};
  if (spec.mixer_normed && !names.attention.norm.empty())
    norms.pre = name.norm(spec.pre_norm, names.attention.norm, spec_.dim);
  return norms;
}

HalfNorms NetworkBuilder::feed_forward_norms(const LayerSpec& spec, const Namer& name) const {
  NormSpec last = spec.post_norm;
  last.weight_offset = spec.last_offset.value_or(last.weight_offset);
  return {.pre = name.norm(spec.pre_norm, spec_.names.mlp.norm, spec_.dim),
          .post = post_norm(last, name, spec_.names.mlp.post_norm, spec_.dim)};
}

std::unique_ptr<Phase> NetworkBuilder::make_half(const LayerSpec& spec, std::unique_ptr<Block> block,
                                                 HalfNorms norms, float scale) const {
  scale *= spec.scales.residual;
  switch (spec.residual) {
    case Residual::post_norm:
      return std::make_unique<PostNormHalf>(std::move(block), std::move(norms), scale, spec_.dim);
    case Residual::from_norm:
      return std::make_unique<FromNormHalf>(std::move(block), std::move(norms), scale, spec_.dim);
    default:
      return std::make_unique<LayerHalf>(std::move(block), std::move(norms), scale, spec_.dim);
  }
}

std::unique_ptr<Phase> NetworkBuilder::make_mixer_half(const LayerSpec& spec, const Namer& name,
                                                       std::size_t index) {
  std::unique_ptr<Block> mixer = block_of(spec.mixer, name);
  if (spec.residual == Residual::on_sphere)
    return std::make_unique<SphereHalf>(std::move(mixer), spec.sphere, name,
                                        spec_.names.of<SphereStep>().mixer, spec_.dim);
  HalfNorms norms = mixer_norms(spec, name);
  if (spec_.residual.hyper)
    return std::make_unique<HyperHalf>(
        std::move(mixer), std::move(norms),
        HyperWeights(*spec_.residual.hyper, spec_.dim, name, spec_.names.of<HyperConnections>().mixer, true),
        spec_.dim);
  if (spec_.residual.sources) return make_source_half(std::move(mixer), std::move(norms), name, index, true);
  if (spec_.inputs.hidden && !spec_.inputs.hidden->joined && index == 0) {
    norms.pre = {};  // The input is already normalised.
    return std::make_unique<JointHalf>(std::move(mixer), std::move(norms),
                                       spec.scales.residual * spec.scales.mixer, spec_.dim);
  }
  if (!spec.shared) return make_half(spec, std::move(mixer), std::move(norms), spec.scales.mixer);
  const int owner = spec.shared->owner;
  const Namer owned(spec_.names,
                    fmt::format("{}{}{}.shared_transformer.", prefix_, spec_.names.layers, owner));
  auto shared = std::make_unique<SharedTransformerBlock>(
      *spec.shared, owned, Namer(spec_.names, prefix_ + name_of(index)), spec_.dim, shared_[owner]);
  if (std::cmp_equal(owner, index)) shared_[owner] = shared.get();
  return std::make_unique<SharedHalf>(std::move(shared), std::move(mixer), std::move(norms),
                                      spec.scales.residual * spec.scales.mixer, spec_.dim);
}

std::unique_ptr<Phase> NetworkBuilder::make_source_half(std::unique_ptr<Block> block, HalfNorms norms,
                                                        const Namer& name, std::size_t index,
                                                        bool mixer) const {
  const AttendedSources& sources = *spec_.residual.sources;
  const AttendedSources::Names& names = spec_.names.of<AttendedSources>();
  const int number = static_cast<int>(index);
  const std::string& tensor = mixer ? names.mixer : names.feed_forward;
  return std::make_unique<SourceHalf>(
      std::move(block), std::move(norms),
      SourceMix(sources, spec_.dim, name, mixer && index == 0 ? "" : tensor, number / sources.group + 1,
                !mixer || number % sources.group > 0),
      spec_.dim);
}

std::unique_ptr<Phase> NetworkBuilder::make_feed_forward_half(const LayerSpec& spec, const Namer& name,
                                                              std::size_t index) const {
  std::unique_ptr<Block> block = block_of(spec.feed_forward, name);
  if (spec.residual == Residual::on_sphere)
    return std::make_unique<SphereHalf>(std::move(block), spec.sphere, name,
                                        spec_.names.of<SphereStep>().feed_forward, spec_.dim);
  HalfNorms norms = feed_forward_norms(spec, name);
  if (spec_.residual.sources) return make_source_half(std::move(block), std::move(norms), name, index, false);
  if (!spec_.residual.hyper)
    return make_half(spec, std::move(block), std::move(norms), spec.scales.feed_forward);
  return std::make_unique<HyperHalf>(std::move(block), std::move(norms),
                                     HyperWeights(*spec_.residual.hyper, spec_.dim, name,
                                                  spec_.names.of<HyperConnections>().feed_forward, true),
                                     spec_.dim);
}

std::unique_ptr<Phase> NetworkBuilder::make_parallel_halves(const LayerSpec& spec, const Namer& name) const {
  const bool one_norm = spec.residual == Residual::parallel_shared;
  HalfNorms last = feed_forward_norms(spec, name);
  if (one_norm) last.pre = {};
  return std::make_unique<ParallelHalves>(
      ParallelHalves::Branch{.block = block_of(spec.mixer, name),
                             .norms = mixer_norms(spec, name),
                             .scale = spec.scales.residual * spec.scales.mixer},
      ParallelHalves::Branch{.block = block_of(spec.feed_forward, name),
                             .norms = std::move(last),
                             .scale = spec.scales.residual * spec.scales.feed_forward},
      one_norm, spec_.dim);
}

void NetworkBuilder::add_halves(const LayerSpec& spec, const Namer& name, std::size_t index, Layer& layer) {
  const PredictStreams* streams = nullptr;
  if (spec_.residual.streams) {
    auto phase = std::make_unique<PredictStreams>(*spec_.residual.streams, name, spec_.dim);
    streams = phase.get();
    layer.phases.push_back(std::move(phase));
  }
  if (spec.mixer.index() > 0) layer.phases.push_back(make_mixer_half(spec, name, index));
  if (spec.second_mixer.index() > 0)
    add<SecondMixer>(layer, block_of(spec.second_mixer, name),
                     spec.scales.residual * spec.scales.second_mixer, spec_.dim);
  if (spec.scales.mixed != 1) add<ScaleResidual>(layer, constant_vector({spec.scales.mixed}));
  if (spec.cross)
    layer.phases.push_back(
        make_half(spec, make_block(*spec.cross, name, spec_.dim),
                  {.pre = name.norm(spec.pre_norm, spec_.names.of<CrossAttention>().norm, spec_.dim),
                   .post = name.norm(spec.post_norm, spec_.names.of<CrossAttention>().post_norm, spec_.dim)},
                  1));
  if (spec.feed_forward.index() > 0) layer.phases.push_back(make_feed_forward_half(spec, name, index));
  if (spec.shortcut) add<Shortcut>(layer, make_block(*spec.shortcut, name, spec_.dim), spec_.dim);
  std::unique_ptr<Block> input;
  NormParameter input_norm;
  if (spec_.inputs.by_layer) {
    input = make_layer_input(*spec_.inputs.by_layer, static_cast<std::int64_t>(index), name, spec_.dim);
    input_norm = name.norm(spec.post_norm, spec_.names.of<LayerInputs>().post_norm, spec_.dim);
  }
  if (streams != nullptr)
    add<CorrectStreams>(layer, *streams, std::move(input), std::move(input_norm));
  else if (input)
    layer.phases.push_back(make_half(spec, std::move(input), {.pre = {}, .post = std::move(input_norm)}, 1));
  if (spec.scales.stored)
    add<ScaleResidual>(layer, name.vector({spec_.names.layer_scale}, {1}));
  else if (spec.scales.passed != 1)
    add<ScaleResidual>(layer, constant_vector({spec.scales.passed}));
}

// Adds the phases that run after a layer: the end of a shortcut, and the addition of an image encoder's deep
// rows.
void NetworkBuilder::add_behind(std::size_t index, Layer& layer) const {
  if (index > spec_.first_layer() && spec_.layers[index - 1].shortcut) add<EndShortcut>(layer);
  if (spec_.media.tower && spec_.media.tower->inputs.image &&
      index < spec_.media.tower->inputs.image->deep_layers.size())
    add<AddDeepRows>(layer, index, spec_.dim);
  if (!spec_.inputs.image) return;
  const std::vector<int>& deep = spec_.inputs.image->deep_layers;
  if (const auto found = std::ranges::find(deep, static_cast<int>(index)); found != deep.end())
    add<ProjectDeep>(layer, spec_, static_cast<std::size_t>(found - deep.begin()));
}

void NetworkBuilder::add_heads() {
  if (!spec_.stage.is_last()) return;
  if (spec_.head) network_.pool = std::make_unique<PoolHeads>(spec_, *network_.ends);
  if (spec_.encodes_media() && spec_.joined() > 0)
    network_.project = std::make_unique<ProjectHead>(spec_, *network_.ends);
  if (!spec_.head && !spec_.encodes_media())
    network_.logits = std::make_unique<LogitsHead>(spec_, *network_.ends);
}

}  // namespace octavo
