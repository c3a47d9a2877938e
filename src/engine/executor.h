// Runs steps: the forward pass and the sampling of one replica, wherever its ranks are.
//
//   forward(batch)   enqueue the forward pass
//   sample(rows)     enqueue the choice of tokens from its logits
//   collect()        wait for the oldest sampled step and hand over its tokens
//
// forward and sample are two calls so that the host can work in between: it commits the step before, whose
// ids the forward pass did not need to see, and fills grammar masks. A host backend does the work inside the
// calls.
#pragma once

#include <span>

#include "base/error.h"
#include "engine/batch.h"
#include "sample/sampler.h"

namespace octavo {

class Executor {
 public:
  virtual ~Executor() = default;

  // True when the next forward may be enqueued before the last step is collected: the tokens it is still
  // sampling are then listed in Batch::pending.
  virtual bool asynchronous() const = 0;

  virtual void forward(const Batch& batch) = 0;

  // Row i chooses from the logits of the batch's token tokens[i]; what the rows point to is read during the
  // call. No rows at all are a step like any other.
  virtual void sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) = 0;

  // One entry for each row, in order; good until the next sample(). An error means that the device failed:
  // nothing more can be run.
  virtual Result<std::span<const SampledToken>> collect() = 0;
};

}  // namespace octavo
