// The engine's side of one answer: whom it is for, how its tokens are chosen, what has happened to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "grammar/matcher.h"
#include "request/request.h"
#include "sample/finish.h"
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
  // seed: of this answer. context_tokens, vocab_size: of the model.
  Answer(std::shared_ptr<Accepted> whose, int which, std::uint64_t seed, int context_tokens, int vocab_size)
      : accepted(std::move(whose)),
        index(which),
        sampling(params(), accepted->request.prompt, accepted->request.eos_ids, seed, vocab_size),
        finish(accepted->request, context_tokens) {
    if (accepted->request.grammar) matcher.emplace(accepted->request.grammar);
    grammar_waits = matcher && accepted->request.grammar_after;
  }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // What the next token must follow; null: it is free.
  grammar::Matcher* rule() { return matcher && !grammar_waits ? &*matcher : nullptr; }

  std::shared_ptr<Accepted> accepted;
  int index;
  SequenceId sequence{};
  SequenceSampling sampling;
  FinishRule finish;
  std::optional<grammar::Matcher> matcher;  // with a grammar: has taken all tokens behind grammar_after
  bool grammar_waits = false;               // for grammar_after
  RequestTimes times;
  int cached_tokens = 0;
  std::vector<TokenLogprobs> prompt_logprobs;  // of positions 1, 2, ... as far as they are computed
  int prompt_logprobs_count = 0;               // computed so far, those handed over included
};

}  // namespace octavo
