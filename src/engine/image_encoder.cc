#include "engine/image_encoder.h"

#include <cstring>
#include <numeric>

#include "tensor/dequantize.h"

namespace octavo {
namespace {

constexpr int kBlockSize = 16;

}  // namespace

Result<std::unique_ptr<ImageEncoder>> ImageEncoder::create(const Model& tower, Backend& backend) {
  std::unique_ptr<ImageEncoder> encoder(new ImageEncoder(tower, backend));
  TRY_VOID(encoder->allocate());
  return encoder;
}

ImageEncoder::ImageEncoder(const Model& tower, Backend& backend)
    : tower_(tower),
      input_(*tower.spec.image),
      backend_(backend),
      layout_(cache_layout(tower.spec,
                           {.block_size = kBlockSize, .dtype = tower.activation, .one_plane = true})) {
  order_patches();
  const DType act = tower.activation;
  numbers_.resize(3 * 256 * size_of(act));
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t value = 0; value < 256; ++value)
      put_number(numbers_.data(), act, channel * 256 + value,
                 (static_cast<float>(value) * input_.scale - input_.mean[channel]) / input_.std[channel]);
}

// Those that become one token side by side: their vectors then are that token's, without being moved.
void ImageEncoder::order_patches() {
  const int side = input_.side(), merge = input_.merge;
  for (int y = 0; y < side; y += merge)
    for (int x = 0; x < side; x += merge)
      for (int dy = 0; dy < merge; ++dy)
        for (int dx = 0; dx < merge; ++dx) order_.push_back((y + dy) * side + x + dx);
}

Result<> ImageEncoder::allocate() {
  const int n = input_.patches();
  const int blocks = (n + kBlockSize - 1) / kBlockSize;
  TRY(Decoder decoder, Decoder::make(tower_, layout_, backend_, {.max_tokens = n, .max_logit_rows = 1}));
  decoder_ = std::make_unique<Decoder>(std::move(decoder));
  TRY(cache_, KvMemory::allocate(layout_, backend_, blocks, 0));

  Device& device = *backend_.device;
  Stream& stream = *backend_.stream;
  host_patches_.resize(static_cast<std::size_t>(n * input_.patch_values()) * size_of(tower_.activation));
  TRY(patches_, device.allocate(host_patches_.size()));
  TRY(positions_, device.allocate(static_cast<std::size_t>(n) * sizeof(std::int32_t)));
  TRY(slots_, device.allocate(static_cast<std::size_t>(n) * sizeof(std::int64_t)));
  const View slots = slots_.view(DType::i64, {n});
  std::vector<std::int64_t> places(static_cast<std::size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  device.upload(stream, positions_.view(DType::i32, {n}), order_.data());
  device.upload(stream, slots, places.data());

  starts_ = {0, n};
  lengths_ = {n};
  table_.resize(static_cast<std::size_t>(blocks));
  std::iota(table_.begin(), table_.end(), 0);
  for (const LayerGroup& group : layout_.groups) {
    TRY(auto plan, backend_.ops.make_attention_plan(device, attention_limits(tower_, group, n, 1)));
    groups_.push_back({plan.get(), slots});
    plans_.push_back(std::move(plan));
  }
  stream.synchronize();
  return {};
}

// As a convolution's weights have them: channel, row, column.
void ImageEncoder::fill_patches(std::string_view pixels) {
  const std::size_t size = static_cast<std::size_t>(input_.image_size);
  const std::size_t patch = static_cast<std::size_t>(input_.patch_size), side = size / patch;
  const std::size_t bytes = size_of(tower_.activation);
  std::byte* out = host_patches_.data();
  for (const std::int32_t place : order_) {
    const std::size_t top = static_cast<std::size_t>(place) / side * patch;
    const std::size_t left = static_cast<std::size_t>(place) % side * patch;
    for (std::size_t channel = 0; channel < 3; ++channel)
      for (std::size_t y = top; y < top + patch; ++y)
        for (std::size_t x = left; x < left + patch; ++x, out += bytes) {
          const auto value = static_cast<std::uint8_t>(pixels[(y * size + x) * 3 + channel]);
          std::memcpy(out, numbers_.data() + (channel * 256 + value) * bytes, bytes);
        }
  }
}

Result<Buffer> ImageEncoder::encode(std::string_view pixels) {
  CHECK(pixels.size() == input_.pixel_bytes(), "{} bytes of pixels", pixels.size());
  Stream& stream = *backend_.stream;
  TRY(Buffer encoded,
      backend_.device->allocate(static_cast<std::size_t>(input_.tokens() * row_bytes())));
  stream.synchronize();  // the last image's patches may still be on their way
  fill_patches(pixels);
  const std::int64_t n = input_.patches();
  const View patches = patches_.view(tower_.activation, {n, input_.patch_values()});
  backend_.device->upload(stream, patches, host_patches_.data());
  for (const auto& plan : plans_)
    backend_.ops.plan_attention(stream,
                                {.query_starts = starts_,
                                 .lengths = lengths_,
                                 .block_tables = table_,
                                 .table_stride = std::ssize(table_),
                                 .recorded = false},
                                *plan);
  decoder_->forward({.positions = positions_.view(DType::i32, {n}), .groups = groups_, .patches = patches},
                    cache_.layers());
  decoder_->project(rows_of(encoded));
  return encoded;
}

}  // namespace octavo
