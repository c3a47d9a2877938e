// Runs a sound encoder: a log-mel spectrogram passes two convolutions and the layers.
#pragma once

#include <memory>
#include <string_view>

#include "engine/media/sequence_layers.h"

namespace octavo {

// Runs one sound at a time, so that its rows do not depend on other sounds. Only for devices that share the
// host's memory.
class SoundTower {
 public:
  // tower: Model::tower; tower and backend must live longer. Returns an error if memory does not suffice, or
  // if the backend does not support the size of the heads.
  static Result<std::unique_ptr<SoundTower>> create(const Model& tower, Backend& backend);

  // Begins a sound, and cancels an unfinished one. spectrogram: MediaPart::bytes of the sound. rows: number
  // of encoder rows to compute, from the first one on; they attend to each other. The remaining rows are not
  // computed.
  void begin(std::string_view spectrogram, int rows);
  // Runs the next layers, at most `rows` rows in total, but at least one layer. Returns true when all layers
  // have run.
  bool advance(int rows) { return layers_->advance(rows); }
  // Returns the decoder, which has the layers' output for the next stage.
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
