// The state of one answer: request, sampling state and output so far.
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
#include "engine/loop/answer_account.h"
#include "engine/loop/guided_text.h"
#include "request/engine_stats.h"
#include "request/request.h"
#include "sample/finish.h"
#include "sample/sequence_sampling.h"
#include "sample/thinking_limit.h"
#include "schedule/sequence.h"

namespace octavo {

// An encoded image or sound. The answers that use it share it. It may be freed when no answer uses it.
struct EncodedMedia {
  int place = -1;  // slot of MediaEncoder::begin_media
};

// State that the n answers of a request share.
struct Accepted {
  RequestId id = 0;
  Request request;
  std::vector<std::shared_ptr<const EncodedMedia>>
      encoded{};  // encoded media of the request, in the order of the prompt
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;
  Hash128 identity;        // identity of the request's prefixes in the cache; valid once the adapter is
                           // loaded
  bool scheduled = false;  // at least one answer has begun
  // Number of prompt tokens loaded from each KvSource, counted by the first answer that begins.
  std::array<std::int64_t, kKvSources> loaded{};
  // Cost of work for the whole request, which the first answer that begins or ends gets.
  AnswerCost shared_cost{};
};

struct Answer {
  // begun: element of the request's answers_so_far. context_tokens, vocab_size: limits of the model.
  Answer(std::shared_ptr<Accepted> whose, const AnswerSoFar& begun, std::uint64_t seed, int context_tokens,
         int vocab_size)
      : accepted(std::move(whose)),
        so_far(begun),
        sampling(params(), prompt_ids(), accepted->request.eos_ids, seed, vocab_size),
        thinking(accepted->request.thinking_budget),
        finish(accepted->request, context_tokens),
        account{.cost = begun.cost} {
    const std::span<const TokenId> tokens(so_far.tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      sampling.append(tokens[i]);
      thinking.append(tokens[i]);
      finish.after(tokens.first(i + 1));
    }
    // The log-probabilities of the prompt were sent with the first token.
    if (!tokens.empty()) prompt_logprobs_count = static_cast<int>(accepted->request.prompt.size()) - 1;
    if (continues())
      account.computed_until = static_cast<int>(accepted->request.prompt.size() + tokens.size());
  }

  // Returns whether an engine that has died has counted the cost of the prompt already.
  bool continues() const { return so_far.cost != AnswerCost(); }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // Returns the prompt's token ids for penalties.
  std::span<const TokenId> prompt_ids() const {
    if (accepted->request.has_embeds()) return {};
    return accepted->request.prompt;
  }
  // Returns the grammar of the next token, or null if any token is allowed.
  GuidedText* rule() { return guided && !grammar_waits ? guided.get() : nullptr; }
  // Starts the grammar. Returns false if the output so far does not match it.
  bool follow(std::shared_ptr<const grammar::CompiledGrammar> grammar) {
    guided = std::make_shared<GuidedText>(std::move(grammar), sampling.vocab_size());
    grammar_waits = accepted->request.grammar_after.has_value();
    return std::ranges::all_of(so_far.tokens, [&](TokenId token) { return take(token); });
  }
  // Advances the grammar by the answer's next token. Returns false if the grammar does not allow the token.
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
  std::shared_ptr<GuidedText> guided;  // grammar state of the tokens after grammar_after; null if there is
                                       // no grammar
  bool grammar_waits = false;          // true until grammar_after has been sampled
  bool mask_under_way = false;         // the mask worker is using `guided`
  Acceptance acceptance;
  int adapter = -1;  // slot of the LoRA adapter; -1: no adapter, or not loaded yet
  RequestTimes times;
  int cached_tokens = 0;
  int preemptions = 0;
  AnswerAccount account;
  Output news;                                 // output of the current step, which has not been sent
  std::vector<TokenLogprobs> prompt_logprobs;  // log-probabilities that have not been sent, from prompt
                                               // position 1
  int prompt_logprobs_count = 0;               // number of prompt positions computed so far
};

}  // namespace octavo
