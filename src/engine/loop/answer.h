// An answer is one output sequence of a request, so a request with n = 2 has two answers. This file has the
// engine's state of an answer: the request, the sampling state and the output so far.
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

// An encoded image or sound. The answers that use it share the object, and its slot may be reused when no
// answer uses it.
struct EncodedMedia {
  int slot = -1;  // slot, see MediaEncoder::begin_media
};

struct Accepted {
  RequestId id = 0;
  Request request;
  std::vector<std::shared_ptr<const EncodedMedia>>
      // Encoded media of the request, in the order of the prompt.
      encoded{};
  std::shared_ptr<OutputSink> sink;
  std::int64_t arrived_us = 0;
  int unfinished = 0;
  // Ranges [first, end) of prompt positions whose tokens attend to each other.
  std::vector<std::pair<int, int>> wholes{};
  // Identity of the request's prefixes in the cache. It is valid after the adapter is loaded.
  Hash128 identity;
  bool scheduled = false;  // at least one answer is scheduled
  // Number of prompt tokens loaded from each KvSource. The first answer that starts counts them in the
  // statistics.
  std::array<std::int64_t, kKvSources> loaded{};
  // Cost of work for the whole request. It is added to the first answer that starts or ends.
  AnswerCost shared_cost{};
};

struct Answer {
  // `begun` is an element of the request's answers_so_far. context_tokens and vocab_size are limits of the
  // model.
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
    // If the answer has output already, an earlier engine has sent the prompt logprobs together with the
    // first token.
    if (!tokens.empty()) prompt_logprobs_count = static_cast<int>(accepted->request.prompt.size()) - 1;
  }

  AnswerAccount opening_account() const {
    const auto prompt = static_cast<int>(accepted->request.prompt.size());
    const int known = prompt + static_cast<int>(so_far.tokens.size());
    return {.cost = so_far.cost,
            .prompt_tokens = prompt,
            .known_tokens = known,
            .computed_until = continues() ? known : 0};
  }

  // Returns whether an earlier engine, which crashed, has counted the cost of the prompt already.
  bool continues() const { return so_far.cost != AnswerCost(); }

  const SamplingParams& params() const { return accepted->request.sampling; }
  // Returns the prompt's token ids, for penalties. Empty if the prompt consists of embeddings.
  std::span<const TokenId> prompt_ids() const {
    if (accepted->request.has_embeds()) return {};
    return accepted->request.prompt;
  }
  // Returns whether forced tokens of the grammar are appended without sampling. With logprobs, biases or
  // bans, every token is sampled.
  bool takes_forced_tokens() const { return !params().logprobs.output && !sampling.restricts(); }
  // Returns the grammar state, or null if the grammar allows any next token.
  GuidedText* rule() { return guided && !grammar_waits ? guided.get() : nullptr; }
  // Starts the grammar. Returns false if the output so far does not match the grammar.
  bool follow(std::shared_ptr<const grammar::CompiledGrammar> grammar) {
    guided = std::make_shared<GuidedText>(std::move(grammar), sampling.vocab_size());
    grammar_waits = accepted->request.grammar_after.has_value();
    return std::ranges::all_of(so_far.tokens, [&](TokenId token) { return take(token); });
  }
  // Advances the grammar. Returns false if the grammar does not allow the token.
  bool take(TokenId token) {
    if (!grammar_waits) return !guided || guided->take(token);
    grammar_waits = token != *accepted->request.grammar_after;
    return true;
  }

  std::shared_ptr<Accepted> accepted;
  const AnswerSoFar& so_far;  // element of accepted->request.answers_so_far
  SequenceId sequence{};      // id of the answer's sequence; not set while the grammar is being compiled
  SequenceSampling sampling;
  ThinkingLimit thinking;
  FinishRule finish;
  // Grammar state of the tokens after grammar_after. null: no grammar.
  std::shared_ptr<GuidedText> guided;
  // true until the token grammar_after is sampled; the grammar applies only to the tokens after it
  bool grammar_waits = false;
  bool mask_under_way = false;
  Acceptance acceptance;
  int adapter = -1;  // device slot of the answer's LoRA adapter; -1: no adapter, or not loaded yet
  RequestTimes times;
  int cached_tokens = 0;
  int preemptions = 0;
  Output news;  // output of the current step, which has not been sent
  // Logprobs that have not been sent, from prompt position 1 on.
  std::vector<TokenLogprobs> prompt_logprobs;
  int prompt_logprobs_count = 0;
};

}  // namespace octavo
