// What makes rows of a language model's input of an image or a sound: the seam between the executor and the
// encoders.
#pragma once

#include <optional>

#include "base/error.h"
#include "request/media_part.h"
#include "tensor/buffer.h"

namespace octavo {

// One part at a time, so that its rows do not depend on others, in slices, so that steps come between.
class RowEncoder {
 public:
  virtual ~RowEncoder() = default;

  // Gives up what it has begun before. Error: not enough memory.
  virtual Result<> begin(const MediaPart& part) = 0;
  // The next slice, of so many rows of the encoder in its layers together, or few more: the rows are the same
  // bits however they are cut. With the last: f32 [tokens, row_bytes() / 4].
  virtual std::optional<Buffer> advance(int rows) = 0;

  virtual std::int64_t row_bytes() const = 0;
  // What the workspaces of the largest part take, of so many tokens at most, that is not taken yet.
  virtual std::int64_t later_bytes(int tokens_max) const = 0;

  View rows_of(const Buffer& encoded) const {
    return encoded.view(DType::f32,
                        {static_cast<std::int64_t>(encoded.bytes()) / row_bytes(), row_bytes() / 4});
  }
};

}  // namespace octavo
