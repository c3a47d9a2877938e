// A request to the engine and its outputs: plain data that is sent between processes.
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

// Chosen by the engine at submit(); unique within a process.
using RequestId = std::uint64_t;

// The output tokens that an answer already has. The answer continues after them.
struct AnswerSoFar {
  int index = 0;  // index of the answer, below n
  std::vector<TokenId> tokens;
};

// Limit on the reasoning tokens of an answer. Reasoning is the text between two tokens.
struct ThinkingBudget {
  TokenId begin = 0, end = 0;
  int tokens = 0;                 // maximum number of reasoning tokens; then `end` is forced
  std::optional<int> spent = {};  // reasoning tokens in the prompt; nullopt: not opened there
};

struct Request {
  std::string name;              // the client's id, for logs and traces
  Task task = Task::generate;    // see EngineInfo::does
  std::vector<TokenId> prompt;   // at least one token
  SamplingParams sampling;       // validated
  std::vector<TokenId> eos_ids;  // sorted; each ends the text, unless ignore_eos
  std::int64_t priority = 0;     // a lower value runs first under the priority policy
  CacheIdentity identity;        // only requests with equal identity share cached prefixes
  bool read_prefix_cache = true;
  std::optional<grammar::GrammarSource> grammar;  // grammar of the answers; nullopt: none
  std::optional<TokenId> grammar_after;           // the grammar begins after this token; nullopt: at once

  std::optional<ThinkingBudget> thinking_budget;  // nullopt: no limit

  // Random seed if `sampling` has none; nullopt: the engine chooses one.
  std::optional<std::uint64_t> entropy;
  // If not empty, the request wants only these answers; they continue after their tokens. A draw depends
  // only on the seed and the position, so with the same entropy the continuation is bit-identical.
  std::vector<AnswerSoFar> answers_so_far;

  // Index of the engine to use (data parallelism); nullopt: any engine.
  std::optional<int> engine;

  // Set if prefill and decode run on two engines: the KV blocks to keep or to load.
  std::optional<KvTransferParams> kv_transfer;

  // Position of the first token of the second text, for models with token types; nullopt: there is one
  // text.
  std::optional<int> second_text;

  bool report_progress = false;  // true: send Output::computed_tokens while the prompt is computed

  std::vector<MediaPart> media;  // parts of the prompt in order of position, or the source

  // True: `media` has embeddings of the whole prompt, and the ids in `prompt` have no meaning.
  bool has_embeds() const { return !media.empty() && media[0].embeds; }

  int answers() const {
    return answers_so_far.empty() ? sampling.n : static_cast<int>(answers_so_far.size());
  }
};

enum class FinishReason : std::uint8_t {
  stop,        // an end-of-text or stop token, or a stop string
  length,      // max_tokens or the context is used up
  repetition,  // repetition_detection found a repetition
  abort,       // the client left or cancelled the request
  error,       // this request failed in the engine
};

std::string_view name(FinishReason reason);

struct TokenLogprobs {
  TokenId id = 0;                              // token at this position
  float logprob = 0;                           // natural logarithm
  int rank = 0;                                // rank of the token by probability; 1: the most likely
  std::vector<std::pair<TokenId, float>> top;  // most likely first, or as in logprob_token_ids
};

// Times of a request's events, in microseconds of the monotonic clock (base/clock.h). 0: not yet.
struct RequestTimes {
  std::int64_t arrived_us = 0;
  std::int64_t scheduled_us = 0;
  std::int64_t first_token_us = 0;
  std::int64_t last_token_us = 0;
};

// New tokens of one answer after an engine step.
struct Output {
  RequestId id = 0;
  int engine = 0;                       // EngineInfo::index
  int index = 0;                        // index of the answer, below n
  std::vector<TokenId> token_ids;       // new tokens, in order
  std::vector<TokenLogprobs> logprobs;  // one per new token, if requested
  // For positions 1 .. prompt-1, if requested. Sent once, before or with the first token.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> pooled;  // complete result of a pooling task, before normalisation or activation
  int cached_tokens = 0;      // number of prompt tokens whose KV was in the cache
  // Only with Request::report_progress, in outputs without tokens: number of prompt tokens that are
  // computed or cached.
  int computed_tokens = 0;
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // the entry of stop_token_ids that ended the answer
  std::optional<Error> error;         // set with FinishReason::error; has the kind of error
  // Set at the end of the last answer: parameters of the request to the decode engine.
  std::optional<KvTransferParams> kv_transfer;
  RequestTimes times;                 // so far, of outputs with tokens; complete when finished
  int preemptions = 0;                // times that its blocks were taken away; filled when finished
};

// Receives a request's outputs on the engine's thread. It must not wait, but pass the output on at once.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // For each of the n answers: called any number of times without `finished`, then once with it.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
