// Computes addresses in device memory. All products are 64-bit, because a KV cache, a logits array or a
// weight may have more than 2^31 elements. The functions also run on the host, so that tests can check
// large addresses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/on_device.h"

namespace octavo::cuda {

// Returns the index of element (row, column) of a matrix whose rows are `stride` elements apart.
OCTAVO_HOST_DEVICE constexpr std::int64_t element_at(std::int64_t row, std::int64_t stride,
                                                     std::int64_t column) {
  return row * stride + column;
}

// Layout of a KV block, as in kv_exchange.h: [keys, values][kv_heads][block_size][head_dim]. If
// values_in_keys > 0, only keys are stored. If `scaled`, f32 scales [keys, values][kv_heads][block_size]
// follow. If entries cover several tokens (KvSpec::rate), block_size is the number of entries in a block.
struct KvLayout {
  std::int64_t stride_bytes;  // bytes between blocks
  int kv_heads;
  int head_dim;
  int block_size;
  int element_bytes;
  int values_in_keys = 0;
  int index_dim = 0;
  bool scaled = false;  // 8-bit numbers with a scale for each vector

  OCTAVO_HOST_DEVICE constexpr int score_dim() const { return head_dim - index_dim; }
  OCTAVO_HOST_DEVICE constexpr int value_dim() const {
    return values_in_keys > 0 ? values_in_keys : head_dim;
  }
  OCTAVO_HOST_DEVICE constexpr int parts() const { return values_in_keys > 0 ? 1 : 2; }

  // Returns the byte offset in the cache of a token's key (which = 0) or value (which = 1), for one head.
  OCTAVO_HOST_DEVICE constexpr std::int64_t vector(std::int64_t block, int which, std::int64_t head,
                                                   std::int64_t token) const {
    return block * stride_bytes + number_of(which, head, token) * head_dim * element_bytes;
  }
  // Returns the byte offset in the cache of the scale of vector(block, which, head, token).
  OCTAVO_HOST_DEVICE constexpr std::int64_t scale(std::int64_t block, int which, std::int64_t head,
                                                  std::int64_t token) const {
    return block * stride_bytes + vectors() * head_dim * element_bytes + number_of(which, head, token) * 4;
  }
  OCTAVO_HOST_DEVICE constexpr std::int64_t block_bytes() const {
    return vectors() * (std::int64_t{head_dim} * element_bytes + (scaled ? 4 : 0));
  }

 private:
  OCTAVO_HOST_DEVICE constexpr std::int64_t vectors() const {
    return std::int64_t{parts()} * kv_heads * block_size;
  }
  OCTAVO_HOST_DEVICE constexpr std::int64_t number_of(int which, std::int64_t head, std::int64_t token) const {
    const std::int64_t part = values_in_keys > 0 ? 0 : which;
    return (part * kv_heads + head) * block_size + token;
  }
};

// Returns the index of the first float of the partial attention state of a row for one piece. States are
// [kv_heads][rows][pieces], beginning at state first_state.
OCTAVO_HOST_DEVICE constexpr std::int64_t state_at(std::int64_t first_state, std::int64_t rows,
                                                   std::int64_t pieces, std::int64_t head, std::int64_t row,
                                                   std::int64_t piece, int head_dim) {
  return (first_state + (head * rows + row) * pieces + piece) * (head_dim + 2);
}

}  // namespace octavo::cuda
