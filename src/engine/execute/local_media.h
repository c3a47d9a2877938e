// The encoded images, sounds and prompts in a LocalExecutor's memory, and the rows that the current step
// reads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/execute/batch.h"
#include "engine/execute/executor.h"
#include "engine/execute/step_inputs.h"
#include "engine/media/row_encoder.h"
#include "engine/media/source_encoder.h"
#include "model/step.h"

namespace octavo {

class LocalMedia final : public MediaEncoder {
 public:
  // Returns null if the model has no image or audio input and no cross attention. Returns the errors of the
  // encoders.
  static Result<std::unique_ptr<LocalMedia>> create(const Model& model, const CacheLayout& layout,
                                                    Backend& backend, int max_tokens, int max_sequences);
  static std::unique_ptr<LocalMedia> of_embeds(Backend& backend, std::int64_t dim);

  Result<> begin_media(int slot, const MediaPart& part) override;
  bool advance_media(int rows) override;
  void drop_media(int slot) override;

  std::int64_t later_bytes(int max_model_len) const;
  // Returns the bytes of keys and values of all layers for one encoder input; 0 without cross attention.
  std::int64_t source_bytes() const { return sources_ ? sources_->slot_bytes() : 0; }
  Result<> allocate_sources(std::int64_t slots);

  bool has_rows() const { return rows_ != nullptr; }
  // Finds the rows of the step's images, and writes their row numbers to `inputs`.
  void place(const Batch& batch, StepInputs& inputs);
  std::span<const ImageRows> images() const { return step_; }
  void plan(std::span<const std::int32_t> query_starts, std::span<const std::int32_t> sources, bool recorded);
  CrossBatch cross() const { return sources_ ? sources_->batch() : CrossBatch{}; }

 private:
  explicit LocalMedia(Backend& backend) : backend_(backend) {}

  Backend& backend_;
  std::unique_ptr<RowEncoder> rows_;        // null: prompts contain neither images nor sounds
  std::unique_ptr<SourceEncoder> sources_;  // null: the model has no cross attention
  std::vector<Buffer> encoded_;             // [slot]
  std::size_t begun_ = 0;                   // slot of the part that is being encoded
  std::vector<ImageRows> step_;
};

}  // namespace octavo
