// Encodes images whose rows have a learned row before and after them (ImageInput::marks).
#pragma once

#include <memory>
#include <optional>

#include "engine/media/image_encoder.h"

namespace octavo {

class MarkedImageEncoder final : public RowEncoder {
 public:
  // See ImageEncoder::create.
  static Result<std::unique_ptr<MarkedImageEncoder>> create(const Model& tower, Backend& backend);

  Result<> begin(const MediaPart& image) override;
  std::optional<Buffer> advance(int rows) override;

  std::int64_t row_bytes() const override { return encoder_->row_bytes(); }
  std::int64_t later_bytes(int tokens_max) const override { return encoder_->later_bytes(tokens_max); }

 private:
  MarkedImageEncoder(const Model& tower, Backend& backend) : tower_(tower), backend_(backend) {}

  const Model& tower_;
  Backend& backend_;
  std::unique_ptr<ImageEncoder> encoder_;
  Buffer encoded_;  // rows of the current image
  Buffer numbers_;  // i32: 0, 1, .. up to the number of rows
};

// Makes the encoder that the network needs.
Result<std::unique_ptr<RowEncoder>> make_image_encoder(const Model& tower, Backend& backend);

}  // namespace octavo
