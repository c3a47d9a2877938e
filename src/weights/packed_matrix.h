// Quantised matrices of Hugging Face checkpoints: GPTQ, AWQ, compressed-tensors, fp8, mxfp4 and ModelOpt. A
// matrix consists of several tensors: codes, scales, and optionally zero points and the group of each column.
// Also handles MXFP4 in GGUF files, where one tensor interleaves codes and scales.
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

// Description of packed matrices in config.json. Names and formats of the tensors decide which matrices are
// packed, because a file may also have plain matrices.
struct PackedFormat {
  Packing packing = Packing::none;
  int bits = 4;                 // gptq: 4 or 8; awq: 4
  std::int64_t group = 0;       // gptq, awq: number of columns that share a scale; 0: the whole row
  int zero_offset = 0;          // gptq: is added to stored zero points (1 in the first version of the format)
  // fp8, compressed-tensors: size of the blocks that share a scale; 0: no blocks
  std::int64_t block_rows = 0;
  std::int64_t block_cols = 0;
  // fp8: number of chunks of equal size in the rows of matrices called qkv_proj; 0: not in chunks. If a chunk
  // does not consist of complete blocks, its last block is smaller.
  std::int64_t qkv_chunks = 0;
};

// Describes how a matrix of small integers (items) is stored. A word is 32 bits, little-endian, or one
// byte. It has `together` consecutive items of a row or of a column; `together` is a power of two.
struct PackedItems {
  int bits = 8;
  bool is_signed = false;  // 8-bit two's complement
  int offset = 0;          // is added to an item: signed items become codes that start from 0
  std::int64_t together = 1;
  bool along_rows = false;        // the items of a word are consecutive rows, not consecutive columns
  std::int64_t group_stride = 1;  // number of items from a word to the next along the packed dimension
  // number of items from a row or column to the next in the unpacked dimension
  std::int64_t other_stride = 1;
  bool awq_order = false;  // the eight items of a word are in the order 0 2 4 6 1 3 5 7, from the lowest bits
  // GGUF's layout of 4-bit items, in blocks of kBlockColumns columns: a byte that is not a code, then
  // kBlockColumns / 2 bytes. The lower half of byte i is column i, the upper half is column i +
  // kBlockColumns / 2.
  bool in_blocks = false;

  static constexpr std::int64_t kBlockColumns = 32;
  static constexpr std::int64_t kBlockBytes = 1 + kBlockColumns / 2;

  // Returns the position of an item within its word.
  std::int64_t position(std::int64_t in_group) const {
    constexpr std::uint8_t kAwqPositions[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return awq_order ? kAwqPositions[in_group] : in_group;
  }

  int at(std::span<const std::byte> bytes, std::int64_t row, std::int64_t col) const {
    const std::int64_t along = along_rows ? row : col, other = along_rows ? col : row;
    const std::int64_t in_group = along & (together - 1);
    const std::int64_t group = along >> std::countr_zero(static_cast<std::uint64_t>(together));
    const std::int64_t in_block = col % kBlockColumns, half = kBlockColumns / 2;
    const std::int64_t item = in_blocks ? row * other_stride +
                                              2 * (col / kBlockColumns * kBlockBytes + 1 + in_block % half) +
                                              in_block / half
                                        : group * group_stride + other * other_stride + position(in_group);
    const int byte = std::to_integer<int>(bytes[static_cast<std::size_t>(item * bits / 8)]);
    const int raw = byte >> item * bits % 8 & ((1 << bits) - 1);
    return (is_signed && raw > 127 ? raw - 256 : raw) + offset;
  }
};

// The tensors of one matrix. A tensor that is missing has an empty name.
struct PackedMatrix {
  StoredTensor codes, scales, zeros, group_index;
  PackedItems code_items, zero_items;
  // The scale and zero point of an element belong to group column / scale_cols, or to group_index[column] if
  // that tensor exists. The scale of row r and group g is at index r / scale_rows * scale_row_stride + g *
  // scale_group_stride.
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t scale_row_stride = 1, scale_group_stride = 1;
  // if not 0, blocks of rows start anew after each chunk of this number of rows
  std::int64_t chunk_rows = 0;
  // NVFP4: one scale for the whole matrix. All e4m3 scales are multiplied by it, or divided if
  // global_divides.
  StoredTensor global_scale = {};
  bool global_divides = false;

  std::int64_t scale_row(std::int64_t row) const {
    if (chunk_rows == 0) return row / scale_rows;
    return row / chunk_rows * ((chunk_rows + scale_rows - 1) / scale_rows) + row % chunk_rows / scale_rows;
  }
};

// Replaces the tensors of each packed matrix by one tensor [rows, cols], or a stack of such tensors, with
// encoding int4, int8, fp8 or mxfp4 and the name of the plain matrix. Removes the scales of activations and
// of the KV cache, because the engine computes its own. Errors: corrupt or unsupported; the message names the
// tensor that is missing or has a wrong shape or format.
Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format);

// Converts an MXFP4 tensor of a GGUF file to a matrix or a stack of matrices. The result points into the
// file.
StoredTensor matrix_of_blocks(const StoredTensor& tensor);

// Returns the codes, scales and zero points of a packed matrix. A row has one group per scale. If groups are
// not in column order (GPTQ's act-order), each column becomes a group. Errors: corrupt for NaN, infinity, a
// zero point above 255, or an invalid group; the message names the tensor.
Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool);

// Size in bytes of a tensor in the file, including the scales and zero points of a packed matrix.
std::size_t stored_bytes(const StoredTensor& tensor);

}  // namespace octavo
