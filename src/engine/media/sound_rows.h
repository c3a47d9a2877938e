// Encodes the log-mel spectrogram of a sound to rows that are the input of the language model.
#pragma once

#include <memory>
#include <optional>

#include "engine/media/row_encoder.h"
#include "engine/media/sound_tower.h"

namespace octavo {

// Joins each SoundInput::joined rows of the encoder to one row of the language model, and drops the rows of
// the silence after the sound.
class SoundRows final : public RowEncoder {
 public:
  // `tower` is Model::tower. `tower` and `backend` must outlive this object. Returns an error if there is
  // not enough memory, or if the backend does not support the size of the heads.
  static Result<std::unique_ptr<SoundRows>> create(const Model& tower, Backend& backend);

  Result<> begin(const MediaPart& sound) override;
  std::optional<Buffer> advance(int rows) override;

  std::int64_t row_bytes() const override { return std::int64_t{4} * input_.out_dim; }
  std::int64_t later_bytes(int) const override { return 0; }

 private:
  SoundRows(const Model& tower, Backend& backend) : input_(*tower.spec.inputs.sound), backend_(backend) {}

  const SoundInput input_;
  Backend& backend_;
  std::unique_ptr<SoundTower> tower_;
  Buffer starts_;  // i32 [tokens + 1]: first encoder row of each joined row
  Buffer encoded_;
};

}  // namespace octavo
