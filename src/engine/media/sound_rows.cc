#include "engine/media/sound_rows.h"

namespace octavo {

Result<std::unique_ptr<SoundRows>> SoundRows::create(const Model& tower, Backend& backend) {
  std::unique_ptr<SoundRows> rows(new SoundRows(tower, backend));
  TRY(rows->tower_, SoundTower::create(tower, backend));
  const std::int32_t tokens = rows->input_.tokens();
  TRY(rows->starts_, backend.device->allocate(static_cast<std::size_t>(tokens + 1) * sizeof(std::int32_t)));
  auto* const starts = static_cast<std::int32_t*>(rows->starts_.data());
  for (std::int32_t token = 0; token <= tokens; ++token) starts[token] = token * rows->input_.joined;
  return rows;
}

Result<> SoundRows::begin(const MediaPart& sound) {
  TRY(encoded_, backend_.device->allocate(static_cast<std::size_t>(sound.tokens * row_bytes())));
  tower_->begin(sound.bytes, sound.columns);
  return {};
}

std::optional<Buffer> SoundRows::advance(int rows) {
  if (!tower_->advance(rows)) return std::nullopt;
  const View out = rows_of(encoded_);
  tower_->decoder().project(0, out, starts_.view(DType::i32, {out.size(0) + 1}));
  return std::move(encoded_);
}

}  // namespace octavo
