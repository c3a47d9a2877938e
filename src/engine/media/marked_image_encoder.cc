#include "engine/media/marked_image_encoder.h"

#include <numeric>
#include <vector>

#include "engine/media/tiled_image_encoder.h"
#include "model/inputs/media.h"

namespace octavo {

Result<std::unique_ptr<MarkedImageEncoder>> MarkedImageEncoder::create(const Model& tower, Backend& backend) {
  std::unique_ptr<MarkedImageEncoder> marked(new MarkedImageEncoder(tower, backend));
  TRY(marked->encoder_, ImageEncoder::create(tower, backend));
  return marked;
}

Result<> MarkedImageEncoder::begin(const MediaPart& image) {
  Device& device = *backend_.device;
  TRY(encoded_, device.allocate(static_cast<std::size_t>(image.tokens * row_bytes())));
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(image.tokens));
  std::iota(numbers.begin(), numbers.end(), 0);
  TRY(numbers_, device.allocate(numbers.size() * sizeof(std::int32_t)));
  device.upload(*backend_.stream, numbers_.view(DType::i32, {std::ssize(numbers)}), numbers.data());
  backend_.stream->synchronize();
  return encoder_->begin(image);
}

std::optional<Buffer> MarkedImageEncoder::advance(int rows) {
  const std::optional<Buffer> grid = encoder_->advance(rows);
  if (!grid) return std::nullopt;
  const Ops& ops = backend_.ops;
  Stream& stream = *backend_.stream;
  const View out = rows_of(encoded_), inner = encoder_->rows_of(*grid);
  const View numbers = numbers_.view(DType::i32, {out.size(0)});
  const Weight& marks = tower_.network.input<PatchInput>()->marks();
  ops.embed(stream, {.ids = numbers.rows(0, 1), .table = marks, .out = out.rows(0, 1)});
  ops.gather_rows(stream,
                  {.x = inner, .rows = numbers.rows(0, inner.size(0)), .out = out.rows(1, inner.size(0))});
  ops.embed(stream, {.ids = numbers.rows(1, 1), .table = marks, .out = out.rows(out.size(0) - 1, 1)});
  stream.synchronize();  // waits, because the memory of `grid` is freed
  return std::move(encoded_);
}

Result<std::unique_ptr<RowEncoder>> make_image_encoder(const Model& tower, Backend& backend) {
  const ImageInput& input = *tower.spec.inputs.image;
  if (input.tiled) return TiledImageEncoder::create(tower, backend);
  if (input.marks() > 0) return MarkedImageEncoder::create(tower, backend);
  return ImageEncoder::create(tower, backend);
}

}  // namespace octavo
