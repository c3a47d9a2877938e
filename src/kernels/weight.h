// A matrix of a model, in the layout of one backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tensor/view.h"

namespace octavo {

// A matrix W [rows, cols] for y = x * W^T, so rows are outputs and cols are inputs. The backend that
// prepared it (Ops::prepare) defines the layout. A product reads the matrix once, for any batch size.
class Weight {
 public:
  virtual ~Weight() = default;
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DType activation() const { return activation_; }
  // number of bytes that one product reads
  std::size_t bytes() const { return bytes_; }

 protected:
  Weight(std::int64_t rows, std::int64_t cols, DType activation, std::size_t bytes)
      : rows_(rows), cols_(cols), activation_(activation), bytes_(bytes) {}

 private:
  std::int64_t rows_;
  std::int64_t cols_;
  DType activation_;
  std::size_t bytes_;
};

using WeightPtr = std::unique_ptr<const Weight>;

}  // namespace octavo
