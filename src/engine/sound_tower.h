// Runs an encoder of sound: from a log-mel spectrogram, through two convolutions, to the rows of its layers.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/kv_memory.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

// One sound at a time, so that its rows do not depend on others. For devices that share the host's memory.
class SoundTower {
 public:
  // tower: Model::tower; it and the backend live longer. Errors: not enough memory, heads that the backend
  // cannot compute.
  static Result<std::unique_ptr<SoundTower>> create(const Model& tower, Backend& backend);

  // spectrogram: ImagePart::pixels of a sound; rows: that the encoder makes of its beginning and that see
  // each other, the others are left out. Gives up what it has begun before.
  void begin(std::string_view spectrogram, int rows);
  // Runs the next layers, as many as have so many rows together, one at least. Whether all have run.
  bool advance(int rows);
  // What has run, for what comes behind it.
  Decoder& decoder() { return *decoder_; }

 private:
  SoundTower(const Model& tower, Backend& backend);
  Result<> allocate();
  void convolve(const LinearParameter& w, const View& patches, const View& out);

  const Model& tower_;
  const SoundInput input_;
  Backend& backend_;

  CacheLayout layout_;
  KvMemory cache_;  // of one sound's rows
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // one a cache group
  std::vector<GroupBatch> groups_;
  std::vector<std::int32_t> starts_, lengths_, table_;
  ForwardBatch batch_;
  std::size_t layers_done_ = 0;

  Buffer patches_;   // act [frames, mels * taps], then [rows, dim * taps]
  Buffer products_;  // act [frames, dim]
  Buffer features_;  // the same, behind the activation
  Buffer positions_, slots_;
};

}  // namespace octavo
