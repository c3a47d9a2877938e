// Runs an encoder of sound: from a log-mel spectrogram, through two convolutions, to the rows of its layers.
#pragma once

#include <memory>
#include <string_view>

#include "engine/media/sequence_layers.h"

namespace octavo {

// One sound at a time, so that its rows do not depend on others. For devices that share the host's memory.
class SoundTower {
 public:
  // tower: Model::tower; it and the backend live longer. Errors: not enough memory, heads that the backend
  // cannot compute.
  static Result<std::unique_ptr<SoundTower>> create(const Model& tower, Backend& backend);

  // spectrogram: MediaPart::bytes of a sound; rows: that the encoder makes of its beginning and that see
  // each other, the others are left out. Gives up what it has begun before.
  void begin(std::string_view spectrogram, int rows);
  // Runs the next layers, as many as have so many rows together, one at least. Whether all have run.
  bool advance(int rows) { return layers_->advance(rows); }
  // What has run, for what comes behind it.
  Decoder& decoder() { return layers_->decoder(); }

 private:
  SoundTower(const Model& tower, Backend& backend);
  Result<> allocate();
  void convolve(const LinearParameter& w, const View& patches, const View& out);

  const Model& tower_;
  const SoundInput input_;
  Backend& backend_;

  std::unique_ptr<SequenceLayers> layers_;
  Buffer patches_;   // act [frames, mels * taps], then [rows, dim * taps]
  Buffer products_;  // act [frames, dim]
  Buffer features_;  // the same, behind the activation
};

}  // namespace octavo
