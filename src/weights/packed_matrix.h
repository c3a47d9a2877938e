// Quantised matrices of Hugging Face checkpoints: GPTQ, AWQ, compressed-tensors, fp8, mxfp4 and ModelOpt. A
// matrix consists of several tensors: codes, scales, and optionally zero points and the group of each column.
// Also handles MXFP4 and NVFP4 in GGUF files, where one tensor interleaves codes and scales.
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

// Rounding of activations to fp8 in products with a checkpoint's fp8 matrices. With `row`, each row of
// activations has a scale. With `block`, each row has a scale for each PackedFormat::block_cols columns. With
// `stored`, the checkpoint has a scale for each matrix.
enum class ActivationScheme : std::uint8_t { none, row, block, stored };

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
  ActivationScheme activations = ActivationScheme::none;
};

// Blocks of MXFP4 and NVFP4 in GGUF files: `parts` bytes, which are the scales of the parts, then the parts.
// The lower half of byte i of a part is column i, the upper half is column i + columns / 2.
struct ItemBlocks {
  std::int64_t parts = 0;    // 0: the matrix has no blocks
  std::int64_t columns = 0;  // columns of a part
  std::int64_t bytes() const { return parts + parts * columns / 2; }

  // Returns the offset in a row of the byte with the scale of part `part` of the row.
  std::int64_t scale_at(std::int64_t part) const { return part / parts * bytes() + part % parts; }
  // Returns the offset in a row of the first byte of a part.
  std::int64_t codes_at(std::int64_t part) const {
    return part / parts * bytes() + parts + part % parts * columns / 2;
  }
};
inline constexpr ItemBlocks kMxfp4Blocks{.parts = 1, .columns = 32}, kNvfp4Blocks{.parts = 4, .columns = 16};

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
  ItemBlocks blocks = {};

  // Returns the position of an item within its word.
  std::int64_t position(std::int64_t in_group) const {
    constexpr std::uint8_t kAwqPositions[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return awq_order ? kAwqPositions[in_group] : in_group;
  }

  int at(std::span<const std::byte> bytes, std::int64_t row, std::int64_t col) const {
    const std::int64_t along = along_rows ? row : col, other = along_rows ? col : row;
    const std::int64_t in_group = along & (together - 1);
    const std::int64_t group = along >> std::countr_zero(static_cast<std::uint64_t>(together));
    std::int64_t item = group * group_stride + other * other_stride + position(in_group);
    if (blocks.parts > 0) {
      const std::int64_t in_part = col % blocks.columns, half = blocks.columns / 2;
      item =
          row * other_stride + 2 * (blocks.codes_at(col / blocks.columns) + in_part % half) + in_part / half;
    }
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
  // scale_group_stride, or in its block.
  std::int64_t scale_rows = 1, scale_cols = 1;
  std::int64_t scale_row_stride = 1, scale_group_stride = 1;
  // if not 0, blocks of rows start anew after each chunk of this number of rows
  std::int64_t chunk_rows = 0;
  // NVFP4: one scale for the whole matrix, or for each matrix of a stack. All e4m3 scales are multiplied by
  // it, or divided if global_divides. GGUF files may lack it.
  StoredTensor global_scale = {};
  bool global_divides = false;
  // Only for fp8: how products round activations, the columns that share a scale (block), and the scale
  // (stored; files may lack it).
  ActivationScheme activations = ActivationScheme::none;
  std::int64_t activation_cols = 0;
  StoredTensor input_scale = {};

  std::int64_t scale_row(std::int64_t row) const {
    if (chunk_rows == 0) return row / scale_rows;
    return row / chunk_rows * ((chunk_rows + scale_rows - 1) / scale_rows) + row % chunk_rows / scale_rows;
  }
  // Returns the index of the scale of a group.
  std::int64_t scale_at(std::int64_t row, std::int64_t group) const {
    const ItemBlocks& blocks = code_items.blocks;
    return scale_row(row) * scale_row_stride +
           (blocks.parts > 0 ? blocks.scale_at(group) : group * scale_group_stride);
  }
};

// Replaces the tensors of each packed matrix by one tensor [rows, cols], or a stack of such tensors, with
// encoding int4, int8, fp8 or mxfp4 and the name of the plain matrix. Removes the scales of activations and
// of the KV cache; matrices in fp8 keep the former as PackedMatrix::input_scale. Errors: corrupt or
// unsupported; the message names the tensor that is missing or has a wrong shape or format.
Result<std::vector<StoredTensor>> join_packed(std::vector<StoredTensor> tensors, const PackedFormat& format);

// Returns the codes, scales and zero points of a packed matrix. A row has one group per scale. If groups are
// not in column order (GPTQ's act-order), each column becomes a group. Errors: corrupt for NaN, infinity, a
// zero point above 255, or an invalid group; the message names the tensor.
Result<QuantizedMatrix> unpack(const StoredTensor& tensor, ThreadPool& pool);

// Size in bytes of a tensor in the file, including the scales and zero points of a packed matrix.
std::size_t stored_bytes(const StoredTensor& tensor);

}  // namespace octavo
