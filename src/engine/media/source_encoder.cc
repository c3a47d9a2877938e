#include "engine/media/source_encoder.h"

#include <cstring>
#include <limits>
#include <numeric>

#include "engine/media/ascending.h"

namespace octavo {
namespace {

constexpr int kSourceBlockSize = 16;

}  // namespace

Result<std::unique_ptr<SourceEncoder>> SourceEncoder::create(const Model& model, const CacheLayout& layout,
                                                             Backend& backend, int max_tokens,
                                                             int max_sequences) {
  std::unique_ptr<SourceEncoder> encoder(new SourceEncoder(model, layout, backend));
  TRY_VOID(encoder->allocate(max_tokens, max_sequences));
  return encoder;
}

SourceEncoder::SourceEncoder(const Model& model, const CacheLayout& layout, Backend& backend)
    : model_(model),
      rows_(model.tower->spec.cross_rows()),
      backend_(backend),
      cross_layout_(
          cross_layout(model.spec, {.block_size = kSourceBlockSize, .dtype = layout.groups[0].kv.dtype})),
      blocks_each_(rows_blocks(model.spec, cross_layout_)) {}

std::int64_t SourceEncoder::slot_bytes() const {
  return blocks_each_ * cross_layout_.block_bytes(backend_.ops);
}

Result<> SourceEncoder::allocate_slots(std::int64_t slots) {
  TRY(slot_memory_, KvMemory::allocate(cross_layout_, backend_, slots * blocks_each_, 0));
  lengths_.assign(static_cast<std::size_t>(slots), rows_);
  return {};
}

Result<> SourceEncoder::allocate(int max_tokens, int max_sequences) {
  if (model_.tower->spec.inputs.sound) {
    TRY(sound_, SoundTower::create(*model_.tower, backend_));
  } else {
    TRY(text_, SequenceLayers::create(*model_.tower, rows_, backend_));
  }
  Device& device = *backend_.device;
  const std::size_t rows = static_cast<std::size_t>(rows_);
  const KvSpec& kv = cross_layout_.groups[0].kv;
  TRY(scratch_, device.allocate(size_of(model_.tower->activation) * rows * 2 *
                                static_cast<std::size_t>(kv.kv_heads * kv.head_dim)));
  host_ids_.resize(rows);
  host_slots_.resize(rows);
  TRY(ids_, device.allocate(rows * sizeof(TokenId)));
  TRY(slots_, device.allocate(rows * sizeof(std::int64_t)));
  TRY(positions_, ascending<std::int32_t>(rows_, backend_));
  AttentionLimits limits = attention_limits(model_, cross_layout_.groups[0], max_tokens, max_sequences);
  limits.max_length = rows_;
  TRY(cross_plan_, backend_.ops.make_attention_plan(device, limits));
  return {};
}

void SourceEncoder::encode(int slot, const MediaPart& source) {
  constexpr int kAtOnce = std::numeric_limits<int>::max();
  backend_.stream->synchronize();  // waits, because the device may still read the arrays of the last source
  lengths_[static_cast<std::size_t>(slot)] = sound_ ? rows_ : source.columns;
  if (sound_) {
    sound_->begin(source.bytes, rows_);
    sound_->advance(kAtOnce);
    return keep(slot, sound_->decoder().rows());
  }
  CHECK(source.columns <= rows_ &&
        source.bytes.size() == static_cast<std::size_t>(source.columns) * sizeof(TokenId));
  std::memcpy(host_ids_.data(), source.bytes.data(), source.bytes.size());
  const View ids = ids_.view(DType::i32, {source.columns});
  backend_.device->upload(*backend_.stream, ids, host_ids_.data());
  text_->begin(source.columns, {.ids = ids, .positions = {}, .groups = {}});
  text_->advance(kAtOnce);
  keep(slot, text_->decoder().rows());
}

// Stores the keys and values that each decoder layer computes from the rows of the encoder.
void SourceEncoder::keep(int slot, const View& rows) {
  const std::int64_t n = rows.size(0);
  std::iota(host_slots_.begin(), host_slots_.begin() + n, slot * blocks_each_ * kSourceBlockSize);
  const View slots = slots_.view(DType::i64, {n});
  backend_.device->upload(*backend_.stream, slots, host_slots_.data());
  const ForwardBatch batch{.positions = positions_.view(DType::i32, {n}), .groups = {}};
  const Slots none;
  ResidualSum residual(backend_, {});
  Step step{.backend = backend_,
            .batch = batch,
            .rows = {0, n},
            .slots = none,
            .residual = residual,
            .rotation = {},
            .scratch = Scratch(scratch_.view(DType::u8, {static_cast<std::int64_t>(scratch_.bytes())}))};
  step.memory.cache.slots = slots;
  for (std::size_t i = 0; i < model_.network.layers.size(); ++i) {
    step.memory.cross = slot_memory_.layers()[i];
    for (const Block* block : model_.network.layers[i].blocks())
      if (block->source()) block->store_rows(step, rows);
  }
}

void SourceEncoder::plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> slots,
                         bool recorded) {
  const std::size_t sequences = query_starts.size() - 1;
  CHECK(recorded ? slots.size() <= sequences : slots.size() == sequences, "{} sources of {} sequences",
        slots.size(), sequences);
  cross_lengths_.clear();
  cross_tables_.clear();
  for (const std::int32_t slot : slots) {
    cross_lengths_.push_back(lengths_[static_cast<std::size_t>(slot)]);
    for (std::int64_t block = 0; block < blocks_each_; ++block)
      cross_tables_.push_back(static_cast<std::int32_t>(slot * blocks_each_ + block));
  }
  cross_lengths_.resize(sequences, 0);
  backend_.ops.plan_attention(*backend_.stream,
                              {.query_starts = query_starts,
                               .lengths = cross_lengths_,
                               .block_tables = cross_tables_,
                               .table_stride = blocks_each_,
                               .recorded = recorded},
                              *cross_plan_);
}

}  // namespace octavo
