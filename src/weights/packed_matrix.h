// Quantised matrices of Hugging Face checkpoints: GPTQ, AWQ, compressed-tensors, fp8, mxfp4 and ModelOpt.
// Each consists of several tensors: codes, scales, optionally zeros and the groups of the columns. Also MXFP4
// of GGUF files, where one tensor interleaves codes and scales.
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

// Description of the packed matrices in config.json; the tensors' shapes give the rest. Their names and
// formats show which matrices are packed: plain matrices may be in the same file.
struct PackedFormat {
  Packing packing = Packing::none;
  int bits = 4;                 // gptq: 4 or 8; awq: 4
  std::int64_t group = 0;       // gptq, awq: columns that share a scale; 0: the whole row
  int zero_offset = 0;          // gptq: added to stored zeros (1 in the first version of the format)
  std::int64_t block_rows = 0;  // fp8, compressed-tensors: rows and columns of the blocks that share a scale;
  std::int64_t block_cols = 0;  // 0: there are no such blocks
};

// A matrix of small integers. `together` (a power of two) neighbours along the columns or rows form a group:
// one little-endian 32-bit word or one byte.
struct PackedItems {
  int bits = 8;
  bool is_signed = false;  // 8-bit two's complement
  int offset = 0;          // added to an item, so that it counts from 0
  std::int64_t together = 1;
  bool along_rows = false;        // a group holds consecutive rows
  std::int64_t group_stride = 1;  // distance between groups, in items
  std::int64_t other_stride = 1;  // distance along the other dimension, in items
  bool awq_order = false;         // the eight items of a group are in the order 0 2 4 6 1 3 5 7
  // 4-bit blocks: for each kBlockColumns columns, one byte that is not a code, then one byte for each column
  // of the first half; its high half is the column kBlockColumns / 2 later.
  bool in_blocks = false;

  static constexpr std::int64_t kBlockColumns = 32;
  static constexpr std::int64_t kBlockBytes = 1 + kBlockColumns / 2;

  // Position of an item in its group.
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

// The tensors of one matrix. A missing tensor has no name.
struct PackedMatrix {
  StoredTensor codes, scales, zeros, group_index;
  PackedItems code_items, zero_items;
  // Scale and zero of a number: group column / scale_cols, or group_index[column] if it exists. The scale of
  // row r and group g has index r / scale_rows * scale_row_stride + g * scale_group_stride.
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t scale_row_stride = 1, scale_group_stride = 1;
  // NVFP4: one number that multiplies (or divides) the e4m3 scales.
  StoredTensor global_scale = {};
  bool global_divides = false;
};

// Replaces the tensors of each packed matrix by one tensor [rows, cols], or a stack of them, in int4, int8 or
// fp8, with the plain matrix's name. Drops scales of activations and of the KV cache, which the engine
// computes. Errors: corrupt or unsupported, naming a tensor that is missing or has a wrong shape or format.
Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format);

// Interprets an MXFP4 tensor of a GGUF file, whose `bytes` are the file's, as a matrix or stack of matrices.
StoredTensor matrix_of_blocks(const StoredTensor& tensor);

// The codes, scales and zeros of a packed matrix. A row has as many groups as it has scales; with unordered
// groups (GPTQ's act-order) each column becomes a group. Errors: corrupt, naming the tensor, for NaN and
// infinity, a zero point above 255, an invalid group.
Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool);

// Sum over all tensors of the matrix; for any other tensor, its size.
std::size_t stored_bytes(const StoredTensor& tensor);

}  // namespace octavo
