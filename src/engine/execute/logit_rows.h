// The rows for which one pass computes logits, or outputs of a pooling head. Contains the row numbers on
// the device, and the memory of the results.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops.h"
#include "sample/step_memory.h"

namespace octavo {

class LogitRows {
 public:
  // `columns` is the maximum length of a row. `adapters` is the number of slots of LoRA adapters; 0:
  // disabled. Returns an error if there is not enough memory.
  Result<> reserve(std::size_t rows, std::size_t columns, std::size_t adapters, Backend& backend);

  std::size_t most() const { return most_; }

  struct Uploaded {
    // by_adapter and adapter_starts are `numbers` and `starts` of LocalAdapters::Sorted.
    View rows, by_adapter, adapter_starts;
  };
  // Uploads the row numbers. The result is valid until the next call.
  Result<Uploaded> upload(Backend& backend, std::span<const std::int32_t> rows,
                          std::span<const std::int32_t> by_adapter = {},
                          std::span<const std::int32_t> adapter_starts = {});
  // f32 [rows, columns]
  View results(std::int64_t rows, std::int64_t columns) const {
    return results_.view(DType::f32, {rows, columns});
  }

 private:
  std::size_t most_ = 0;
  StepMemory numbers_;
  Buffer results_;
};

}  // namespace octavo
