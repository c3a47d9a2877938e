// The engine's side of one answer: whom it is for, how its tokens are chosen, what has happened to it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "request/request.h"
#include "sample/sequence_sampling.h"
#include "schedule/sequence.h"

namespace octavo {

// What the n answers of a request have in common.
struct Accepted {
  RequestId id = 0;
  Request request;
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;  // answers
};

struct Answer {
  std::shared_ptr<Accepted> accepted;
  int index = 0;
  SequenceId sequence{};
  SequenceSampling sampling;
  RequestTimes times;
  int cached_tokens = 0;
  std::vector<TokenLogprobs> prompt_logprobs;  // for positions 1 .. as far as computed

  const SamplingParams& params() const { return accepted->request.sampling; }
};

}  // namespace octavo
