// Runs a sound encoder, which consists of two convolutions followed by layers, on a log-mel spectrogram.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/media/sequence_layers.h"

namespace octavo {

// Runs one sound at a time, so that its rows do not depend on other sounds.
class SoundTower {
 public:
  // `tower` is Model::tower. `tower` and `backend` must outlive this object. Returns an error if there is
  // not enough memory, or if the backend does not support the size of the heads.
  static Result<std::unique_ptr<SoundTower>> create(const Model& tower, Backend& backend);

  // Starts a sound, and cancels an unfinished one. `spectrogram` is MediaPart::bytes of the sound. Computes
  // only the first `rows` encoder rows, which all attend to each other.
  void begin(std::string_view spectrogram, int rows);
  // Runs the next layers: at most `rows` rows in total, but at least one layer. Returns true when all
  // layers have run.
  bool advance(int rows) { return layers_->advance(rows); }
  // Returns the decoder, which has the output of the layers. The next stage of the encoder reads it.
  Decoder& decoder() { return layers_->decoder(); }

 private:
  SoundTower(const Model& tower, Backend& backend);
  Result<> allocate();
  View upload_mels(std::string_view spectrogram, std::int64_t count);
  void convolve(const LinearParameter& w, const View& frames, std::int64_t step, const View& out);

  const Model& tower_;
  const SoundInput input_;
  Backend& backend_;

  std::unique_ptr<SequenceLayers> layers_;
  std::vector<std::byte> host_mels_;  // act [frames + 2, mels]: the sound between two frames of zeros
  Buffer mels_;                       // the same
  Buffer products_;                   // act [frames, dim]
  Buffer features_;                   // act [1 + frames, dim], after the activation: the first frame is zero
};

}  // namespace octavo
