#include "engine/media/tiled_image_encoder.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "media/resize.h"
#include "model/inputs/media.h"

namespace octavo {
namespace {

struct Tap {
  std::size_t number;
  float weight;
};

// Linear interpolation from `size` input positions to `out` output positions. Returns the two input
// positions that determine output position `number`, with their weights.
std::array<Tap, 2> taps(int number, int out, int size) {
  const float scale = static_cast<float>(size) / static_cast<float>(out);
  const float at = std::max(0.0F, (static_cast<float>(number) + 0.5F) * scale - 0.5F);
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
          const auto from = grid.subspan((down.number * across + right.number) * row, row);
          const float weight = down.weight * right.weight;
          std::ranges::transform(from, std::span(to, row), to,
                                 [weight](float value, float sum) { return sum + value * weight; });
        }
  return out;
}

Result<std::unique_ptr<TiledImageEncoder>> TiledImageEncoder::create(const Model& tower, Backend& backend) {
  std::unique_ptr<TiledImageEncoder> encoder(new TiledImageEncoder(tower, backend));
  TRY(encoder->encoder_, ImageEncoder::create(tower, backend));
  TRY_VOID(encoder->read_learned_rows());
  return encoder;
}

Result<> TiledImageEncoder::read_learned_rows() {
  const auto read = [&](const View& view) {
    std::vector<float> row(static_cast<std::size_t>(view.elements()));
    backend_.device->download(*backend_.stream, row.data(), view);
    backend_.stream->synchronize();
    return row;
  };
  const PatchInput& input = *tower_.network.input<PatchInput>();
  row_ = static_cast<std::size_t>(row_bytes() / 4);
  newline_ = read(input.newline());
  if (!tower_.spec.inputs.image->whole_last) return {};
  TRY(newline_, encoder_->projected(newline_));
  TRY(separator_, encoder_->projected(read(input.separator())));
  return {};
}

std::int64_t TiledImageEncoder::later_bytes(int tokens_max) const {
  const int side = tower_.spec.inputs.image->side();
  return encoder_->later_bytes(std::min(tokens_max, side * side));
}

// Returns the pixels of the tile, without the partial patches at its edges.
std::string TiledImageEncoder::tile(std::size_t index) const {
  const ImageInput& input = *tower_.spec.inputs.image;
  const auto row = static_cast<std::size_t>(3 * input.image_size),
             seen = static_cast<std::size_t>(3 * input.side() * input.unit());
  const std::string_view all =
      std::string_view(pixels_).substr(index * row * static_cast<std::size_t>(input.image_size));
  std::string pixels;
  pixels.reserve(seen * seen / 3);
  for (std::size_t y = 0; y < seen / 3; ++y) pixels += all.substr(y * row, seen);
  return pixels;
}

Result<> TiledImageEncoder::begin(const MediaPart& image) {
  TRY(encoded_, backend_.device->allocate(static_cast<std::size_t>(image.tokens * row_bytes())));
  grid_ = image.tiles;
  pixels_ = image.bytes;
  done_ = 0;
  const auto side = static_cast<std::size_t>(tower_.spec.inputs.image->side());
  tiles_.resize(static_cast<std::size_t>(grid_.tiles()) * side * side * row_);
  TRY(Buffer rows, backend_.device->allocate(side * side * static_cast<std::size_t>(row_bytes())));
  begin_tile(std::move(rows));
  return {};
}

void TiledImageEncoder::begin_tile(Buffer rows) {
  if (!tower_.spec.inputs.image->whole_last)
    return encoder_->begin_square({.bytes = tile(done_)}, std::move(rows));
  const int tile_side = tower_.spec.inputs.image->side() * tower_.spec.inputs.image->merge,
            index = static_cast<int>(done_);
  if (index == grid_.tiles() - 1) return encoder_->begin_square({.numbers = shrunk()}, std::move(rows));
  if (!tower_.spec.inputs.image->hides_padding)
    return encoder_->begin_square({.bytes = tile(done_)}, std::move(rows));
  const auto seen = [tile_side](int all, int number) {
    return std::min(tile_side, all - number * tile_side);
  };
  encoder_->begin_square({.bytes = tile(done_),
                          .seen_rows = seen(grid_.patch_rows, index / grid_.tile_columns),
                          .seen_columns = seen(grid_.patch_columns, index % grid_.tile_columns)},
                         std::move(rows));
}

std::vector<float> TiledImageEncoder::shrunk() const {
  const int size = tower_.spec.inputs.image->image_size;
  const auto bytes = static_cast<std::size_t>(3 * size * size);
  media::Image frame = media::plain(grid_.tile_columns * size, grid_.tile_rows * size, 0);
  for (int i = 0; i < grid_.tile_rows * grid_.tile_columns; ++i) {
    const auto from = pixels_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * bytes);
    media::paste({size, size, {from, from + static_cast<std::ptrdiff_t>(bytes)}},
                 i % grid_.tile_columns * size, i / grid_.tile_columns * size, frame);
  }
  return media::interpolate_bicubic(frame, size, size);
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
    begin_tile(*std::move(rows_of_tile));
    return std::nullopt;
  }
  join(rows_of(encoded_));
  return std::move(encoded_);
}

// Returns the token grid without padding, [out_rows, out_columns, row].
std::vector<float> TiledImageEncoder::grid_rows() const {
  const auto side = static_cast<std::size_t>(tower_.spec.inputs.image->side()), square = side * side * row_;
  const std::size_t first = tower_.spec.inputs.image->whole_last ? 0 : 1;
  std::vector<float> grid;
  grid.reserve(static_cast<std::size_t>(grid_.rows) * static_cast<std::size_t>(grid_.columns) * row_);
  for (int y = grid_.top; y < grid_.top + grid_.rows; ++y)
    for (int x = grid_.left; x < grid_.left + grid_.columns; ++x) {
      const std::size_t down = static_cast<std::size_t>(y), right = static_cast<std::size_t>(x);
      const std::size_t tile =
          first + down / side * static_cast<std::size_t>(grid_.tile_columns) + right / side;
      const float* const from = tiles_.data() + tile * square + (down % side * side + right % side) * row_;
      grid.insert(grid.end(), from, from + row_);
    }
  if (grid_.out_rows == grid_.rows && grid_.out_columns == grid_.columns) return grid;
  return interpolated_rows(grid, grid_.rows, grid_.columns, grid_.out_rows, grid_.out_columns);
}

// Writes the rows of the whole image, followed by the grid of the tiles with a newline row after each grid
// row. With whole_last, writes the grid first, then the separator, then the whole image with newline rows.
void TiledImageEncoder::join(const View& out) const {
  const auto side = static_cast<std::size_t>(tower_.spec.inputs.image->side());
  const std::size_t tiles = static_cast<std::size_t>(grid_.tiles()) - 1;
  std::vector<float> all;
  const auto add = [&all](std::span<const float> rows) { all.insert(all.end(), rows.begin(), rows.end()); };
  const auto add_lines = [&](std::span<const float> grid, std::size_t columns) {
    for (; !grid.empty(); grid = grid.subspan(columns * row_)) {
      add(grid.first(columns * row_));
      add(newline_);
    }
  };
  const bool whole_last = tower_.spec.inputs.image->whole_last;
  const std::size_t square = side * side * row_;
  const auto whole = std::span(tiles_).subspan(whole_last ? tiles * square : 0, square);
  if (!whole_last) add(whole);
  if (grid_.out_columns > 0) add_lines(grid_rows(), static_cast<std::size_t>(grid_.out_columns));
  if (whole_last) {
    add(separator_);
    add_lines(whole, side);
  }
  backend_.device->upload(*backend_.stream, out, all.data());
  backend_.stream->synchronize();
}

}  // namespace octavo
