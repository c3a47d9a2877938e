#include "engine/media/sound_rows.h"

#include "engine/media/ascending.h"

namespace octavo {

Result<std::unique_ptr<SoundRows>> SoundRows::create(const Model& tower, Backend& backend) {
  std::unique_ptr<SoundRows> rows(new SoundRows(tower, backend));
  TRY(rows->tower_, SoundTower::create(tower, backend));
  TRY(rows->starts_, ascending<std::int32_t>(rows->input_.tokens() + 1, backend, rows->input_.joined));
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
