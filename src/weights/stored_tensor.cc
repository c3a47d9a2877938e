#include "weights/stored_tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "tensor/dequantize.h"
#include "weights/packed_matrix.h"

namespace octavo {
namespace {

// Elements are checked in blocks that fit into the L1 cache.
constexpr std::size_t kBlock = 4096;

// Returns whether all floats are finite. `Bits` is the unsigned type of the same size as the float. A float
// is not finite if all its exponent bits are 1, so the loop computes the maximum exponent of a block, which
// compilers turn into vector instructions.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent_mask) {
  const std::size_t count = bytes.size() / sizeof(Bits);
  Bits block[kBlock];
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, count - begin);
    // The tensor's data may be unaligned.
    std::memcpy(block, bytes.data() + begin * sizeof(Bits), n * sizeof(Bits));
    Bits largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto exponent = static_cast<Bits>(block[i] & exponent_mask);
      largest = exponent > largest ? exponent : largest;
    }
    if (largest == exponent_mask) return false;
  }
  return true;
}

bool all_finite(std::span<const std::byte> bytes, DType type) {
  if (type == DType::f32) return all_finite<std::uint32_t>(bytes, 0x7f800000);
  if (type == DType::bf16) return all_finite<std::uint16_t>(bytes, 0x7f80);
  return all_finite<std::uint16_t>(bytes, 0x7c00);
}

bool is_finite(Float16 number) { return (number.bits & 0x7c00) != 0x7c00; }

// Returns whether the f16 at offset `at` of each block is finite.
bool all_finite_at(std::span<const std::byte> blocks, std::size_t step, int at) {
  bool finite = true;
  const auto* block = reinterpret_cast<const std::uint8_t*>(blocks.data()) + at;
  for (std::size_t i = 0; i < blocks.size() / step; ++i, block += step) finite &= is_finite(f16_at(block));
  return finite;
}

bool all_scales_finite(std::span<const std::byte> bytes, Encoding encoding) {
  const BlockTraits& traits = block_traits(encoding);
  const auto step = static_cast<std::size_t>(block_shape(encoding).bytes);
  bool finite = true;
  if (traits.scale_at >= 0) {
    finite = all_finite_at(bytes, step, traits.scale_at);
  } else {
    for (std::size_t at = 0; at < bytes.size(); at += step)
      finite &= is_finite(scale_of(traits, reinterpret_cast<const std::uint8_t*>(bytes.data()) + at));
  }
  return traits.has_min() ? all_finite_at(bytes, step, traits.min_at) && finite : finite;
}

}  // namespace

View view_of(const StoredTensor& tensor) {
  CHECK(tensor.dtype && tensor.shape.size() <= 4, "tensor {}", tensor.name);
  View v{const_cast<std::byte*>(tensor.bytes.data()),
         *tensor.dtype,
         static_cast<int>(tensor.shape.size()),
         {},
         {}};
  std::int64_t step = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    v.shape[i] = tensor.shape[i];
    v.stride[i] = step;
    step *= tensor.shape[i];
  }
  return v;
}

StoredTensor slice_of(const StoredTensor& tensor, std::int64_t i) {
  CHECK(tensor.shape.size() > 1 && i < tensor.shape[0], "tensor {}", tensor.name);
  StoredTensor slice = tensor;
  slice.shape.erase(slice.shape.begin());
  const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  slice.bytes = tensor.bytes.subspan(static_cast<std::size_t>(i) * bytes, bytes);
  if (tensor.packed) {
    PackedMatrix packed = *tensor.packed;
    packed.codes = slice_of(packed.codes, i);
    packed.scales = slice_of(packed.scales, i);
    if (packed.global_scale.shape.size() > 1) packed.global_scale = slice_of(packed.global_scale, i);
    slice.packed = std::make_shared<const PackedMatrix>(std::move(packed));
  }
  return slice;
}

StoredTensor part_of(const StoredTensor& tensor, std::int64_t first_row, std::int64_t rows,
                     std::int64_t first_col, std::int64_t cols, std::vector<std::byte>& memory) {
  CHECK(tensor.plain() && tensor.shape.size() == 2 && first_row + rows <= tensor.shape[0] &&
            first_col + cols <= tensor.shape[1],
        "tensor {}", tensor.name);
  const std::size_t element = size_of(*tensor.dtype);
  const std::size_t row = static_cast<std::size_t>(tensor.shape[1]) * element;
  const std::size_t kept = static_cast<std::size_t>(cols) * element;
  StoredTensor part = tensor;
  part.shape = {rows, cols};
  part.bytes =
      tensor.bytes.subspan(static_cast<std::size_t>(first_row) * row, static_cast<std::size_t>(rows) * row);
  if (kept == row) return part;
  memory.resize(static_cast<std::size_t>(rows) * kept);
  const std::byte* from = part.bytes.data() + static_cast<std::size_t>(first_col) * element;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i)
    std::memcpy(memory.data() + i * kept, from + i * row, kept);
  part.bytes = memory;
  return part;
}

float number_at(const StoredTensor& tensor, std::int64_t i) {
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(i) * sizeof value,
                sizeof value);  // the data may be unaligned
    if constexpr (std::is_integral_v<T>)
      return static_cast<float>(value);
    else
      return to_f32(value);
  };
  if (tensor.dtype == DType::bf16) return read(BFloat16{});
  if (tensor.dtype == DType::f16) return read(Float16{});
  if (tensor.dtype == DType::i64) return read(std::int64_t{});
  if (tensor.dtype == DType::i32) return read(std::int32_t{});
  return read(float{});
}

void put_number(std::byte* data, DType type, std::size_t i, float value) {
  const auto write = [&]<class T>(T narrow) { std::memcpy(data + i * sizeof(T), &narrow, sizeof(T)); };
  if (type == DType::bf16) return write(to_bf16(value));
  if (type == DType::f16) return write(to_f16(value));
  write(value);
}

StoredTensor in_format(const StoredTensor& tensor, DType type, std::vector<std::byte>& memory,
                       ThreadPool& pool) {
  constexpr std::int64_t kPiece = 1 << 16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % size_of(type) == 0;
  if (tensor.dtype == type && aligned) return tensor;
  const std::size_t count = tensor.bytes.size() / size_of(*tensor.dtype);
  memory.resize(count * size_of(type));
  pool.for_ranges(static_cast<std::int64_t>(count), kPiece, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      put_number(memory.data(), type, i, number_at(tensor, static_cast<std::int64_t>(i)));
  });
  StoredTensor converted = tensor;
  converted.dtype = type;
  converted.bytes = memory;
  return converted;
}

MatrixPart matrix_of(const StoredTensor& tensor) {
  CHECK(tensor.usable() && !tensor.packed && tensor.shape.size() == 2, "tensor {}", tensor.name);
  if (tensor.plain()) return {.values = view_of(tensor)};
  const BlockShape block = block_shape(tensor.encoding);
  return {.encoding = tensor.encoding,
          .values = View::of(const_cast<std::byte*>(tensor.bytes.data()), DType::u8,
                             {tensor.shape[0], tensor.shape[1] / block.elements * block.bytes})};
}

Result<> check_finite(const StoredTensor& tensor, ThreadPool& pool) {
  // Bytes per piece. A piece contains complete elements or blocks.
  const std::int64_t piece =
      tensor.plain() ? 1 << 20 : std::int64_t{4096} * block_shape(tensor.encoding).bytes;
  std::atomic<bool> finite = true;
  pool.for_ranges(std::ssize(tensor.bytes), piece, [&](std::int64_t begin, std::int64_t end) {
    const auto bytes =
        tensor.bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    const bool here =
        tensor.plain() ? all_finite(bytes, *tensor.dtype) : all_scales_finite(bytes, tensor.encoding);
    if (!here) finite = false;
  });
  if (!finite) {
    return failure(ErrorCode::corrupt, "tensor {} contains NaN or infinity in {}", tensor.name,
                   tensor.plain() ? name(*tensor.dtype) : name(tensor.encoding));
  }
  return {};
}

}  // namespace octavo
