// A request on its way into the engine, and what comes back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "grammar/compiled_grammar.h"
#include "request/sampling_params.h"

namespace octavo {

// Given out by the engine on submit; never reused within a process.
using RequestId = std::uint64_t;

struct Request {
  std::string name;              // the caller's id, for logs and traces
  std::vector<TokenId> prompt;   // at least one token
  SamplingParams sampling;       // validated
  std::vector<TokenId> eos_ids;  // end the text unless ignore_eos; sorted
  std::int64_t priority = 0;     // lower goes first under the priority policy
  Hash128 cache_salt;  // requests share cached prefixes only with those of equal salt; zero: the common one
  bool read_prefix_cache = true;
  std::shared_ptr<const grammar::CompiledGrammar> grammar;  // of the answers; null: free
  std::optional<TokenId> grammar_after;  // answers are free up to this token; the grammar begins behind it
};

enum class FinishReason : std::uint8_t {
  stop,        // an end-of-text or stop token, or a stop string
  length,      // max_tokens or the context is used up
  repetition,  // repetition_detection fired
  abort,       // the caller went away or said so
  error,       // the engine could not go on with this request
};

std::string_view name(FinishReason reason);

// The log-probabilities reported for one position.
struct TokenLogprobs {
  TokenId id = 0;                              // the token that stands there
  float logprob = 0;                           // natural logarithm
  int rank = 0;                                // 1: the most likely of all
  std::vector<std::pair<TokenId, float>> top;  // the most likely first, or logprob_token_ids in their order
};

// Microseconds of the monotonic clock (base/clock.h) at which things happened to a request; 0: not yet.
struct RequestTimes {
  std::int64_t arrived_us = 0;
  std::int64_t scheduled_us = 0;
  std::int64_t first_token_us = 0;
  std::int64_t last_token_us = 0;
};

// What one engine step produced for one sequence of a request.
struct Output {
  RequestId id = 0;
  int index = 0;                        // which of the n answers
  std::vector<TokenId> token_ids;       // new ones, in order
  std::vector<TokenLogprobs> logprobs;  // one for each new token, when asked for
  // For positions 1 .. prompt-1, once, before or with the first token, when asked for.
  std::vector<TokenLogprobs> prompt_logprobs;
  int cached_tokens = 0;  // prompt tokens whose KV was found in the cache
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // the stop_token_ids entry that ended it
  std::string error;                  // with FinishReason::error: what happened
  RequestTimes times;                 // filled when finished
};

// Where a request's outputs go. Called on the engine's thread: hand over and return, never wait.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Each of the n answers gets zero or more outputs without `finished` and then exactly one with it.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
