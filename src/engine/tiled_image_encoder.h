// From the tiles of an image to one grid of rows of the language model's input (ImageInput::tiled).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/image_encoder.h"
#include "engine/row_encoder.h"

namespace octavo {

// Tile by tile; their rows wait in the host's memory until the last one is there.
class TiledImageEncoder final : public RowEncoder {
 public:
  // As ImageEncoder::create.
  static Result<std::unique_ptr<TiledImageEncoder>> create(const Model& tower, Backend& backend);

  Result<> begin(const ImagePart& image) override;
  std::optional<Buffer> advance(int rows) override;

  std::int64_t row_bytes() const override { return encoder_->row_bytes(); }
  std::int64_t later_bytes(int tokens_max) const override;

 private:
  TiledImageEncoder(const Model& tower, Backend& backend) : tower_(tower), backend_(backend) {}

  std::string tile(std::size_t index) const;
  void join(const View& out) const;

  const Model& tower_;
  Backend& backend_;
  std::unique_ptr<ImageEncoder> encoder_;
  std::size_t row_ = 0;         // numbers of one
  std::vector<float> newline_;  // [row]

  // Of the image that has begun.
  ImagePart::Tiles grid_;
  std::string pixels_;
  std::size_t done_ = 0;      // tiles
  std::vector<float> tiles_;  // [tiles, side * side, row]
  Buffer encoded_;
};

// A grid of rows [rows, columns, row] with other numbers of them, each between the four that are nearest to
// its middle, as torch's bilinear interpolation has it.
std::vector<float> interpolated_rows(std::span<const float> grid, int rows, int columns, int out_rows,
                                     int out_columns);

}  // namespace octavo
