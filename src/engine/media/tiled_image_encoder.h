// Encodes an image that is divided into tiles to one grid of rows (ImageInput::tiled).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/media/image_encoder.h"
#include "engine/media/row_encoder.h"

namespace octavo {

// Encodes one tile after the other. The rows stay in host memory until the last tile is done.
class TiledImageEncoder final : public RowEncoder {
 public:
  // See ImageEncoder::create.
  static Result<std::unique_ptr<TiledImageEncoder>> create(const Model& tower, Backend& backend);

  Result<> begin(const MediaPart& image) override;
  std::optional<Buffer> advance(int rows) override;

  std::int64_t row_bytes() const override { return encoder_->row_bytes(); }
  std::int64_t later_bytes(int tokens_max) const override;

 private:
  TiledImageEncoder(const Model& tower, Backend& backend) : tower_(tower), backend_(backend) {}

  Result<> read_learned_rows();
  void begin_tile(Buffer rows);
  std::string tile(std::size_t index) const;
  std::vector<float> shrunk() const;
  std::vector<float> grid_rows() const;
  void join(const View& out) const;

  const Model& tower_;
  Backend& backend_;
  std::unique_ptr<ImageEncoder> encoder_;
  std::size_t row_ = 0;
  std::vector<float> newline_;    // [row]
  std::vector<float> separator_;  // [row]; used only with ImageInput::whole_last

  // The members below belong to the current image.
  MediaPart::Tiles grid_;
  std::string pixels_;
  // Number of encoded squares. The order is the whole image, then the tiles; with whole_last, the tiles
  // come first.
  std::size_t done_ = 0;
  std::vector<float> tiles_;  // [squares, side * side, row]
  Buffer encoded_;
};

// Resizes a grid [rows, columns, row] with the bilinear interpolation of torch.
std::vector<float> interpolated_rows(std::span<const float> grid, int rows, int columns, int out_rows,
                                     int out_columns);

}  // namespace octavo
