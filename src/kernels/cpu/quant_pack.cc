// Converts quantised weights from the blocks of the checkpoint to panels. Starts and the first steps wait for
// it, so this code is as fast as memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/cpu/quant_weight.h"
#include "tensor/dequantize.h"

namespace octavo::cpu {
namespace {

// Number of groups that are written for all rows of a panel before the next groups, so that this part of
// the panel stays in the L1 cache. A multiple of the groups in each block of a GGUF file.
constexpr std::int64_t kTileGroups = 8;

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Writes rows to a panel of one QuantKind.
template <int kKind>
class Packer {
 public:
  Packer(const MatrixPart& part, const QuantLayout& layout, std::byte* panel)
      : part_(part), layout_(layout), panel_(panel) {}

  // Writes the groups [first, last) of a row. `at` is the row's index in the panel.
  void put_groups(std::int64_t row, std::int64_t at, std::int64_t first, std::int64_t last) const {
    const auto* bytes = part_.values.row<std::uint8_t>(row);
    if constexpr (kFormat.block_groups > 0) {
      bytes += first / kFormat.block_groups * block_file_bytes_;
      for (std::int64_t g = first; g < last; g += kFormat.block_groups, bytes += block_file_bytes_)
        put_block(bytes, at, panel_ + g / kFormat.block_groups * block_bytes_);
    } else {
      for (std::int64_t g = first; g < last; ++g) put_group(bytes, row, at, g);
    }
  }

 private:
  static constexpr QuantFormat kFormat = kQuantFormats[kKind];
  static constexpr int kLow = kFormat.low_bits, kHigh = kFormat.high_bits;

  // Writes a block of a GGUF file.
  void put_block(const std::uint8_t* bytes, std::int64_t at, std::byte* block) const {
    QuantBlock from;
    take_apart(part_.encoding, bytes, from);
    put(block + 2 * at, from.scale);
    if constexpr (kFormat.has_min()) put(block + 2 * (width_ + at), from.min);
    std::byte* group = block + header_bytes_;
    for (int g = 0; g < kFormat.block_groups; ++g, group += group_bytes_) {
      if constexpr (kFormat.two_levels()) put_scales(from, g * kFormat.subs, group + at);
      put_codes(from.codes.data() + g * kQuantGroup, at, group);
    }
  }

  // Writes the scales and mins of a group. `first` is the index of its first part in the block.
  void put_scales(const QuantBlock& from, int first, std::byte* to) const {
    for (int s = 0; s < kFormat.subs; ++s) {
      const auto i = static_cast<std::size_t>(first + s);
      if constexpr (kFormat.scales == QuantScales::nibbles_min) {
        put(to + s * width_, static_cast<std::uint8_t>(from.scales[i] | from.mins[i] << 4));
      } else {
        put(to + s * width_, from.scales[i]);
        if constexpr (kFormat.has_min()) put(to + (kFormat.subs + s) * width_, from.mins[i]);
      }
    }
  }

  // Writes a group of a matrix that has separate scales.
  void put_group(const std::uint8_t* codes, std::int64_t row, std::int64_t at, std::int64_t number) const {
    const std::int64_t of_block = number / layout_.block_groups, g = number % layout_.block_groups;
    std::byte* const block = panel_ + of_block * block_bytes_;
    std::byte* const group = block + header_bytes_ + g * group_bytes_;
    if constexpr (kFormat.scales == QuantScales::bf16_parts) {
      const float* scales = part_.scales.row<float>(row);
      for (std::int64_t s = 0; s < kFormat.subs; ++s)
        put(group + 2 * (s * width_ + at),
            to_bf16(scales[(number * kFormat.subs + s) * part_.scales.stride[1]]));
    } else if (g == 0) {
      put_header(row, of_block, at, block);
    }
    const std::int64_t column = number * kQuantGroup, count = layout_.cols - column;
    if (count >= kQuantGroup) return put_codes(codes + column, at, group);
    std::uint8_t padded[kQuantGroup] = {};
    std::copy_n(codes + column, count, padded);
    put_codes(padded, at, group);
  }

  void put_header(std::int64_t row, std::int64_t of_block, std::int64_t at, std::byte* block) const {
    const float scale = part_.scales.row<float>(row)[of_block * part_.scales.stride[1]];
    if constexpr (kFormat.scale_bytes() == 4)
      put(block + 4 * at, scale);
    else
      put(block + 2 * at, to_bf16(scale));
    if constexpr (kFormat.scales == QuantScales::f32_zero)
      put(block + 4 * width_ + at, part_.zeros.row<std::uint8_t>(row)[of_block * part_.zeros.stride[1]]);
  }

  void put_codes(const std::uint8_t* codes, std::int64_t at, std::byte* group) const {
    std::uint32_t units[kLow + kHigh] = {};
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step) {
      std::uint32_t quad;
      std::memcpy(&quad, codes + 4 * step, sizeof quad);
      units[step * kLow / 8] |= (quad & 0x01010101u * ((1u << kLow) - 1)) << step * kLow % 8;
      if constexpr (kHigh > 0)
        units[kLow + step * kHigh / 8] |= (quad >> kLow & 0x01010101u * ((1u << kHigh) - 1))
                                          << step * kHigh % 8;
    }
    group += width_ * kFormat.sub_bytes() + 4 * at;
#pragma GCC unroll 8
    for (int unit = 0; unit < kLow + kHigh; ++unit) put(group + 4 * unit * width_, units[unit]);
  }

  const MatrixPart& part_;
  const QuantLayout& layout_;
  std::byte* const panel_;
  const std::int64_t width_ = layout_.width;
  const std::int64_t header_bytes_ = layout_.header_bytes();
  const std::int64_t group_bytes_ = layout_.group_bytes();
  const std::int64_t block_bytes_ = layout_.block_bytes();
  const std::int64_t block_file_bytes_ = block_shape(part_.encoding).bytes;
};

// Writes rows [first, first + count) of `part`.
struct Rows {
  std::int64_t first, count;
  std::int64_t at;  // index of the first row in the panel
};

template <int kKind>
void pack(const MatrixPart& part, const Rows& rows, const QuantLayout& layout, std::byte* panel) {
  const Packer<kKind> packer(part, layout, panel);
  for (std::int64_t first = 0; first < layout.groups(); first += kTileGroups)
    for (std::int64_t i = 0; i < rows.count; ++i)
      packer.put_groups(rows.first + i, rows.at + i, first, std::min(first + kTileGroups, layout.groups()));
}

using Pack = void (*)(const MatrixPart&, const Rows&, const QuantLayout&, std::byte*);
// Index: QuantKind.
constexpr auto kPacks = []<int... kKinds>(std::integer_sequence<int, kKinds...>) {
  return std::array<Pack, kQuantKinds>{pack<kKinds>...};
}(std::make_integer_sequence<int, kQuantKinds>());

}  // namespace

void pack_rows(const MatrixPart& part, std::int64_t first, std::int64_t count, const QuantLayout& layout,
               std::int64_t panel_row, std::byte* panel) {
  kPacks[static_cast<std::size_t>(layout.kind)](part, {first, count, panel_row}, layout, panel);
}

}  // namespace octavo::cpu
