// Unpacks the codes, scales and zero points of packed matrices.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "weights/packed_matrix.h"
#include "weights/unpack_codes.h"

namespace octavo {
namespace {

constexpr int kNanExponent = 255;

// The group of each column.
struct ColumnGroups {
  std::int64_t columns = 0;              // number of consecutive columns that share a group
  std::vector<std::int64_t> group = {};  // group of each run of `columns` columns
};

Result<ColumnGroups> column_groups(const PackedMatrix& m, std::int64_t cols) {
  ColumnGroups out{.columns = m.scale_cols >= cols ? cols : std::gcd(m.scale_cols, cols)};
  std::vector<std::int64_t> of_column(static_cast<std::size_t>(cols));
  for (std::int64_t k = 0; k < cols; ++k) of_column[static_cast<std::size_t>(k)] = k / m.scale_cols;
  if (!m.group_index.name.empty()) {
    const std::int64_t groups = (cols + m.scale_cols - 1) / m.scale_cols;
    for (std::size_t k = 0; k < of_column.size(); ++k) {
      std::int32_t group;
      std::memcpy(&group, m.group_index.bytes.data() + k * sizeof group, sizeof group);
      if (group < 0 || group >= groups)
        return failure(ErrorCode::corrupt, "tensor {} has group {}, but only {} groups exist",
                       m.group_index.name, group, groups);
      if (of_column[k] != group) out.columns = 1;
      of_column[k] = group;
    }
  }
  for (std::int64_t k = 0; k < cols; k += out.columns)
    out.group.push_back(of_column[static_cast<std::size_t>(k)]);
  return out;
}

// The loop has no branches, so that compilers can use vector instructions.
bool any_nan(std::span<const std::uint8_t> codes) {
  std::uint8_t found = 0;
  for (const std::uint8_t code : codes) found |= static_cast<std::uint8_t>((code & 0x7f) == 0x7f);
  return found != 0;
}

// Returns the factor for NVFP4's scales. It includes 1/2, because kCodeValues has doubled e2m1 values.
Result<float> global_factor(const PackedMatrix& m) {
  const float number = m.global_scale.name.empty() ? 1 : number_at(m.global_scale, 0);
  const float factor = (m.global_divides ? 1 / number : number) / 2;
  if (!(std::isfinite(factor) && factor > 0))
    return failure(ErrorCode::corrupt, "tensor {} is {}", m.global_scale.name, number);
  return factor;
}

}  // namespace

Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool) {
  const PackedMatrix& m = *tensor.packed;
  const std::int64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const bool exponents = m.scales.format == "U8" || m.scales.format == "F8_E8M0";
  // kCodeValues has doubled e2m1 values, so mxfp4 scales are halved.
  const int exponent_of_one = tensor.encoding == Encoding::mxfp4 ? 128 : 127;
  const bool nvfp4 = tensor.encoding == Encoding::mxfp4 && m.scales.format == "F8_E4M3";
  float factor = 1;
  if (nvfp4) {
    TRY(factor, global_factor(m));
  } else if (!exponents) {
    TRY_VOID(check_finite(m.scales, pool));
  }
  TRY(const ColumnGroups columns, column_groups(m, cols));
  const std::int64_t groups = std::ssize(columns.group);
  const bool with_zeros = !m.zeros.name.empty();
  QuantizedMatrix out;
  TRY(out.codes, allocate_host(static_cast<std::size_t>(rows * cols)));
  out.scales.resize(static_cast<std::size_t>(rows * groups));
  if (with_zeros) out.zeros.resize(out.scales.size());
  std::atomic<int> bad_zero = 0;
  std::atomic<bool> nan = false, nan_scale = false;
  auto* const codes = static_cast<std::uint8_t*>(out.codes.data());
  unpack_codes(m, rows, cols, codes, pool);
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::span of_row(codes + row * cols, static_cast<std::size_t>(cols));
      if (tensor.encoding == Encoding::fp8 && any_nan(of_row)) nan = true;
      for (std::int64_t i = 0; i < groups; ++i) {
        const std::int64_t group = columns.group[static_cast<std::size_t>(i)];
        const auto index = static_cast<std::size_t>(row * groups + i);
        const std::int64_t scale = m.scale_at(row, group);
        if (exponents) {
          const int exponent = std::to_integer<int>(m.scales.bytes[static_cast<std::size_t>(scale)]);
          if (exponent == kNanExponent) nan_scale = true;
          out.scales[index] = std::ldexp(1.0F, exponent - exponent_of_one);
        } else if (nvfp4) {
          const Float8E4M3 number{
              std::to_integer<std::uint8_t>(m.scales.bytes[static_cast<std::size_t>(scale)])};
          out.scales[index] = to_f32(number) * factor;
          if (std::isnan(out.scales[index])) nan_scale = true;
        } else {
          out.scales[index] = number_at(m.scales, scale);
        }
        if (!with_zeros) continue;
        const int zero = m.zero_items.at(m.zeros.bytes, m.scale_row(row), group);
        out.zeros[index] = static_cast<std::uint8_t>(zero);
        if (zero < 0 || zero > 255) bad_zero = zero;
      }
    }
  });
  if (nan_scale) return failure(ErrorCode::corrupt, "tensor {} contains NaN", m.scales.name);
  if (nan) return failure(ErrorCode::corrupt, "tensor {} contains NaN in fp8", m.codes.name);
  if (bad_zero != 0)
    return failure(ErrorCode::corrupt, "tensor {} has a zero point of {}, but it must be in [0, 255]",
                   m.zeros.name, bad_zero.load());
  out.set_part(tensor.encoding, rows, cols);
  return out;
}

}  // namespace octavo
