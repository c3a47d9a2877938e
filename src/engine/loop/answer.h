// State of one answer: its request, its sampling state and its output so far.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/draft_policy.h"
#include "engine/loop/guided_text.h"
#include "request/engine_stats.h"
#include "request/request.h"
#include "sample/finish.h"
#include "sample/sequence_sampling.h"
#include "sample/thinking_limit.h"
#include "schedule/sequence.h"

namespace octavo {

// An encoded image or sound. All answers that use it share it; when none does, it may be freed.
struct EncodedMedia {
  int place = -1;  // slot of MediaEncoder::begin_media
};

// State that the n answers of a request share.
struct Accepted {
  RequestId id = 0;
  Request request;
  std::vector<std::shared_ptr<const EncodedMedia>>
      encoded{};  // the request's media that are encoded, in the order of the prompt
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;
  Hash128 identity;        // identity of its prefixes in the cache; valid once its adapter is known
  bool scheduled = false;  // true: at least one answer has begun
  // Number of prompt tokens that were loaded for this request, for each KvSource. The first answer that
  // begins counts them.
  std::array<std::int64_t, kKvSources> loaded{};
};

struct Answer {
  // begun: element of the request's answers_so_far. seed: the answer's seed. context_tokens, vocab_size:
  // limits of the model.
  Answer(std::shared_ptr<Accepted> whose, const AnswerSoFar& begun, std::uint64_t seed, int context_tokens,
         int vocab_size)
      : accepted(std::move(whose)),
        so_far(begun),
        sampling(params(), prompt_ids(), accepted->request.eos_ids, seed, vocab_size),
        thinking(accepted->request.thinking_budget),
        finish(accepted->request, context_tokens) {
    const std::span<const TokenId> tokens(so_far.tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sampling.append(tokens[i]);
      thinking.append(tokens[i]);
      finish.after(tokens.first(i + 1));
    }
    // The prompt's log-probabilities were sent with the first token.
    if (!tokens.empty()) prompt_logprobs_count = static_cast<int>(accepted->request.prompt.size()) - 1;
  }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // The ids that penalties see.
  std::span<const TokenId> prompt_ids() const {
    if (accepted->request.has_embeds()) return {};
    return accepted->request.prompt;
  }
  // Grammar of the next token; null: any token is allowed.
  GuidedText* rule() { return guided && !grammar_waits ? guided.get() : nullptr; }
  // Starts the grammar. False: the output so far does not match it.
  bool follow(std::shared_ptr<const grammar::CompiledGrammar> grammar) {
    guided = std::make_shared<GuidedText>(std::move(grammar), sampling.vocab_size());
    grammar_waits = accepted->request.grammar_after.has_value();
    return std::ranges::all_of(so_far.tokens, [&](TokenId token) { return take(token); });
  }
  // Advances the grammar by the answer's next token. False: the grammar does not allow this token.
  bool take(TokenId token) {
    if (!grammar_waits) return !guided || guided->take(token);
    grammar_waits = token != *accepted->request.grammar_after;
    return true;
  }

  std::shared_ptr<Accepted> accepted;
  const AnswerSoFar& so_far;  // element of accepted->request.answers_so_far
  SequenceId sequence{};      // not set while the grammar is being compiled
  SequenceSampling sampling;
  ThinkingLimit thinking;
  FinishRule finish;
  std::shared_ptr<GuidedText> guided;  // reads the tokens after grammar_after; null: no grammar
  bool grammar_waits = false;          // true until grammar_after is sampled
  bool mask_under_way = false;         // the mask worker is using `guided`
  Acceptance acceptance;
  int adapter = -1;                    // slot of the LoRA adapter; -1: no adapter, or not loaded yet
  RequestTimes times;
  int cached_tokens = 0;
  int preemptions = 0;
  Output news;                                 // output of the current step, not sent yet
  std::vector<TokenLogprobs> prompt_logprobs;  // prompt positions 1, 2, ..: computed, but not sent yet
  int prompt_logprobs_count = 0;               // number of positions computed so far
};

}  // namespace octavo
