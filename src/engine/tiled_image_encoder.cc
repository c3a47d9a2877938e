#include "engine/tiled_image_encoder.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace octavo {
namespace {

struct Tap {
  std::size_t place;
  float weight;
};

// Which two of `size` places make the one at `place` of `out`, and how much each counts.
std::array<Tap, 2> taps(int place, int out, int size) {
  const float scale = static_cast<float>(size) / static_cast<float>(out);
  const float at = std::max(0.0F, (static_cast<float>(place) + 0.5F) * scale - 0.5F);
  const int first = std::min(static_cast<int>(at), size - 1), second = std::min(first + 1, size - 1);
  const float share = at - static_cast<float>(first);
  return {Tap{static_cast<std::size_t>(first), 1 - share}, Tap{static_cast<std::size_t>(second), share}};
}

}  // namespace

std::vector<float> interpolated_rows(std::span<const float> grid, int rows, int columns, int out_rows,
                                     int out_columns) {
  const auto across = static_cast<std::size_t>(columns);
  const std::size_t row = grid.size() / (static_cast<std::size_t>(rows) * across);
  std::vector<float> out(static_cast<std::size_t>(out_rows) * static_cast<std::size_t>(out_columns) * row);
  auto to = out.begin();
  for (int y = 0; y < out_rows; ++y)
    for (int x = 0; x < out_columns; ++x, to += static_cast<std::ptrdiff_t>(row))
      for (const Tap down : taps(y, out_rows, rows))
        for (const Tap right : taps(x, out_columns, columns)) {
          const auto from = grid.subspan((down.place * across + right.place) * row, row);
          const float weight = down.weight * right.weight;
          std::ranges::transform(from, std::span(to, row), to,
                                 [weight](float value, float sum) { return sum + value * weight; });
        }
  return out;
}

Result<std::unique_ptr<TiledImageEncoder>> TiledImageEncoder::create(const Model& tower, Backend& backend) {
  std::unique_ptr<TiledImageEncoder> encoder(new TiledImageEncoder(tower, backend));
  TRY(encoder->encoder_, ImageEncoder::create(tower, backend));
  const View newline = tower.network.newline.value;
  encoder->row_ = static_cast<std::size_t>(newline.elements());
  encoder->newline_.resize(encoder->row_);
  backend.device->download(*backend.stream, encoder->newline_.data(), newline);
  backend.stream->synchronize();
  return encoder;
}

std::int64_t TiledImageEncoder::later_bytes(int tokens_max) const {
  const int side = tower_.spec.image->side();
  return encoder_->later_bytes(std::min(tokens_max, side * side));
}

// What whole patches see of it.
std::string TiledImageEncoder::tile(std::size_t index) const {
  const ImageInput& input = *tower_.spec.image;
  const auto row = static_cast<std::size_t>(3 * input.image_size),
             seen = static_cast<std::size_t>(3 * input.side() * input.unit());
  const std::string_view all =
      std::string_view(pixels_).substr(index * row * static_cast<std::size_t>(input.image_size));
  std::string pixels;
  pixels.reserve(seen * seen / 3);
  for (std::size_t y = 0; y < seen / 3; ++y) pixels += all.substr(y * row, seen);
  return pixels;
}

Result<> TiledImageEncoder::begin(const ImagePart& image) {
  TRY(encoded_, backend_.device->allocate(static_cast<std::size_t>(image.tokens * row_bytes())));
  grid_ = image.tiles;
  pixels_ = image.pixels;
  done_ = 0;
  const auto side = static_cast<std::size_t>(tower_.spec.image->side());
  tiles_.resize(static_cast<std::size_t>(grid_.tiles()) * side * side * row_);
  return encoder_->begin({.pixels = tile(0)});
}

std::optional<Buffer> TiledImageEncoder::advance(int rows) {
  std::optional<Buffer> rows_of_tile = encoder_->advance(rows);
  if (!rows_of_tile) return std::nullopt;
  const View view = encoder_->rows_of(*rows_of_tile);
  backend_.device->download(*backend_.stream,
                            tiles_.data() + done_ * static_cast<std::size_t>(view.elements()), view);
  backend_.stream->synchronize();
  ++done_;
  if (done_ < static_cast<std::size_t>(grid_.tiles())) {
    encoder_->begin_next(tile(done_), *std::move(rows_of_tile));
    return std::nullopt;
  }
  join(rows_of(encoded_));
  return std::move(encoded_);
}

// The whole image, then the tiles' grid with the newline behind each of its rows.
void TiledImageEncoder::join(const View& out) const {
  const auto side = static_cast<std::size_t>(tower_.spec.image->side()), square = side * side * row_;
  const auto columns = static_cast<std::size_t>(grid_.columns);
  std::vector<float> grid;
  grid.reserve(static_cast<std::size_t>(grid_.rows) * columns * row_);
  for (int y = grid_.top; y < grid_.top + grid_.rows; ++y)
    for (int x = grid_.left; x < grid_.left + grid_.columns; ++x) {
      const std::size_t down = static_cast<std::size_t>(y), right = static_cast<std::size_t>(x);
      const std::size_t tile = 1 + down / side * static_cast<std::size_t>(grid_.tile_columns) + right / side;
      const float* const from = tiles_.data() + tile * square + (down % side * side + right % side) * row_;
      grid.insert(grid.end(), from, from + row_);
    }
  if (grid_.out_rows != grid_.rows || grid_.out_columns != grid_.columns)
    grid = interpolated_rows(grid, grid_.rows, grid_.columns, grid_.out_rows, grid_.out_columns);
  std::vector<float> all(tiles_.begin(), tiles_.begin() + static_cast<std::ptrdiff_t>(square));
  const auto line = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(grid_.out_columns) * row_);
  for (int y = 0; y < grid_.out_rows; ++y) {
    const auto from = grid.begin() + y * line;
    all.insert(all.end(), from, from + line);
    all.insert(all.end(), newline_.begin(), newline_.end());
  }
  backend_.device->upload(*backend_.stream, out, all.data());
  backend_.stream->synchronize();
}

}  // namespace octavo
