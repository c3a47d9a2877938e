#include "engine/sound_encoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr int kBlockSize = 16;

// The frames that a convolution sees for each of its outputs, one row each, as its weights have them:
// channel, frame. frames: [count, channels], where at(frame, channel) is read; frames beyond both ends are
// zeros.
template <class Put>
void lay_out_patches(std::int64_t outputs, std::int64_t step, std::int64_t count, std::int64_t channels,
                     Put put) {
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < outputs; ++i)
    for (std::int64_t channel = 0; channel < channels; ++channel)
      for (std::int64_t tap = 0; tap < kSoundTaps; ++tap, ++to) {
        const std::int64_t frame = i * step + tap - kSoundTaps / 2;
        put(to, frame >= 0 && frame < count ? frame : -1, channel);
      }
}

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
      tower_(*model.tower),
      input_(*tower_.spec.sound),
      backend_(backend),
      layout_(cache_layout(tower_.spec,
                           {.block_size = kBlockSize, .dtype = tower_.activation, .one_plane = true})),
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
  const int n = input_.rows;
  const int blocks = (n + kBlockSize - 1) / kBlockSize;
  TRY_VOID(cross_layout_.supported(backend_.ops));
  TRY(Decoder decoder, Decoder::make(tower_, layout_, backend_, {.max_tokens = n, .max_logit_rows = 1}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  TRY(cache_, KvMemory::allocate(layout_, backend_, blocks, 0));

  Device& device = *backend_.device;
  CHECK(device.shares_host_memory(), "sound on {}", backend_.name);
  const std::size_t act = size_of(tower_.activation), rows = static_cast<std::size_t>(n);
  const std::size_t frames = 2 * rows, dim = static_cast<std::size_t>(tower_.spec.dim);
  const std::size_t taps = kSoundTaps;
  TRY(patches_,
      device.allocate(act * taps * std::max(frames * static_cast<std::size_t>(input_.mels), rows * dim)));
  TRY(products_, device.allocate(act * frames * dim));
  TRY(features_, device.allocate(act * frames * dim));
  TRY(scratch_, device.allocate(act * rows * 2 * dim));
  TRY(positions_, device.allocate(rows * sizeof(std::int32_t)));
  TRY(slots_, device.allocate(rows * sizeof(std::int64_t)));
  std::iota(static_cast<std::int32_t*>(positions_.data()), static_cast<std::int32_t*>(positions_.data()) + n,
            0);

  starts_ = {0, n};
  lengths_ = {n};
  table_.resize(static_cast<std::size_t>(blocks));
  std::iota(table_.begin(), table_.end(), 0);
  for (const LayerGroup& group : layout_.groups) {
    TRY(auto plan, backend_.ops.make_attention_plan(device, attention_limits(tower_, group, n, 1)));
    groups_.push_back({plan.get(), slots_.view(DType::i64, {n})});
    plans_.push_back(std::move(plan));
  }
  AttentionLimits limits = attention_limits(model_, cross_layout_.groups[0], max_tokens, max_sequences);
  limits.max_length = n;
  TRY(cross_plan_, backend_.ops.make_attention_plan(device, limits));
  return {};
}

void SoundEncoder::convolve(const LinearParameter& w, const View& patches, const View& out) {
  const View product = View::of(products_.data(), out.dtype, {out.size(0), out.size(1)});
  backend_.ops.matmul(*backend_.stream,
                      {.x = patches, .w = *w.weight.weight, .bias = w.bias.value, .y = product});
  backend_.ops.activate(*backend_.stream,
                        {.x = product, .activation = Activation::gelu, .gated = false, .y = out});
}

void SoundEncoder::encode(int place, std::string_view pixels) {
  const std::int64_t rows = input_.rows, frames = input_.frames(), mels = input_.mels, dim = tower_.spec.dim;
  CHECK(std::ssize(pixels) == mels * frames * static_cast<std::int64_t>(sizeof(float)), "{} bytes of sound",
        pixels.size());
  const DType act = tower_.activation;
  const std::size_t bytes = size_of(act);
  auto* const patches = static_cast<std::byte*>(patches_.data());
  lay_out_patches(frames, 1, frames, mels, [&](std::int64_t to, std::int64_t frame, std::int64_t mel) {
    float value = 0;
    if (frame >= 0)
      std::memcpy(&value, pixels.data() + static_cast<std::size_t>(mel * frames + frame) * sizeof value,
                  sizeof value);
    put_number(patches, act, static_cast<std::size_t>(to), value);
  });
  const View first = features_.view(act, {frames, dim});
  convolve(tower_.network.convolutions[0], patches_.view(act, {frames, mels * kSoundTaps}), first);
  lay_out_patches(rows, 2, frames, dim, [&](std::int64_t to, std::int64_t frame, std::int64_t channel) {
    std::byte* const out = patches + static_cast<std::size_t>(to) * bytes;
    if (frame < 0)
      std::memset(out, 0, bytes);
    else
      std::memcpy(
          out,
          static_cast<const std::byte*>(first.data) + static_cast<std::size_t>(frame * dim + channel) * bytes,
          bytes);
  });
  const View features = features_.view(act, {rows, dim});
  convolve(tower_.network.convolutions[1], patches_.view(act, {rows, dim * kSoundTaps}), features);

  auto* const slots = static_cast<std::int64_t*>(slots_.data());
  std::iota(slots, slots + rows, 0);
  for (const auto& plan : plans_)
    backend_.ops.plan_attention(*backend_.stream,
                                {.query_starts = starts_,
                                 .lengths = lengths_,
                                 .block_tables = table_,
                                 .table_stride = std::ssize(table_),
                                 .recorded = false},
                                *plan);
  decoder_->forward(
      {.positions = positions_.view(DType::i32, {rows}), .groups = groups_, .features = features},
      cache_.layers());
  keep(place, decoder_->rows());
}

// The keys and values that each layer makes of the encoder's rows.
void SoundEncoder::keep(int place, const View& rows) {
  const std::int64_t n = input_.rows;
  auto* const slots = static_cast<std::int64_t*>(slots_.data());
  std::iota(slots, slots + n, place * blocks_each_ * kBlockSize);
  StepContext step{
      .backend = backend_,
      .tokens = n,
      .positions = positions_.view(DType::i32, {n}),
      .ropes = {},
      .scratch = Scratch(scratch_.view(DType::u8, {static_cast<std::int64_t>(scratch_.bytes())})),
      .slots = slots_.view(DType::i64, {n})};
  for (std::size_t i = 0; i < model_.network.layers.size(); ++i) {
    const Block* cross = model_.network.layers[i].cross.get();
    if (cross == nullptr) continue;
    step.cross_cache = places_.layers()[i];
    cross->keep_rows_of_encoder(step, rows);
  }
}

void SoundEncoder::plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> places) {
  CHECK(places.size() + 1 == query_starts.size(), "{} sounds of {} sequences", places.size(),
        query_starts.size() - 1);
  cross_lengths_.assign(places.size(), input_.rows);
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
