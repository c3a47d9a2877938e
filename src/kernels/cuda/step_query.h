// Finds the sequence of a query, for kernels that process each query separately.
#pragma once

#include "kernels/cuda/gpu.h"

namespace octavo::cuda {

// A query of the step: its sequence, and the number of tokens up to and including the query's own token. 0:
// the query is padding.
struct StepQuery {
  std::int64_t sequence, tokens = 0;

  __device__ StepQuery(const SequenceTables& sequences, std::int64_t count, std::int64_t query) {
    std::int64_t low = 0, high = count;  // finds the last sequence that begins at or before the query
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (sequences.query_starts[middle] <= query ? low : high) = middle;
    }
    sequence = low;
    if (query < sequences.query_starts[low + 1])
      tokens = sequences.lengths[low] - (sequences.query_starts[low + 1] - query) + 1;
  }
};

}  // namespace octavo::cuda
