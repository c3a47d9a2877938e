// Quantised matrices of Hugging Face checkpoints: GPTQ, AWQ, compressed-tensors, fp8, mxfp4 and ModelOpt.
// Each is some tensors of a file: codes, scales, and maybe zeros and the groups of the columns. Also MXFP4 of
// GGUF files, whose one tensor has codes and scales in turn.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "weights/quantize.h"
#include "weights/stored_tensor.h"

namespace octavo {

enum class Packing : std::uint8_t { none, gptq, awq, compressed_tensors, fp8, mxfp4, modelopt };

// What config.json says of the packed matrices; the shapes of the tensors say the rest. Which matrices are
// packed, the tensors' names and formats say: plain ones may stand beside them.
struct PackedFormat {
  Packing packing = Packing::none;
  int bits = 4;                 // gptq: 4 or 8; awq: 4
  std::int64_t group = 0;       // gptq, awq: columns that share a scale; 0: all of a row
  int zero_offset = 0;          // gptq: stored zeros lack it (1 in the first version of the format)
  std::int64_t block_rows = 0;  // fp8, compressed-tensors: rows and columns of the blocks that share a scale;
  std::int64_t block_cols = 0;  // 0: there are no such blocks
};

// A matrix of small integers, `together` (a power of two) of them side by side along the columns or along the
// rows. Each group of them is one 32-bit word, little end first, or one byte.
struct PackedItems {
  int bits = 8;
  bool is_signed = false;  // two's complement; of 8 bits
  int offset = 0;          // what is added to an item, so that it counts from 0
  std::int64_t together = 1;
  bool along_rows = false;        // those of a group are of consecutive rows
  std::int64_t group_stride = 1;  // from group to group, in items
  std::int64_t other_stride = 1;  // along the other dimension, in items
  bool awq_order = false;         // the eight of a group come as 0 2 4 6 1 3 5 7
  // Of 4 bits: for each kBlockColumns columns a byte that is no code, and a byte for each column of the first
  // half, whose high half is of the column that comes kBlockColumns / 2 behind it.
  bool in_blocks = false;

  static constexpr std::int64_t kBlockColumns = 32;
  static constexpr std::int64_t kBlockBytes = 1 + kBlockColumns / 2;

  // Where in its group an item lies.
  std::int64_t place(std::int64_t in_group) const {
    constexpr std::uint8_t kAwqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return awq_order ? kAwqPlaces[in_group] : in_group;
  }

  int at(std::span<const std::byte> bytes, std::int64_t row, std::int64_t col) const {
    const std::int64_t along = along_rows ? row : col, other = along_rows ? col : row;
    const std::int64_t in_group = along & (together - 1);
    const std::int64_t group = along >> std::countr_zero(static_cast<std::uint64_t>(together));
    const std::int64_t in_block = col % kBlockColumns, half = kBlockColumns / 2;
    const std::int64_t item = in_blocks ? row * other_stride +
                                              2 * (col / kBlockColumns * kBlockBytes + 1 + in_block % half) +
                                              in_block / half
                                        : group * group_stride + other * other_stride + place(in_group);
    const int byte = std::to_integer<int>(bytes[static_cast<std::size_t>(item * bits / 8)]);
    const int raw = byte >> item * bits % 8 & ((1 << bits) - 1);
    return (is_signed && raw > 127 ? raw - 256 : raw) + offset;
  }
};

// The tensors of one matrix. A tensor without a name is not there.
struct PackedMatrix {
  StoredTensor codes, scales, zeros, group_index;
  PackedItems code_items, zero_items;
  // Scale (and zero) of a number: of group column / scale_cols, or group_index[column] where that is there.
  // The scale of row r and group g is number r / scale_rows * scale_row_stride + g * scale_group_stride.
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t scale_row_stride = 1, scale_group_stride = 1;
  // Of NVFP4, one number: the scales, in e4m3, count that many times or, where it divides, so much less.
  StoredTensor global_scale = {};
  bool global_divides = false;
};

// Puts one tensor, [rows, cols] or a stack of such in int4, int8 or fp8 and named as the plain matrix would
// be, in the place of those of each packed matrix. Leaves out scales of activations and of the KV cache,
// which the engine finds itself. Errors: corrupt or unsupported, naming a tensor that is missing or whose
// shape or format is wrong.
Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format);

// The matrix, or stack of such, that a tensor in MXFP4 of a GGUF file is, whose `bytes` are the file's.
StoredTensor matrix_of_blocks(const StoredTensor& tensor);

// The codes, scales and zeros of a packed matrix. A row has as many groups as its scales ask for; with groups
// in any order (GPTQ's act-order) each column is a group of its own. Errors: corrupt, naming the tensor, for
// NaN and infinity, a zero point above 255, a group that is not there.
Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool);

// Of all tensors of the matrix; of any other tensor its own.
std::size_t stored_bytes(const StoredTensor& tensor);

}  // namespace octavo
