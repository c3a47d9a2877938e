// Interface of encoders that turn an image or a sound into rows that are the input of the language model.
#pragma once

#include <optional>

#include "base/error.h"
#include "request/media_part.h"
#include "tensor/buffer.h"

namespace octavo {

// Encodes one part at a time, so that its rows do not depend on other parts. It works in slices, so that
// steps can run in between.
class RowEncoder {
 public:
  virtual ~RowEncoder() = default;

  // Starts to encode a part, and cancels an unfinished part. Returns an error if there is not enough
  // memory.
  virtual Result<> begin(const MediaPart& part) = 0;
  // Computes the next slice of about `rows` rows, summed over the layers of the encoder. The last slice
  // returns f32 [tokens, row_bytes() / 4], and earlier slices return nullopt. The bits of the result do not
  // depend on the slices.
  virtual std::optional<Buffer> advance(int rows) = 0;

  virtual std::int64_t row_bytes() const = 0;
  // Returns the bytes that still have to be allocated for a part of at most tokens_max tokens.
  virtual std::int64_t later_bytes(int tokens_max) const = 0;

  View rows_of(const Buffer& encoded) const {
    return encoded.view(DType::f32,
                        {static_cast<std::int64_t>(encoded.bytes()) / row_bytes(), row_bytes() / 4});
  }
};

}  // namespace octavo
