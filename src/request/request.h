// A request to the engine and its outputs: plain data, which crosses processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_source.h"
#include "request/cache_identity.h"
#include "request/media_part.h"
#include "request/kv_transfer.h"
#include "request/pooling.h"
#include "request/sampling_params.h"

namespace octavo {

// Given out by the engine on submit; never reused within a process.
using RequestId = std::uint64_t;

// The output tokens that one answer already has, to continue it.
struct AnswerSoFar {
  int index = 0;                // which of the n answers
  std::vector<TokenId> tokens;  // in order
};

// Limit of an answer's thoughts, which are between two tokens.
struct ThinkingBudget {
  TokenId begin = 0, end = 0;
  int tokens = 0;                 // maximum tokens of thoughts; then their end is forced
  std::optional<int> spent = {};  // thoughts that the prompt has begun: their tokens so far
};

struct Request {
  std::string name;              // the caller's id, for logs and traces
  Task task = Task::generate;    // see EngineInfo::does
  std::vector<TokenId> prompt;   // at least one token
  SamplingParams sampling;       // validated
  std::vector<TokenId> eos_ids;  // end the text unless ignore_eos; sorted
  std::int64_t priority = 0;     // lower runs first under the priority policy
  CacheIdentity identity;        // only requests with an equal identity share cached prefixes
  bool read_prefix_cache = true;
  std::optional<grammar::GrammarSource> grammar;  // grammar of the answers; nullopt: free text
  std::optional<TokenId> grammar_after;  // answers are free up to this token; the grammar begins after it

  std::optional<ThinkingBudget> thinking_budget;  // nullopt: no limit

  // Random seed if `sampling` has none; nullopt: the engine chooses one.
  std::optional<std::uint64_t> entropy;
  // Not empty: only these answers are wanted, and they continue after their tokens. A draw depends only on
  // the seed and its position, so with the same entropy the continuation is bit-identical.
  std::vector<AnswerSoFar> answers_so_far;

  // Index of the engine (data parallelism); nullopt: any.
  std::optional<int> engine;

  // Prefill and decode on two engines: the KV blocks to hand over or to take over.
  std::optional<KvTransferParams> kv_transfer;

  // First token of the second text, for models with token types; nullopt: there is one text.
  std::optional<int> second_text;

  bool report_progress = false;  // Output::computed_tokens while the prompt is computed

  std::vector<MediaPart> media;  // parts of the prompt by position, or the source

  int answers() const {
    return answers_so_far.empty() ? sampling.n : static_cast<int>(answers_so_far.size());
  }
};

enum class FinishReason : std::uint8_t {
  stop,        // an end-of-text or stop token, or a stop string
  length,      // max_tokens or the context is used up
  repetition,  // repetition_detection fired
  abort,       // the client left or cancelled
  error,       // the engine failed on this request
};

std::string_view name(FinishReason reason);

// The log-probabilities reported for one position.
struct TokenLogprobs {
  TokenId id = 0;                              // token at this position
  float logprob = 0;                           // natural logarithm
  int rank = 0;                                // 1: the most likely of all
  std::vector<std::pair<TokenId, float>> top;  // the most likely first, or logprob_token_ids in their order
};

// Times of a request's events, in microseconds of the monotonic clock (base/clock.h); 0 before the event.
struct RequestTimes {
  std::int64_t arrived_us = 0;
  std::int64_t scheduled_us = 0;
  std::int64_t first_token_us = 0;
  std::int64_t last_token_us = 0;
};

// New tokens of one sequence after an engine step.
struct Output {
  RequestId id = 0;
  int engine = 0;                       // EngineInfo::index
  int index = 0;                        // which of the n answers
  std::vector<TokenId> token_ids;       // new tokens, in order
  std::vector<TokenLogprobs> logprobs;  // one for each new token, if requested
  // For positions 1 .. prompt-1, if requested. Sent once, before or with the first token.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> pooled;  // the whole answer of a pooling task, as the model gives it
  int cached_tokens = 0;  // prompt tokens whose KV was found in the cache
  // With Request::report_progress, in outputs without tokens: prompt tokens that are computed or cached.
  int computed_tokens = 0;
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // the stop_token_ids entry that ended it
  std::optional<Error> error;         // with FinishReason::error; its code tells client from server errors
  // Set at the end of the last answer: parameters for the request to the decode engine.
  std::optional<KvTransferParams> kv_transfer;
  RequestTimes times;                 // so far, of outputs with tokens; complete when finished
  int preemptions = 0;                // times that its blocks were taken away; filled when finished
};

// Receives a request's outputs on the engine's thread. Must return at once: pass the output on, never wait.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Each of the n answers gets zero or more outputs without `finished` and then exactly one with it.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
