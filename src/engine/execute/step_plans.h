// The attention plans of a step, and the mapping from its tokens to sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/execute/batch.h"
#include "engine/execute/step_inputs.h"
#include "kernels/ops.h"
#include "model/decoder.h"
#include "model/model.h"

namespace octavo {

class StepPlans {
 public:
  static Result<StepPlans> create(const Model& model, const CacheLayout& layout, Backend& backend,
                                  int max_tokens, int max_sequences);

  // Plans the step. `size` is the number of sequences including padding sequences, which have no tokens; 0:
  // no padding.
  void plan(const Batch& batch, int size);
  // If the tokens of an image all attend to each other, plans the image as a separate sequence that ends
  // with the image.
  Result<> plan_wholes(const Batch& batch);

  // Returns the plan and the slots (from `inputs`) of each cache group. The result is valid until the next
  // call.
  std::span<const GroupBatch> groups(const StepInputs& inputs);
  std::span<const WholeSpan> wholes() const { return wholes_; }
  // Includes the padding sequences.
  const std::vector<std::int32_t>& query_starts() const { return query_starts_; }
  std::int64_t sequences() const { return std::ssize(lengths_); }
  // Returns the index of the token's sequence in the batch. id_of() returns the id of the sequence.
  std::size_t sequence_of(std::int32_t token) const;
  SequenceId id_of(std::int32_t token) const { return ids_[sequence_of(token)]; }

 private:
  StepPlans(const Model& model, const CacheLayout& layout, Backend& backend, int max_tokens);
  Result<> add_whole_plans();

  const Model& model_;
  const CacheLayout& layout_;
  Backend& backend_;
  const int max_tokens_;
  using Plans = std::vector<std::unique_ptr<AttentionPlan>>;  // [cache group]
  Plans plans_;
  // [image]: plans of the images whose tokens all attend to each other
  std::vector<Plans> whole_plans_;
  std::vector<WholeSpan> wholes_;
  std::vector<std::int32_t> query_starts_, lengths_;
  std::vector<SequenceId> ids_;
  std::vector<GroupBatch> groups_;
};

}  // namespace octavo
