// State of one answer in the engine: its request, how its tokens are sampled, its output so far.
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

// Shared by all users: an image without users may be freed.
struct EncodedMedia {
  int place = -1;  // slot of MediaEncoder::begin_media
};

// State that the n answers of a request share.
struct Accepted {
  RequestId id = 0;
  Request request;
  std::vector<std::shared_ptr<const EncodedMedia>>
      encoded{};  // the encoded ones of the request's media, in order
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;      // answers
  Hash128 identity;        // of its prefixes in the cache; set when its adapter is known
  bool scheduled = false;  // an answer of it has begun
};

struct Answer {
  // begun: one of the request's answers_so_far. seed: of this answer. context_tokens, vocab_size: of the
  // model.
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
    // The prompt's log-probabilities came with the first token.
    if (!tokens.empty()) prompt_logprobs_count = static_cast<int>(accepted->request.prompt.size()) - 1;
  }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // Grammar of the next token; null: none.
  GuidedText* rule() { return guided && !grammar_waits ? guided.get() : nullptr; }
  // From now on the answer follows the grammar. False: its output so far does not.
  bool follow(std::shared_ptr<const grammar::CompiledGrammar> grammar) {
    guided = std::make_shared<GuidedText>(std::move(grammar), sampling.vocab_size());
    grammar_waits = accepted->request.grammar_after.has_value();
    return std::ranges::all_of(so_far.tokens, [&](TokenId token) { return take(token); });
  }
  // Advances the grammar by the answer's next token. False: the grammar does not allow it.
  bool take(TokenId token) {
    if (!grammar_waits) return !guided || guided->take(token);
    grammar_waits = token != *accepted->request.grammar_after;
    return true;
  }

  std::shared_ptr<Accepted> accepted;
  const AnswerSoFar& so_far;  // one of accepted->request's
  SequenceId sequence{};      // none while the grammar is compiled
  SequenceSampling sampling;
  ThinkingLimit thinking;
  FinishRule finish;
  std::shared_ptr<GuidedText> guided;  // with a grammar: all tokens after grammar_after
  bool grammar_waits = false;          // for grammar_after
  bool mask_under_way = false;         // the mask worker uses `guided`
  Acceptance acceptance;               // of draft tokens
  int adapter = -1;                    // slot of its LoRA adapter; -1: none, or not loaded yet
  RequestTimes times;
  int cached_tokens = 0;
  int preemptions = 0;
  Output news;                                 // of the step that is committed now
  std::vector<TokenLogprobs> prompt_logprobs;  // of positions 1, 2, ... computed and not delivered yet
  int prompt_logprobs_count = 0;               // computed so far, delivered ones included
};

}  // namespace octavo
