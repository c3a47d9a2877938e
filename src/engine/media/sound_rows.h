// Turns log-mel spectrograms into rows of the language model's input.
#pragma once

#include <memory>
#include <optional>

#include "engine/media/row_encoder.h"
#include "engine/media/sound_tower.h"

namespace octavo {

// Joins several rows of the encoder into one row of the language model (SoundInput::joined), without the rows
// of the silence after the sound.
class SoundRows final : public RowEncoder {
 public:
  // tower: Model::tower; tower and backend must live longer. Returns an error if memory does not suffice, or
  // if the backend does not support the size of the heads.
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
