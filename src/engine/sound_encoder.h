// From log-mel spectrograms to the keys and values that the layers of a language model read of them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv_memory.h"
#include "engine/sound_tower.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

// One sound at a time, so that its rows do not depend on others. What the layers keep of it lies in a place
// of its own until another takes the place: a sequence computes none of it again, whatever happens to the
// sequence. For devices that share the host's memory.
class SoundEncoder {
 public:
  // layout: of the model's own keys and values; a step has at most so many tokens and sequences. Model and
  // backend live longer. Errors: not enough memory, heads that the backend cannot compute.
  static Result<std::unique_ptr<SoundEncoder>> create(const Model& model, const CacheLayout& layout,
                                                      Backend& backend, int max_tokens, int max_sequences);

  std::int64_t place_bytes() const;
  // Once. Error: not enough memory.
  Result<> allocate_places(std::int64_t places);

  // spectrogram: ImagePart::pixels of a sound.
  void encode(int place, std::string_view spectrogram);

  // The next step: sequence s has tokens [query_starts[s], query_starts[s + 1]) and the sound in places[s].
  void plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> places);
  // As planned.
  CrossBatch batch() const { return {.plan = cross_plan_.get(), .cache = places_.layers()}; }

 private:
  SoundEncoder(const Model& model, const CacheLayout& layout, Backend& backend);
  Result<> allocate(int max_tokens, int max_sequences);
  void keep(int place, const View& rows);

  const Model& model_;
  const int rows_;  // of a sound
  Backend& backend_;
  std::unique_ptr<SoundTower> tower_;

  CacheLayout cross_layout_;
  std::int64_t blocks_each_;  // of a place
  KvMemory places_;
  std::unique_ptr<AttentionPlan> cross_plan_;
  std::vector<std::int32_t> cross_lengths_, cross_tables_;  // of the step

  Buffer positions_, slots_, scratch_;
};

}  // namespace octavo
