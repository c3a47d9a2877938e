// The engine's side of one answer: whom it is for, how its tokens are chosen, what has happened to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/draft_policy.h"
#include "engine/loop/guided_text.h"
#include "request/request.h"
#include "sample/finish.h"
#include "sample/sequence_sampling.h"
#include "sample/thinking_limit.h"
#include "schedule/sequence.h"

namespace octavo {

// Held by all who need it: an image that nobody holds may leave memory.
struct EncodedMedia {
  int place = -1;  // slot of MediaEncoder::begin_media
};

// What the n answers of a request have in common.
struct Accepted {
  RequestId id = 0;
  Request request;
  std::vector<std::shared_ptr<const EncodedMedia>> encoded{};  // of the request's, in their order, as they come
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;  // answers
  Hash128 identity;        // of its prefixes in the cache; when its adapter is known
  bool scheduled = false;  // an answer of it has begun
};

struct Answer {
  // begun: one of the request's answers_so_far. seed: of this answer. context_tokens, vocab_size: of the model.
  Answer(std::shared_ptr<Accepted> whose, const AnswerSoFar& begun, std::uint64_t seed, int context_tokens,
         int vocab_size)
      : accepted(std::move(whose)),
        so_far(begun),
        sampling(params(), accepted->request.prompt, accepted->request.eos_ids, seed, vocab_size),
        thinking(accepted->request.thinking_budget),
        finish(accepted->request, context_tokens) {
    const std::span<const TokenId> tokens(so_far.tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sampling.append(tokens[i]);
      thinking.append(tokens[i]);
      finish.after(tokens.first(i + 1));
    }
    // Those of the prompt came with the first token.
    if (!tokens.empty()) prompt_logprobs_count = static_cast<int>(accepted->request.prompt.size()) - 1;
  }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // What the next token must follow; null: it is free.
  GuidedText* rule() { return guided && !grammar_waits ? guided.get() : nullptr; }
  // From now on the answer follows the grammar. False: what it has said so far does not.
  bool follow(std::shared_ptr<const grammar::CompiledGrammar> grammar) {
    guided = std::make_shared<GuidedText>(std::move(grammar), sampling.vocab_size());
    grammar_waits = accepted->request.grammar_after.has_value();
    return std::ranges::all_of(so_far.tokens, [&](TokenId token) { return take(token); });
  }
  // The grammar's view of the answer's next token. False: it cannot follow.
  bool take(TokenId token) {
    if (!grammar_waits) return !guided || guided->take(token);
    grammar_waits = token != *accepted->request.grammar_after;
    return true;
  }

  std::shared_ptr<Accepted> accepted;
  const AnswerSoFar& so_far;  // one of accepted->request's
  SequenceId sequence{};  // none while the grammar is compiled
  SequenceSampling sampling;
  ThinkingLimit thinking;
  FinishRule finish;
  std::shared_ptr<GuidedText> guided;       // with a grammar: all tokens behind grammar_after
  bool grammar_waits = false;               // for grammar_after
  bool mask_under_way = false;              // `guided` is the mask worker's for now
  Acceptance acceptance;                    // of draft tokens
  int adapter = -1;                         // place of its LoRA adapter; -1: none, or it is not there yet
  RequestTimes times;
  int cached_tokens = 0;
  int preemptions = 0;
  Output news;  // of the step being committed
  std::vector<TokenLogprobs> prompt_logprobs;  // of positions 1, 2, ... as far as they are computed
  int prompt_logprobs_count = 0;               // computed so far, those handed over included
};

}  // namespace octavo
