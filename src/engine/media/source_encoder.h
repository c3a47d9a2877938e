// From sounds, or from prompts, to the keys and values that the layers of a language model read of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/media/sound_tower.h"
#include "request/media_part.h"

namespace octavo {

// One source at a time, so that its rows do not depend on others. What the layers keep of it lies in a place
// of its own until another takes the place: a sequence computes none of it again, whatever happens to the
// sequence. For devices that share the host's memory.
class SourceEncoder {
 public:
  // layout: of the model's own keys and values; a step has at most so many tokens and sequences. Model and
  // backend live longer. Errors: not enough memory, heads that the backend cannot compute.
  static Result<std::unique_ptr<SourceEncoder>> create(const Model& model, const CacheLayout& layout,
                                                       Backend& backend, int max_tokens, int max_sequences);

  std::int64_t place_bytes() const;
  // Once. Error: not enough memory.
  Result<> allocate_places(std::int64_t places);

  void encode(int place, const MediaPart& source);

  // The next step: sequence s has tokens [query_starts[s], query_starts[s + 1]) and the source in places[s].
  void plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> places);
  // As planned.
  CrossBatch batch() const { return {.plan = cross_plan_.get(), .cache = places_.layers()}; }

 private:
  SourceEncoder(const Model& model, const CacheLayout& layout, Backend& backend);
  Result<> allocate(int max_tokens, int max_sequences);
  void keep(int place, const View& rows);

  const Model& model_;
  const int rows_;  // of the longest source
  Backend& backend_;
  std::unique_ptr<SoundTower> sound_;     // one of
  std::unique_ptr<SequenceLayers> text_;  // these

  CacheLayout cross_layout_;
  std::int64_t blocks_each_;  // of a place
  KvMemory places_;
  std::vector<std::int32_t> lengths_;  // rows of the source in each place
  std::unique_ptr<AttentionPlan> cross_plan_;
  std::vector<std::int32_t> cross_lengths_, cross_tables_;  // of the step

  Buffer ids_, positions_, slots_, scratch_;
};

}  // namespace octavo
