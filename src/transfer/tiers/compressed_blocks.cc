#include "transfer/tiers/compressed_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "kernels/kv_quant.h"
#include "tensor/dtype.h"

namespace octavo {
namespace {

struct Int8 {
  static constexpr BlockCompression kBy = BlockCompression::int8;
  static constexpr float kLargest = 127;
  static std::byte code(float x, float scale) { return std::bit_cast<std::byte>(kv_quantized(x, scale)); }
  static float number(std::byte code) { return std::bit_cast<std::int8_t>(code); }
};

struct Fp8 {
  static constexpr BlockCompression kBy = BlockCompression::fp8;
  static constexpr float kLargest = 448;
  static std::byte code(float x, float scale) {
    return scale > 0 ? std::byte{to_f8_e4m3(x / scale).bits} : std::byte{};
  }
  static float number(std::byte code) { return to_f32(std::bit_cast<Float8E4M3>(code)); }
};

template <class Number>
Number rounded(float x) {
  if constexpr (std::is_same_v<Number, BFloat16>) {
    return to_bf16(x);
  } else if constexpr (std::is_same_v<Number, Float16>) {
    return to_f16(x);
  } else {
    return x;
  }
}

// Writes a scale and one code for each number. numbers: scratch memory for one vector.
template <class Number, class Code>
void compress(std::span<const std::byte> plain, std::span<float> numbers, std::span<std::byte> out) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Number number;
    std::memcpy(&number, &plain[i * sizeof number], sizeof number);
    numbers[i] = to_f32(number);
  }
  float scale = kv_scale(std::span<const float>(numbers), Code::kLargest);
  if (scale < std::numeric_limits<float>::min()) scale = 0;  // denormal scales are too inexact
  std::memcpy(out.data(), &scale, sizeof scale);
  for (std::size_t i = 0; i < numbers.size(); ++i) out[sizeof scale + i] = Code::code(numbers[i], scale);
}

template <class Number, class Code>
void expand(std::span<const std::byte> packed, std::span<std::byte> out) {
  float scale = 0;
  std::memcpy(&scale, packed.data(), sizeof scale);
  const std::span codes = packed.subspan(sizeof scale);
  // If the scale was rounded up, a product could exceed the largest float, so it is clamped.
  constexpr float kMost = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto number = rounded<Number>(std::clamp(Code::number(codes[i]) * scale, -kMost, kMost));
    std::memcpy(&out[i * sizeof number], &number, sizeof number);
  }
}

struct Codec {
  DType dtype;
  BlockCompression by;
  void (*compress)(std::span<const std::byte> plain, std::span<float> numbers, std::span<std::byte> out);
  void (*expand)(std::span<const std::byte> packed, std::span<std::byte> out);
};
template <class Number, class Code>
constexpr Codec codec{dtype_of<Number>, Code::kBy, compress<Number, Code>, expand<Number, Code>};
constexpr std::array kCodecs{codec<float, Int8>, codec<Float16, Int8>, codec<BFloat16, Int8>,
                             codec<float, Fp8>,  codec<Float16, Fp8>,  codec<BFloat16, Fp8>};

// Returns null if there is no codec for the data type and the compression.
const Codec* codec_of(const BlockFormat& format, BlockCompression by) {
  const auto found = std::ranges::find_if(
      kCodecs, [&](const Codec& each) { return name(each.dtype) == format.dtype && each.by == by; });
  return found == kCodecs.end() ? nullptr : &*found;
}

// Offset and size in bytes of a vector in a plain or in a compressed block.
struct Extent {
  std::size_t begin = 0, bytes = 0;
};
template <class Do>
void for_each_vector(const BlockFormat& format, std::size_t number_bytes, Do&& act) {
  Extent plain, packed;
  for (const BlockFormat::Planes& planes : format.planes) {
    plain.bytes = static_cast<std::size_t>(planes.token_bytes);
    packed.bytes = sizeof(float) + plain.bytes / number_bytes;
    for (int i = 0; i < planes.count * format.block_size; ++i) {
      act(plain, packed);
      plain.begin += plain.bytes;
      packed.begin += packed.bytes;
    }
  }
}

// Returns a thread-local buffer for a plain block, valid until the thread's next call. packed_block() cannot
// be used here: the wrapped store uses that buffer at the same time.
std::span<std::byte> plain_block(const BlockFormat& format) {
  thread_local std::vector<std::byte> room;
  const auto bytes = static_cast<std::size_t>(format.bytes);
  if (room.size() < bytes) room.resize(bytes);
  return std::span(room).first(bytes);
}

}  // namespace

Result<BlockFormat> compressed(const BlockFormat& format, BlockCompression by) {
  if (by == BlockCompression::none) return format;
  const std::string_view field = "compression";
  if (format.planes.empty())
    return failure(ErrorCode::unsupported,
                   "{} is not supported for models with sliding windows, recurrent layers or cache entries "
                   "of several tokens",
                   field);
  const Codec* codec = codec_of(format, by);
  if (codec == nullptr)
    return failure(ErrorCode::unsupported, "{} needs a KV cache of f32, f16 or bf16, got {}", field,
                   format.dtype);
  BlockFormat small = format;
  small.dtype = fmt::format("{} as {}", format.dtype, kBlockCompressionNames[static_cast<std::size_t>(by)]);
  std::size_t bytes = 0, small_bytes = 0;
  for_each_vector(format, size_of(codec->dtype), [&](const Extent& plain, const Extent& packed) {
    bytes += plain.bytes;
    small_bytes += packed.bytes;
  });
  CHECK(static_cast<std::int64_t>(bytes) == format.bytes);
  small.bytes = static_cast<std::int64_t>(small_bytes);
  small.planes.clear();
  return small;
}

CompressedBlocks::CompressedBlocks(BlockFormat format, BlockCompression by, std::unique_ptr<BlockStore> store)
    : format_(std::move(format)), by_(by), store_(std::move(store)) {
  CHECK(codec_of(format_, by_) != nullptr);
}

Result<> CompressedBlocks::read(Hash128 key, const TakeBlock& take) {
  return store_->read(key, [&](std::span<const std::byte> contents) {
    const Codec& codec = *codec_of(format_, by_);
    const std::span<std::byte> block = plain_block(format_);
    for_each_vector(format_, size_of(codec.dtype), [&](const Extent& plain, const Extent& packed) {
      codec.expand(contents.subspan(packed.begin, packed.bytes), block.subspan(plain.begin, plain.bytes));
    });
    take(block);
  });
}

Result<> CompressedBlocks::write(Hash128 key, const FillBlock& fill) {
  return store_->write(key, [&](std::span<std::byte> contents) {
    const Codec& codec = *codec_of(format_, by_);
    const std::span<std::byte> block = plain_block(format_);
    fill(block);
    std::vector<float> numbers;
    for_each_vector(format_, size_of(codec.dtype), [&](const Extent& plain, const Extent& packed) {
      numbers.resize(plain.bytes / size_of(codec.dtype));
      codec.compress(block.subspan(plain.begin, plain.bytes), numbers,
                     contents.subspan(packed.begin, packed.bytes));
    });
  });
}

}  // namespace octavo
