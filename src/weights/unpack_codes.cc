// A word has codes of several rows or columns, so the result is assembled in blocks that fit into the L1
// cache. Memory accesses use complete cache lines, and a few shifts convert a word to bytes.
#include "weights/unpack_codes.h"

#include <algorithm>
#include <cstring>

namespace octavo {
namespace {

constexpr std::int64_t kBlockRows = 128;  // sixteen words of eight rows: one cache line
constexpr std::int64_t kBlockCols = 64;

struct Block {
  std::int64_t row, rows;
  std::int64_t col, cols;
  std::uint8_t* codes;  // [kBlockRows][kBlockCols]
};

// The words of a matrix. `group` is an index along the packed dimension, `other` along the unpacked one.
struct Words {
  const std::byte* bytes;
  std::int64_t group_stride, other_stride;  // bytes
  const std::byte* at(std::int64_t group, std::int64_t other) const {
    return bytes + group * group_stride + other * other_stride;
  }
};

Words words_of(const PackedMatrix& m) {
  const PackedItems& items = m.code_items;
  return {m.codes.bytes.data(), items.group_stride * items.bits / 8, items.other_stride * items.bits / 8};
}

using Bytes = std::uint8_t __attribute__((vector_size(16)));

// Unpacks four words with 4-bit items into 32 bytes at once, so that compilers can use vector instructions.
struct FourWords {
  explicit FourWords(const std::byte* words) {
    Bytes both;
    std::memcpy(&both, words, sizeof both);
    const Bytes low = both & 15, high = both >> 4;
    halves[0] = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    halves[1] =
        __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
  Bytes halves[2];
};

// Returns the items of a word as bytes, the lowest first: eight 4-bit items or four 8-bit items.
std::uint64_t items_of(const std::byte* word, int bits) {
  std::uint32_t all;
  std::memcpy(&all, word, sizeof all);
  std::uint64_t x = all;
  if (bits == 8) return x;
  x = (x | x << 16) & 0x0000ffff0000ffffu;
  x = (x | x << 8) & 0x00ff00ff00ff00ffu;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
}

constexpr std::int64_t kFour = 4;

// Unpacks consecutive words of a row. The last word may have more items than the row has columns; the block
// has space for them.
void words_of_row(const PackedItems& items, const Words& words, const Block& block, std::int64_t row) {
  const std::int64_t first = block.col / items.together,
                     groups = (block.cols + items.together - 1) / items.together;
  std::uint8_t* to = block.codes + row * kBlockCols;
  std::int64_t g = 0;
  for (; items.bits == 4 && g + kFour <= groups; g += kFour)
    std::memcpy(to + g * items.together, FourWords(words.at(first + g, block.row + row)).halves,
                2 * sizeof(Bytes));
  for (; g < groups; ++g) {
    const std::uint64_t codes = items_of(words.at(first + g, block.row + row), items.bits);
    std::memcpy(to + g * items.together, &codes, static_cast<std::size_t>(items.together));
  }
}

// Unpacks the words of neighbouring rows at one group of columns.
void words_of_columns(const PackedItems& items, const Words& words, const Block& block, std::int64_t col) {
  const std::int64_t group = (block.col + col) / items.together;
  std::uint8_t* to = block.codes + col;
  std::int64_t r = 0;
  for (; items.bits == 4 && r + kFour <= block.rows; r += kFour) {
    const FourWords four(words.at(group, block.row + r));
    for (std::int64_t i = 0; i < kFour; ++i)
      std::memcpy(to + (r + i) * kBlockCols,
                  reinterpret_cast<const std::byte*>(four.halves) + i * items.together, 8);
  }
  for (; r < block.rows; ++r) {
    const std::uint64_t codes = items_of(words.at(group, block.row + r), items.bits);
    std::memcpy(to + r * kBlockCols, &codes, static_cast<std::size_t>(items.together));
  }
}

void words_along_columns(const PackedMatrix& m, const Block& block) {
  const PackedItems& items = m.code_items;
  const Words words = words_of(m);
  if (items.group_stride == items.together) {
    for (std::int64_t row = 0; row < block.rows; ++row) words_of_row(items, words, block, row);
  } else {
    for (std::int64_t col = 0; col < block.cols; col += items.together)
      words_of_columns(items, words, block, col);
  }
}

// Transposes a matrix of 8 x 8 bytes in three steps ("Hacker's Delight", Warren, 2002).
void transpose(std::uint64_t (&x)[8]) {
  const auto swap = [&](int apart, int shift, std::uint64_t mask) {
    for (int i = 0; i < 8; ++i) {
      if ((i & apart) != 0) continue;
      const std::uint64_t both = ((x[i] >> shift) ^ x[i + apart]) & mask;
      x[i] ^= both << shift;
      x[i + apart] ^= both;
    }
  };
  swap(4, 32, 0x00000000ffffffffu);
  swap(2, 16, 0x0000ffff0000ffffu);
  swap(1, 8, 0x00ff00ff00ff00ffu);
}

// Unpacks AWQ's words, which contain eight rows. Converts eight columns at a time.
void words_along_rows(const PackedMatrix& m, const Block& block) {
  constexpr std::int64_t kEight = 8;
  const Words words = words_of(m);
  for (std::int64_t col = 0; col < block.cols; col += kEight)
    for (std::int64_t row = 0; row < block.rows; row += kEight) {
      std::uint64_t items[kEight] = {};
      for (std::int64_t c = 0; c < std::min(kEight, block.cols - col); ++c)
        items[c] = items_of(words.at((block.row + row) / kEight, block.col + col + c), 4);
      transpose(items);
      for (std::int64_t i = 0; i < kEight; ++i)
        std::memcpy(block.codes + (row + i) * kBlockCols + col, &items[m.code_items.position(i)], kEight);
    }
}

// std::ranges::transform has no bounds checks, so compilers can use vector instructions.
void copy_bytes(const PackedItems& items, std::span<const std::byte> from, std::uint8_t* codes) {
  const std::uint8_t flip = items.is_signed ? 0x80 : 0;  // converts two's complement to an offset of 128
  std::ranges::transform(from, codes, [flip](std::byte code) {
    return static_cast<std::uint8_t>(std::to_integer<std::uint8_t>(code) ^ flip);
  });
}

// Writes the two codes of each byte `apart` bytes apart, and the codes of the next byte `step` bytes later.
void split_bytes(std::span<const std::byte> from, std::int64_t step, std::int64_t apart,
                 std::uint8_t* codes) {
  for (const std::byte byte : from) {
    codes[0] = std::to_integer<std::uint8_t>(byte & std::byte{15});
    codes[apart] = std::to_integer<std::uint8_t>(byte >> 4);
    codes += step;
  }
}

void unpack_blocks(const PackedMatrix& m, std::int64_t rows, std::int64_t cols, std::uint8_t* codes,
                   ThreadPool& pool) {
  const ItemBlocks& blocks = m.code_items.blocks;
  const std::int64_t parts = cols / blocks.columns, half = blocks.columns / 2;
  // A row consists of complete blocks, so the parts of all rows are numbered together.
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin * parts; part < end * parts; ++part)
      split_bytes(m.codes.bytes.subspan(static_cast<std::size_t>(blocks.codes_at(part)),
                                        static_cast<std::size_t>(half)),
                  1, half, codes + part * blocks.columns);
  });
}

void unpack_bytes(const PackedMatrix& m, std::int64_t rows, std::int64_t cols, std::uint8_t* codes,
                  ThreadPool& pool) {
  const PackedItems& items = m.code_items;
  const std::int64_t row_bytes = cols * items.bits / 8, stride = items.other_stride * items.bits / 8;
  pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto from =
          m.codes.bytes.subspan(static_cast<std::size_t>(row * stride), static_cast<std::size_t>(row_bytes));
      if (items.bits == 4)
        split_bytes(from, 2, 1, codes + row * cols);
      else
        copy_bytes(items, from, codes + row * cols);
    }
  });
}

}  // namespace

void unpack_codes(const PackedMatrix& m, std::int64_t rows, std::int64_t cols, std::uint8_t* codes,
                  ThreadPool& pool) {
  if (m.code_items.blocks.parts > 0) return unpack_blocks(m, rows, cols, codes, pool);
  if (m.code_items.together == 1) return unpack_bytes(m, rows, cols, codes, pool);
  pool.for_ranges((rows + kBlockRows - 1) / kBlockRows, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) std::uint8_t piece[kBlockRows * kBlockCols];
    for (std::int64_t row = begin * kBlockRows; row < std::min(end * kBlockRows, rows); row += kBlockRows)
      for (std::int64_t col = 0; col < cols; col += kBlockCols) {
        const Block block{row, std::min(kBlockRows, rows - row), col, std::min(kBlockCols, cols - col),
                          piece};
        (m.code_items.along_rows ? words_along_rows : words_along_columns)(m, block);
        for (std::int64_t r = 0; r < block.rows; ++r)
          std::memcpy(codes + (row + r) * cols + col, piece + r * kBlockCols,
                      static_cast<std::size_t>(block.cols));
      }
  });
}

}  // namespace octavo
