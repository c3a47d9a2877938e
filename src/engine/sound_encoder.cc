#include "engine/sound_encoder.h"

#include <limits>
#include <numeric>

namespace octavo {
namespace {

constexpr int kBlockSize = 16;

}  // namespace

Result<std::unique_ptr<SoundEncoder>> SoundEncoder::create(const Model& model, const CacheLayout& layout,
                                                           Backend& backend, int max_tokens,
                                                           int max_sequences) {
  std::unique_ptr<SoundEncoder> encoder(new SoundEncoder(model, layout, backend));
  TRY_VOID(encoder->allocate(max_tokens, max_sequences));
  return encoder;
}

SoundEncoder::SoundEncoder(const Model& model, const CacheLayout& layout, Backend& backend)
    : model_(model),
      rows_(model.tower->spec.sound->rows),
      backend_(backend),
      cross_layout_(cross_layout(model.spec, {.block_size = kBlockSize, .dtype = layout.groups[0].kv.dtype})),
      blocks_each_(rows_blocks(model.spec, cross_layout_)) {}

std::int64_t SoundEncoder::place_bytes() const {
  return blocks_each_ * cross_layout_.block_bytes(backend_.ops);
}

Result<> SoundEncoder::allocate_places(std::int64_t places) {
  TRY(places_, KvMemory::allocate(cross_layout_, backend_, places * blocks_each_, 0));
  return {};
}

Result<> SoundEncoder::allocate(int max_tokens, int max_sequences) {
  TRY_VOID(cross_layout_.supported(backend_.ops));
  TRY(tower_, SoundTower::create(*model_.tower, backend_));
  Device& device = *backend_.device;
  const std::size_t rows = static_cast<std::size_t>(rows_);
  const std::size_t dim = static_cast<std::size_t>(model_.tower->spec.dim);
  TRY(scratch_, device.allocate(size_of(model_.tower->activation) * rows * 2 * dim));
  TRY(positions_, device.allocate(rows * sizeof(std::int32_t)));
  TRY(slots_, device.allocate(rows * sizeof(std::int64_t)));
  std::iota(static_cast<std::int32_t*>(positions_.data()),
            static_cast<std::int32_t*>(positions_.data()) + rows_, 0);
  AttentionLimits limits = attention_limits(model_, cross_layout_.groups[0], max_tokens, max_sequences);
  limits.max_length = rows_;
  TRY(cross_plan_, backend_.ops.make_attention_plan(device, limits));
  return {};
}

void SoundEncoder::encode(int place, std::string_view spectrogram) {
  tower_->begin(spectrogram, rows_);
  tower_->advance(std::numeric_limits<int>::max());
  keep(place, tower_->decoder().rows());
}

// The keys and values that each layer makes of the encoder's rows.
void SoundEncoder::keep(int place, const View& rows) {
  const std::int64_t n = rows_;
  auto* const slots = static_cast<std::int64_t*>(slots_.data());
  std::iota(slots, slots + n, place * blocks_each_ * kBlockSize);
  StepContext step{
      .backend = backend_,
      .tokens = n,
      .positions = positions_.view(DType::i32, {n}),
      .frequencies = {},
      .ropes = {},
      .scratch = Scratch(scratch_.view(DType::u8, {static_cast<std::int64_t>(scratch_.bytes())})),
      .slots = slots_.view(DType::i64, {n})};
  for (std::size_t i = 0; i < model_.network.layers.size(); ++i) {
    const Block* cross = model_.network.layers[i].cross.get();
    if (cross == nullptr) continue;
    step.cross_cache = places_.layers()[i];
    cross->store_rows(step, rows);
  }
}

void SoundEncoder::plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> places) {
  CHECK(places.size() + 1 == query_starts.size(), "{} sounds of {} sequences", places.size(),
        query_starts.size() - 1);
  cross_lengths_.assign(places.size(), rows_);
  cross_tables_.clear();
  for (const std::int32_t place : places)
    for (std::int64_t block = 0; block < blocks_each_; ++block)
      cross_tables_.push_back(static_cast<std::int32_t>(place * blocks_each_ + block));
  backend_.ops.plan_attention(*backend_.stream,
                              {.query_starts = query_starts,
                               .lengths = cross_lengths_,
                               .block_tables = cross_tables_,
                               .table_stride = blocks_each_,
                               .recorded = false},
                              *cross_plan_);
}

}  // namespace octavo
