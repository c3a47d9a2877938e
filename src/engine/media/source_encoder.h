// Encodes sounds or prompts for the cross attention of a language model. The code calls such an encoder
// input a source.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/media/sound_tower.h"
#include "request/media_part.h"

namespace octavo {

// Encodes one source at a time, so that its rows do not depend on other sources. The keys and values stay
// in a slot until the slot is reused, so a sequence never computes them again, even after preemption.
class SourceEncoder {
 public:
  // `layout` is the cache layout of the language model. max_tokens and max_sequences are the limits of a
  // step. `model` and `backend` must outlive this object. Returns an error if there is not enough memory,
  // or if the backend does not support the size of the heads.
  static Result<std::unique_ptr<SourceEncoder>> create(const Model& model, const CacheLayout& layout,
                                                       Backend& backend, int max_tokens, int max_sequences);

  std::int64_t slot_bytes() const;
  // Allocates the slots, and frees earlier ones. Before encode(), a slot has a source of the greatest length
  // with any values. Returns an error if there is not enough memory.
  Result<> allocate_slots(std::int64_t slots);

  void encode(int slot, const MediaPart& source);

  // Plans the cross attention of the next step. Sequence s has the tokens [query_starts[s], query_starts[s +
  // 1]) and the source in slot slots[s]. Sequences without a slot are padding and have no tokens. `recorded`:
  // see AttentionShape.
  void plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> slots, bool recorded);
  CrossBatch batch() const { return {.plan = cross_plan_.get(), .cache = slot_memory_.layers()}; }

 private:
  SourceEncoder(const Model& model, const CacheLayout& layout, Backend& backend);
  Result<> allocate(int max_tokens, int max_sequences);
  void keep(int slot, const View& rows);

  const Model& model_;
  const int rows_;  // length of the longest source
  Backend& backend_;
  std::unique_ptr<SoundTower> sound_;     // encoder of sounds; null: sources are prompts
  std::unique_ptr<SequenceLayers> text_;  // encoder of prompts; null: sources are sounds

  CacheLayout cross_layout_;
  std::int64_t blocks_each_;  // blocks per slot
  KvMemory slot_memory_;
  std::vector<std::int32_t> lengths_;  // [slot]: number of rows of the source
  std::unique_ptr<AttentionPlan> cross_plan_;
  std::vector<std::int32_t> cross_lengths_, cross_tables_;

  // ids of a prompt, and cache slots of the rows, in host memory and in the memory of the device
  std::vector<TokenId> host_ids_;
  std::vector<std::int64_t> host_slots_;
  Buffer ids_, positions_, slots_, scratch_;
};

}  // namespace octavo
