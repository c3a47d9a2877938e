// Runs a sound encoder: a log-mel spectrogram passes two convolutions and the layers.
#pragma once

#include <memory>
#include <string_view>

#include "engine/media/sequence_layers.h"

namespace octavo {

// Runs one sound at a time, so that its rows do not depend on other sounds. Only for devices that share
// the host's memory.
class SoundTower {
 public:
  // tower: Model::tower; it and the backend must live longer. Errors: not enough memory, or the backend
  // cannot compute the heads.
  static Result<std::unique_ptr<SoundTower>> create(const Model& tower, Backend& backend);

  // Begins a sound and drops an unfinished one. spectrogram: MediaPart::bytes of the sound. rows: number
  // of leading encoder rows to compute, which attend to each other; the other rows are dropped.
  void begin(std::string_view spectrogram, int rows);
  // Runs the next layers, at most `rows` rows in total, but at least one layer. True: all layers have run.
  bool advance(int rows) { return layers_->advance(rows); }
  // The decoder, which has the layers' output for the next stage.
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
  Buffer features_;  // act [frames, dim], after the activation
};

}  // namespace octavo
