#include "engine/execute/local_media.h"

#include <algorithm>
#include <numeric>

#include "engine/media/embed_rows.h"
#include "engine/media/marked_image_encoder.h"
#include "engine/media/sound_rows.h"

namespace octavo {
namespace {

Result<std::unique_ptr<RowEncoder>> make_row_encoder(const Model& tower, Backend& backend) {
  if (tower.spec.inputs.sound) return SoundRows::create(tower, backend);
  return make_image_encoder(tower, backend);
}

}  // namespace

Result<std::unique_ptr<LocalMedia>> LocalMedia::create(const Model& model, const CacheLayout& layout,
                                                       Backend& backend, int max_tokens, int max_sequences) {
  if (!model.tower && !model.spec.has_cross()) return nullptr;
  std::unique_ptr<LocalMedia> media(new LocalMedia(backend));
  if (model.spec.has_cross()) {
    TRY(media->sources_, SourceEncoder::create(model, layout, backend, max_tokens, max_sequences));
  } else {
    TRY(media->rows_, make_row_encoder(*model.tower, backend));
  }
  return media;
}

std::unique_ptr<LocalMedia> LocalMedia::of_embeds(Backend& backend, std::int64_t dim) {
  std::unique_ptr<LocalMedia> media(new LocalMedia(backend));
  media->rows_ = std::make_unique<EmbedRows>(backend, dim);
  return media;
}

// An encoder input for cross attention (a sound or a prompt) is encoded completely in this call.
Result<> LocalMedia::begin_media(int slot, const MediaPart& part) {
  if (sources_) {
    sources_->encode(slot, part);
    return {};
  }
  begun_ = static_cast<std::size_t>(slot);
  return rows_->begin(part);
}

bool LocalMedia::advance_media(int rows) {
  if (sources_) return true;
  std::optional<Buffer> encoded = rows_->advance(rows);
  if (!encoded) return false;
  encoded_.resize(std::max(encoded_.size(), begun_ + 1));
  encoded_[begun_] = *std::move(encoded);
  return true;
}

// Waits for the stream, because a step in flight may still read the rows.
void LocalMedia::drop_media(int slot) {
  if (sources_) return;
  backend_.stream->synchronize();
  encoded_[static_cast<std::size_t>(slot)] = {};
}

std::int64_t LocalMedia::later_bytes(int max_model_len) const {
  if (!rows_) return 0;
  return image_tokens_max(max_model_len) * rows_->row_bytes() + rows_->later_bytes(max_model_len);
}

Result<> LocalMedia::allocate_sources(std::int64_t slots) {
  return sources_ ? sources_->allocate_slots(slots) : Result<>();
}

void LocalMedia::place(const Batch& batch, StepInputs& inputs) {
  step_.clear();
  if (batch.images.empty()) return;
  const std::span<std::int32_t> host = inputs.host(inputs.image_rows);
  const View device = inputs.device(inputs.image_rows);
  std::size_t used = 0;
  for (const Batch::Image& image : batch.images) {
    const auto numbers = host.subspan(used, static_cast<std::size_t>(image.count));
    std::iota(numbers.begin(), numbers.end(), 0);
    const View rows = rows_->rows_of(encoded_[static_cast<std::size_t>(image.slot)]);
    step_.push_back({.token = image.token,
                     .x = rows.rows(image.row, image.count),
                     .rows = device.rows(static_cast<std::int64_t>(used), image.count)});
    used += numbers.size();
  }
}

void LocalMedia::plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> sources,
                      bool recorded) {
  if (sources_) sources_->plan(query_starts, sources, recorded);
}

}  // namespace octavo
