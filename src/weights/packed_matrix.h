// Quantised matrices of Hugging Face checkpoints: GPTQ, AWQ, compressed-tensors, fp8, mxfp4 and ModelOpt.
// Each consists of several tensors: codes, scales, and optionally zeros and the columns' group indices. Also
// MXFP4 in GGUF files, where one tensor interleaves codes and scales.
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

// Description of the packed matrices in config.json. Names and formats of the tensors show which matrices are
// packed, because a file may also have plain matrices.
struct PackedFormat {
  Packing packing = Packing::none;
  int bits = 4;                 // gptq: 4 or 8; awq: 4
  std::int64_t group = 0;       // gptq, awq: columns that share a scale; 0: the whole row
  int zero_offset = 0;          // gptq: number added to stored zeros (1 in the first version of the format)
  std::int64_t block_rows = 0;  // fp8, compressed-tensors: rows and columns of the blocks that share a scale;
  std::int64_t block_cols = 0;  // 0: there are no such blocks
};

// A matrix of small integers. A group of `together` consecutive items (a power of two) along columns or rows
// is stored in one little-endian 32-bit word or in one byte.
struct PackedItems {
  int bits = 8;
  bool is_signed = false;  // 8-bit two's complement
  int offset = 0;          // number added to an item, so that values start from 0
  std::int64_t together = 1;
  bool along_rows = false;        // whether a group consists of consecutive rows
  std::int64_t group_stride = 1;  // distance between neighbouring groups, in items
  std::int64_t other_stride = 1;  // distance along the other dimension, in items
  bool awq_order = false;         // the eight items of a group are in the order 0 2 4 6 1 3 5 7
  // Whether items are in 4-bit blocks of kBlockColumns columns: one byte that is not a code, then one byte
  // for each column of the first half. The upper half of a byte is the code of the column kBlockColumns / 2
  // later.
  bool in_blocks = false;

  static constexpr std::int64_t kBlockColumns = 32;
  static constexpr std::int64_t kBlockBytes = 1 + kBlockColumns / 2;

  // Returns the position of an item within its group.
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

// Tensors of one matrix. A missing tensor has an empty name.
struct PackedMatrix {
  StoredTensor codes, scales, zeros, group_index;
  PackedItems code_items, zero_items;
  // The scale and zero of an element belong to group column / scale_cols, or group_index[column] if this
  // tensor exists. The scale of row r and group g has index r / scale_rows * scale_row_stride + g *
  // scale_group_stride.
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t scale_row_stride = 1, scale_group_stride = 1;
  // NVFP4: one number by which all e4m3 scales are multiplied (or divided).
  StoredTensor global_scale = {};
  bool global_divides = false;
};

// Replaces the tensors of each packed matrix by one tensor [rows, cols], or a stack of such tensors, in int4,
// int8 or fp8, with the name of the plain matrix. It removes the scales of activations and of the KV cache,
// which the engine computes itself. Returns corrupt or unsupported, with the tensor that is missing or has a
// wrong shape or format.
Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format);

// Converts an MXFP4 tensor of a GGUF file to a matrix or a stack of matrices, which points into the file.
StoredTensor matrix_of_blocks(const StoredTensor& tensor);

// Returns the codes, scales and zeros of a packed matrix. A row has one group for each scale; if the groups
// are not in column order (GPTQ's act-order), each column becomes a group. Errors: corrupt, with the tensor,
// for NaN, infinity, a zero point above 255, or an invalid group.
Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool);

// Size in bytes of all tensors of a packed matrix; of any other tensor, its size.
std::size_t stored_bytes(const StoredTensor& tensor);

}  // namespace octavo
