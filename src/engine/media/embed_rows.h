// Encoder of prompts that are embeddings: their rows are the input of the first layer, so it only uploads
// them.
#pragma once

#include <optional>

#include "engine/media/row_encoder.h"
#include "kernels/ops.h"

namespace octavo {

class EmbedRows final : public RowEncoder {
 public:
  // `dim` is the number of values in a row. The backend must outlive this object.
  EmbedRows(Backend& backend, std::int64_t dim) : backend_(backend), dim_(dim) {}

  Result<> begin(const MediaPart& prompt) override;
  std::optional<Buffer> advance(int) override { return std::move(rows_); }

  std::int64_t row_bytes() const override { return std::int64_t{4} * dim_; }
  std::int64_t later_bytes(int) const override { return 0; }

 private:
  Backend& backend_;
  const std::int64_t dim_;
  Buffer rows_;
};

}  // namespace octavo
