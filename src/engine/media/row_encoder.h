// Interface of encoders that turn an image or a sound into rows of the language model's input.
#pragma once

#include <optional>

#include "base/error.h"
#include "request/media_part.h"
#include "tensor/buffer.h"

namespace octavo {

// Encodes one part at a time, so that its rows do not depend on other parts. It works in slices; steps run
// between slices.
class RowEncoder {
 public:
  virtual ~RowEncoder() = default;

  // Begins a part, and cancels an unfinished one. Returns an error if memory does not suffice.
  virtual Result<> begin(const MediaPart& part) = 0;
  // Computes the next slice of about `rows` rows, summed over the encoder's layers. The bits of the result do
  // not depend on the slices. The last slice returns f32 [tokens, row_bytes() / 4].
  virtual std::optional<Buffer> advance(int rows) = 0;

  virtual std::int64_t row_bytes() const = 0;
  // Returns the bytes of workspaces that a part of at most tokens_max tokens still needs to allocate.
  virtual std::int64_t later_bytes(int tokens_max) const = 0;

  View rows_of(const Buffer& encoded) const {
    return encoded.view(DType::f32,
                        {static_cast<std::int64_t>(encoded.bytes()) / row_bytes(), row_bytes() / 4});
  }
};

}  // namespace octavo
