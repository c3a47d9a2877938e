// Runs the layers of an encoder on one sequence, a few layers at a time.
#pragma once

#include <memory>
#include <vector>

#include "engine/cache/kv_memory.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

// Runs one sequence at a time, so that its rows do not depend on other sequences.
class SequenceLayers {
 public:
  // `rows` is the length of the longest sequence. `model` and `backend` must outlive this object. Returns
  // an error if there is not enough memory, or if the backend does not support the size of the heads.
  static Result<std::unique_ptr<SequenceLayers>> create(const Model& model, int rows, Backend& backend);

  // Starts a sequence, and cancels an unfinished one. `input` has the ids or features of `rows` rows, which
  // all attend to each other. All other fields of `input` must be empty.
  void begin(std::int64_t rows, ForwardBatch input);
  // Runs the next layers: at most `rows` rows in total, but at least one layer. Returns true when all
  // layers have run.
  bool advance(int rows);
  // Returns the decoder, which has the output of the layers. The next stage of the encoder reads it.
  Decoder& decoder() { return *decoder_; }

 private:
  SequenceLayers(const Model& model, int rows, Backend& backend);
  Result<> allocate();

  const Model& model_;
  const int rows_;
  Backend& backend_;

  CacheLayout layout_;
  KvMemory cache_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;  // [cache group]
  std::vector<GroupBatch> groups_;
  std::vector<std::int32_t> starts_, lengths_, table_;
  ForwardBatch batch_;
  std::size_t layers_done_ = 0;
  Buffer positions_, slots_;
};

}  // namespace octavo
