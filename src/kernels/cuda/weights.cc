// Converts matrices of checkpoints and copies them to the device.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/cuda/device.h"
#include "tensor/dequantize.h"

namespace octavo::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;  // alignment of rows and of their codes, in bytes

std::int64_t rounded(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

void put_numbers(const MatrixPart& part, std::int64_t row, DType format, std::byte* out) {
  if (format == DType::f32) return dequantize(part, row, reinterpret_cast<float*>(out));
  if (part.encoding != Encoding::plain) {
    std::vector<float> numbers(static_cast<std::size_t>(part.cols()));
    dequantize(part, row, numbers.data());
    for (std::size_t k = 0; k < numbers.size(); ++k)
      if (format == DType::bf16)
        reinterpret_cast<BFloat16*>(out)[k] = to_bf16(numbers[k]);
      else
        reinterpret_cast<Float16*>(out)[k] = to_f16(numbers[k]);
    return;
  }
  const auto* from = part.values.row<std::uint16_t>(row);
  if (part.values.stride[1] == 1) {
    std::memcpy(out, from, static_cast<std::size_t>(part.cols()) * 2);
    return;
  }
  for (std::int64_t k = 0; k < part.cols(); ++k)
    std::memcpy(out + 2 * k, from + k * part.values.stride[1], 2);
}

// How a part stores its codes.
struct PartCodes {
  Format format;
  std::int64_t group;
  int zero;    // number subtracted from every code; unused if `zeros`
  bool zeros;
  bool mins = false;
};

PartCodes codes_of(const MatrixPart& part) {
  if (!part.scales) {
    const BlockTraits& traits = block_traits(part.encoding);
    const bool as_they_are = values_of(part.encoding) == nullptr;
    return {traits.bits <= 4 && as_they_are ? Format::q4 : Format::q8, traits.group, traits.zero, false,
            traits.has_min()};
  }
  const std::int64_t group = part.cols() / part.scales.size(1);
  if (part.encoding == Encoding::fp8) return {Format::f8, group, 0, false};
  if (part.encoding == Encoding::mxfp4) return {Format::e2m1, group, zero_of(part.encoding), false};
  const bool narrow = part.encoding == Encoding::int4;
  const bool zeros = static_cast<bool>(part.zeros);
  return {narrow ? Format::q4 : Format::q8, group, zeros ? 0 : zero_of(part.encoding), zeros};
}

// Number that is subtracted from q8 codes if groups have separate zeros, because q8 codes are signed.
// Otherwise the part's zero is subtracted.
constexpr int kSigned = 128;

bool narrow(Format format) { return format == Format::q4 || format == Format::e2m1; }

// Number of columns of a group, if all parts have groups of this size.
std::int64_t group_of(const MatrixSource& source) {
  std::int64_t group = 0;
  for (const MatrixPart& part : source.parts) group = std::gcd(group, codes_of(part).group);
  return group;
}

Result<WeightRows> layout_of(const MatrixSource& source, std::int64_t group, bool wgmma) {
  const std::int64_t cols = source.parts[0].cols();
  const PartCodes first = codes_of(source.parts[0]);
  bool alike = true, mins = false;
  for (const MatrixPart& part : source.parts) {
    const PartCodes codes = codes_of(part);
    if ((codes.format == Format::f8) != (first.format == Format::f8) || codes.zeros != first.zeros)
      return failure(ErrorCode::unsupported,
                     "the parts of a fused matrix are {} and {}; they must have one format",
                     name(source.parts[0].encoding), name(part.encoding));
    alike = alike && codes.format == first.format && codes.zero == first.zero;
    mins = mins || codes.mins;
  }
  WeightRows rows{
      .format = first.format, .group = static_cast<int>(group), .groups = static_cast<int>(cols / group)};
  if (!alike) rows.format = Format::q8;
  rows.zeros = first.zeros;
  if (rows.format == Format::q4) rows.zero = static_cast<float>(first.zero);
  rows.codes_at = rounded(rows.groups * static_cast<std::int64_t>(sizeof(GroupScale)), kAlignment);
  rows.rounding = source.rounding;
  const bool rounds = rows.rounding.group > 0;
  CHECK(!rounds || (rows.format == Format::f8 && (rows.groups == 1 || group % kFp8Columns == 0)),
        "x cannot be rounded for groups of {} columns", group);
  // wgmma_codes.cu scales sums of at least 32 columns.
  rows.by_lanes =
      wgmma && !rounds && source.activation != DType::f32 && !mins && (group % 32 == 0 || rows.groups == 1);
  const std::int64_t columns = rounded(cols, rows.by_lanes || rounds ? kLaneColumns : kWeightColumns);
  rows.stride = rows.codes_at + (narrow(rows.format) ? columns / 2 : columns);
  return rows;
}

// Converts the scales and codes of a row to the layout `to`.
class CodedRow {
 public:
  CodedRow(const WeightRows& to, std::int64_t cols)
      : to_(to), codes_(static_cast<std::size_t>(cols)), scales_(static_cast<std::size_t>(to.groups)) {}

  void put(const MatrixPart& part, std::int64_t row, std::byte* out) {
    const PartCodes own = codes_of(part);
    // For q8, `shift_` is the number that is subtracted to make codes signed. If groups have zeros, it is
    // also subtracted from the zeros.
    shift_ = to_.format != Format::q8 ? 0 : own.zeros ? kSigned : own.zero;
    values_ = to_.format == Format::e2m1 ? nullptr : values_of(part.encoding);
    const auto* bytes = part.values.row<std::uint8_t>(row);
    if (part.scales) {
      take_codes(part, row, bytes, own.group);
    } else {
      take_blocks(part.encoding, bytes, own.group);
    }
    std::memcpy(out, scales_.data(), scales_.size() * sizeof(GroupScale));
    std::byte* codes = out + to_.codes_at;
    for (std::size_t k = 0; k < codes_.size(); ++k) {
      const auto index = static_cast<std::size_t>(index_of(to_, static_cast<std::int64_t>(k)));
      if (narrow(to_.format)) {
        codes[index / 2] |= static_cast<std::byte>(codes_[k] << (index % 2 * 4));
      } else {
        codes[index] = static_cast<std::byte>(codes_[k] - shift_);
      }
    }
  }

 private:
  void set_scale(std::int64_t first, std::int64_t count, GroupScale scale) {
    for (std::int64_t g = first / to_.group; g < (first + count) / to_.group; ++g)
      scales_[static_cast<std::size_t>(g)] = scale;
  }

  void take_codes(const MatrixPart& part, std::int64_t row, const std::uint8_t* bytes, std::int64_t group) {
    if (values_ != nullptr)
      std::transform(bytes, bytes + codes_.size(), codes_.begin(),
                     [&](std::uint8_t code) { return values_[code]; });
    else
      std::copy_n(bytes, codes_.size(), codes_.begin());
    for (std::int64_t g = 0; g < part.scales.size(1); ++g) {
      const float scale = part.scales.row<float>(row)[g * part.scales.stride[1]];
      const int zero = part.zeros ? part.zeros.row<std::uint8_t>(row)[g * part.zeros.stride[1]] - shift_ : 0;
      set_scale(g * group, group, {scale, static_cast<float>(zero)});
    }
  }

  void take_blocks(Encoding encoding, const std::uint8_t* bytes, std::int64_t group) {
    const BlockShape shape = block_shape(encoding);
    const BlockTraits& traits = block_traits(encoding);
    QuantBlock block;
    for (std::size_t k = 0; k < codes_.size();
         k += static_cast<std::size_t>(shape.elements), bytes += shape.bytes) {
      take_apart(encoding, bytes, block);
      for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements); ++i)
        codes_[k + i] = values_ != nullptr ? values_[block.codes[i]] : block.codes[i];
      for (std::size_t g = 0; g < static_cast<std::size_t>(shape.elements / group); ++g)
        set_scale(static_cast<std::int64_t>(k) + static_cast<std::int64_t>(g) * group, group,
                  {traits.factor * to_f32(block.scale) * block.scales[g],
                   traits.has_min() ? to_f32(block.min) * block.mins[g] : 0});
    }
  }

  const WeightRows& to_;
  std::vector<std::uint8_t> codes_;
  std::vector<GroupScale> scales_;
  int shift_ = 0;
  // written code for each code of the part; null: codes are unchanged
  const std::uint8_t* values_ = nullptr;
};

// Copies rows through two buffers of pinned memory; the host fills one buffer while the device reads the
// other. put(part, row, out) must write one row to `out`, which initially contains zeros.
template <class Put>
Result<Buffer> upload(Device& device, const MatrixSource& source, std::int64_t row_bytes, Put&& put) {
  std::int64_t rows = 0;
  for (const MatrixPart& part : source.parts) rows += part.rows();
  TRY(Buffer data, device.allocate(static_cast<std::size_t>(rows * row_bytes)));
  constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;
  auto& cuda = static_cast<CudaDevice&>(device);
  Staging& staging = cuda.weight_staging();
  TRY_VOID(
      staging.reserve(device, cuda.stream(), static_cast<std::size_t>(std::max(kPieceBytes, row_bytes))));
  const std::int64_t rows_each = static_cast<std::int64_t>(staging.bytes()) / row_bytes;
  std::int64_t sent = 0, filled = 0;
  const auto send = [&] {
    staging.send(
        device, cuda.stream(),
        View::of(static_cast<std::byte*>(data.data()) + sent * row_bytes, DType::u8, {filled * row_bytes}));
    sent += filled;
    filled = 0;
  };
  for (const MatrixPart& part : source.parts)
    for (std::int64_t row = 0; row < part.rows(); ++row) {
      if (filled == 0) staging.swap(cuda.stream());
      std::byte* to = staging.data() + filled * row_bytes;
      std::memset(to, 0, static_cast<std::size_t>(row_bytes));
      put(part, row, to);
      if (++filled == rows_each) send();
    }
  if (filled > 0) send();
  return data;
}

}  // namespace

Result<WeightPtr> prepare(Device& device, const MatrixSource& source) {
  CHECK(!source.parts.empty());
  const MatrixPart& first = source.parts[0];
  const std::int64_t cols = first.cols();
  const bool plain = first.encoding == Encoding::plain;
  std::int64_t rows = 0;
  for (const MatrixPart& part : source.parts) {
    CHECK(part.values.rank == 2 && part.cols() == cols,
          "the parts of a fused matrix must have the same number of columns");
    if ((part.encoding == Encoding::plain) != plain || (plain && part.values.dtype != first.values.dtype))
      return failure(ErrorCode::unsupported,
                     "the parts of a fused matrix are {} and {}; they must have one format",
                     plain ? name(first.values.dtype) : name(first.encoding),
                     part.encoding == Encoding::plain ? name(part.values.dtype) : name(part.encoding));
    rows += part.rows();
  }
  // Kernels read eight codes with one scale. Matrices with smaller groups become numbers.
  const std::int64_t group = plain ? 0 : group_of(source);
  if (plain || (group % 8 != 0 && group != cols)) {
    const DType format = !plain || first.values.dtype == source.activation ? source.activation : DType::f32;
    const WeightRows like{
        .format = format_of(format),
        .stride = rounded(cols, kWeightColumns) * static_cast<std::int64_t>(size_of(format))};
    TRY(Buffer data,
        upload(device, source, like.stride, [&](const MatrixPart& part, std::int64_t row, std::byte* out) {
          put_numbers(part, row, format, out);
        }));
    return std::make_unique<const CudaWeight>(rows, cols, format, like, std::move(data));
  }
  const bool hopper = static_cast<CudaDevice&>(device).stream().hopper().processors > 0;
  TRY(const WeightRows like, layout_of(source, group, hopper));
  CodedRow coded(like, cols);
  TRY(Buffer data,
      upload(device, source, like.stride,
             [&](const MatrixPart& part, std::int64_t row, std::byte* out) { coded.put(part, row, out); }));
  return std::make_unique<const CudaWeight>(rows, cols, source.activation, like, std::move(data));
}

}  // namespace octavo::cuda

namespace octavo {

Result<WeightPtr> cuda_move_to_host(Device& device, WeightPtr weight) {
  const auto& from = static_cast<const cuda::CudaWeight&>(*weight);
  Stream& stream = static_cast<cuda::CudaDevice&>(device).stream();
  TRY(Buffer memory, device.allocate_staging(from.bytes()));
  device.download(stream, memory.data(),
                  View::of(const_cast<std::byte*>(from.numbers().data), DType::u8,
                           {static_cast<std::int64_t>(from.bytes())}));
  stream.synchronize();
  return std::make_unique<const cuda::CudaWeight>(from.rows(), from.cols(), from.activation(), from.numbers(),
                                                  std::move(memory));
}

}  // namespace octavo
