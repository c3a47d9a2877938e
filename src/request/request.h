// A request on its way into the engine, and what comes back: plain data, which any process may hold.
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

// What one of a request's answers has said before: where it goes on.
struct AnswerSoFar {
  int index = 0;                // which of the n answers
  std::vector<TokenId> tokens;  // in order
};

// How long an answer may think: its thoughts stand between two tokens.
struct ThinkingBudget {
  TokenId begin = 0, end = 0;
  int tokens = 0;                 // of the thoughts; then nothing but their end may follow
  std::optional<int> spent = {};  // where the answer begins with thoughts: those of them in the prompt
};

struct Request {
  std::string name;              // the caller's id, for logs and traces
  Task task = Task::generate;    // see EngineInfo::does
  std::vector<TokenId> prompt;   // at least one token
  SamplingParams sampling;       // validated
  std::vector<TokenId> eos_ids;  // end the text unless ignore_eos; sorted
  std::int64_t priority = 0;     // lower goes first under the priority policy
  CacheIdentity identity;        // requests share cached prefixes only with those of an equal one
  bool read_prefix_cache = true;
  std::optional<grammar::GrammarSource> grammar;  // of the answers; nothing: they are free
  std::optional<TokenId> grammar_after;  // answers are free up to this token; the grammar begins behind it

  std::optional<ThinkingBudget> thinking_budget;  // nothing: answers think as long as they like

  // What draws come from where `sampling` has no seed; nothing: the engine's own choice.
  std::optional<std::uint64_t> entropy;
  // Given: only these answers are wanted, and they go on behind what they have said. A draw depends on the
  // seed and its place alone, so with the same entropy they go on bit for bit as if they had never stopped.
  std::vector<AnswerSoFar> answers_so_far;

  // Of several engines behind one client (data parallelism): the one that is to have it; nothing: any.
  std::optional<int> engine;

  // Prefill and decode on two engines: what this one is to hand over or take over.
  std::optional<KvTransferParams> kv_transfer;

  // Of models with token types: from here on tokens belong to a second text; nothing: there is one text.
  std::optional<int> second_text;

  std::vector<MediaPart> media;  // in the prompt, in the order of their places; or the source beside it

  int answers() const {
    return answers_so_far.empty() ? sampling.n : static_cast<int>(answers_so_far.size());
  }
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
  TokenId id = 0;                              // token at this position
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
  int engine = 0;                       // EngineInfo::index of the one that it comes from
  int index = 0;                        // which of the n answers
  std::vector<TokenId> token_ids;       // new ones, in order
  std::vector<TokenLogprobs> logprobs;  // one for each new token, when asked for
  // For positions 1 .. prompt-1, once, before or with the first token, when asked for.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> pooled;  // the whole answer, as the model gives it, unless the task is to generate
  int cached_tokens = 0;  // prompt tokens whose KV was found in the cache
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // the stop_token_ids entry that ended it
  std::optional<Error> error;         // with FinishReason::error: what happened, and whose fault it is
  // With the last answer's end, where another engine is to decode: what that one must be told.
  std::optional<KvTransferParams> kv_transfer;
  RequestTimes times;                 // filled when finished
  int preemptions = 0;                // times that it gave its blocks back; filled when finished
};

// Where a request's outputs go. Called on the engine's thread: hand over and return, never wait.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Each of the n answers gets zero or more outputs without `finished` and then exactly one with it.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
