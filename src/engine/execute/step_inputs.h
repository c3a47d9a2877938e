// Inputs of a step, in memory that host and device exchange. The addresses depend only on the number of
// tokens, so that CUDA graphs stay valid.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execute/batch.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "sample/step_memory.h"

namespace octavo {

class StepInputs {
 public:
  // Says which inputs the model reads.
  struct Shape {
    std::size_t groups = 0;
    bool types = false;
    bool axes = false;  // whether positions have several RoPE axes
    bool states = false;
    bool images = false;
    std::size_t adapters = 0;  // number of slots of LoRA adapters; 0: disabled
  };

  explicit StepInputs(const Shape& shape) : shape_(shape) { slots.resize(shape.groups); }

  // Places the arrays of a step with `tokens` tokens in memory. `pending` is the number of tokens that the
  // last step is still sampling. Returns an error if there is not enough memory.
  Result<> begin(std::size_t tokens, std::size_t pending, Backend& backend);
  // Writes the arrays of the batch. All padding tokens write to the cache slot `padding`, at the same time.
  // The slot must be in a block that no sequence has, so that nothing reads it.
  void pack(const Batch& batch, std::int64_t padding);
  // Recurrent layers only. `query_starts` includes padding sequences.
  void pack_states(const Batch& batch, std::span<const std::int32_t> query_starts);
  // `tokens` are sorted by adapter; see StepAdapters.
  void pack_adapters(std::span<const std::int32_t> tokens, std::span<const std::int32_t> starts);
  void upload(Backend& backend) { memory_.upload(*backend.device, *backend.stream); }

  template <class T>
  std::span<T> host(const Part<T>& part) {
    return memory_.host(part);
  }
  template <class T>
  View device(const Part<T>& part) const {
    return memory_.device(part);
  }
  // Returns the positions on each axis, [axes, tokens]. A text token has the same position on all axes.
  View axes_of(const Batch& batch) const;

  Part<std::int32_t> ids, positions, types;
  Part<std::int32_t> axes;                                     // [3, tokens]
  std::vector<Part<std::int64_t>> slots;                       // [cache group]
  Part<std::int32_t> state_slots, state_starts, state_copies;  // recurrent layers only
  Part<std::int32_t> pending_tokens, pending_rows;
  Part<std::int32_t> adapter_tokens, adapter_starts;
  Part<std::int32_t> image_rows;  // rows of the tokens of Batch::images, one image after another

 private:
  const Shape shape_;
  StepMemory memory_;
};

}  // namespace octavo
