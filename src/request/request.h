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
#include "request/answer_cost.h"
#include "request/cache_identity.h"
#include "request/kv_transfer.h"
#include "request/media_part.h"
#include "request/pooling.h"
#include "request/sampling_params.h"

namespace octavo {

// Chosen by the engine at submit(); unique within a process.
using RequestId = std::uint64_t;

// Output tokens that an answer already has. The answer continues after them.
struct AnswerSoFar {
  int index = 0;  // index of the answer, below n
  std::vector<TokenId> tokens;
  AnswerCost cost{};  // cost of these tokens in an engine that has died
};

// Limit on the reasoning tokens of an answer. Reasoning is the text between two special tokens.
struct ThinkingBudget {
  TokenId begin = 0, end = 0;
  int tokens = 0;                 // maximum number of reasoning tokens, after which `end` is forced
  std::optional<int> spent = {};  // number of reasoning tokens in the prompt; nullopt: the prompt does not
                                  // begin reasoning
};

struct Request {
  std::string name;              // the client's id, for logs and traces
  Task task = Task::generate;    // see EngineInfo::does
  std::vector<TokenId> prompt;   // token ids; at least one
  SamplingParams sampling;       // validated
  std::vector<TokenId> eos_ids;  // end-of-text tokens, sorted; each ends the output, unless ignore_eos
  std::int64_t priority = 0;     // lower values run first under the priority policy
  CacheIdentity identity;        // only requests with equal identities share cached prefixes
  bool read_prefix_cache = true;
  std::optional<grammar::GrammarSource> grammar;  // grammar of the answers; nullopt: no grammar
  std::optional<TokenId> grammar_after;  // the grammar applies after this token; nullopt: from the first
                                         // token on

  std::optional<ThinkingBudget> thinking_budget;  // nullopt: no limit

  // Random seed if `sampling` has none; nullopt: the engine chooses one.
  std::optional<std::uint64_t> entropy;
  // If not empty, the request wants only these answers, continued after their tokens. A random draw depends
  // only on the seed and the position, so with the same entropy the continuation is bit-identical.
  std::vector<AnswerSoFar> answers_so_far;

  // Index of the engine to use (data parallelism); nullopt: any engine.
  std::optional<int> engine;

  // KV blocks to keep or to load, if prefill and decode run on two engines.
  std::optional<KvTransferParams> kv_transfer;

  // Position of the first token of the second text, for models with token types; nullopt: the prompt is one
  // text.
  std::optional<int> second_text;

  bool report_progress = false;  // whether to send Output::computed_tokens while the prompt is computed

  std::vector<MediaPart> media;  // parts of the prompt in order of position, or the source

  // Returns true if `media` has embeddings of the complete prompt; the ids in `prompt` then have no meaning.
  bool has_embeds() const { return !media.empty() && media[0].embeds; }

  int answers() const {
    return answers_so_far.empty() ? sampling.n : static_cast<int>(answers_so_far.size());
  }
};

enum class FinishReason : std::uint8_t {
  stop,        // an end-of-text or stop token, or a stop string
  length,      // max_tokens or the context is used up
  repetition,  // repetition_detection found a repetition
  abort,       // the client disconnected or cancelled the request
  error,       // this request failed in the engine
};

std::string_view name(FinishReason reason);

struct TokenLogprobs {
  TokenId id = 0;                              // token at this position
  float logprob = 0;                           // natural logarithm
  int rank = 0;                                // rank of the token by probability; 1: the most likely
  std::vector<std::pair<TokenId, float>> top;  // most likely first, or as in logprob_token_ids
};

// Times of a request's events, in microseconds of the monotonic clock (base/clock.h); 0: the event has not
// happened yet.
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
  std::vector<TokenLogprobs> logprobs;  // Logprobs of the prompt positions from 1 on, if requested; sent
                                        // once, before or with the first token.
  // For positions 1 .. prompt-1, if requested. Sent once, before or with the first token.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> pooled;  // complete result of a pooling task, before normalisation or activation
  int cached_tokens = 0;      // number of prompt tokens whose KV was in the cache
  // Number of prompt tokens that are computed or cached; only with Request::report_progress, in outputs
  // without tokens.
  int computed_tokens = 0;
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // the entry of stop_token_ids that ended the answer
  std::optional<Error> error;         // set with FinishReason::error
  // Parameters of the request to the decode engine; set at the end of the last answer.
  std::optional<KvTransferParams> kv_transfer;
  RequestTimes times;   // times so far, in outputs with tokens; complete in the finished output
  int preemptions = 0;  // number of preemptions of the answer; set in the finished output
  AnswerCost cost{};    // cost of the answer so far; complete in the finished output
};

// Receives a request's outputs on the engine's thread. It must not wait.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Delivers an output of one of the n answers: any number without `finished`, then one with it.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
