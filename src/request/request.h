// A request to the engine and its outputs. These structs are plain data, so that they can be sent between
// processes.
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
#include "request/session.h"

namespace octavo {

// The engine chooses the id in submit(). Ids are unique within a process.
using RequestId = std::uint64_t;

// Output tokens that an answer already has, for example from an engine that has crashed. The engine
// continues after these tokens.
struct AnswerSoFar {
  int index = 0;  // index of the answer, below n
  std::vector<TokenId> tokens;
  AnswerCost cost{};  // cost of these tokens in the previous engine
};

// Limit on the reasoning tokens of an answer. `begin` and `end` are the special tokens around the
// reasoning.
struct ThinkingBudget {
  TokenId begin = 0, end = 0;
  int tokens = 0;  // maximum number of reasoning tokens; the engine then forces `end`
  // number of reasoning tokens that the prompt already ends with; nullopt: reasoning has not begun
  std::optional<int> spent = {};
};

struct Request {
  std::string name;            // the client's request id, for logs and traces
  Task task = Task::generate;  // EngineInfo::does tells which tasks are possible
  std::vector<TokenId> prompt;
  SamplingParams sampling;  // result of validated()
  // end-of-text tokens, sorted; each one ends the answer, unless ignore_eos is set
  std::vector<TokenId> eos_ids;
  std::int64_t priority = 0;  // lower values run first; only with priority scheduling
  CacheIdentity identity;     // only requests with equal identities share cached prefixes
  bool read_prefix_cache = true;
  std::optional<grammar::GrammarSource> grammar;
  // token after which the grammar applies; nullopt: from the first token on
  std::optional<TokenId> grammar_after;

  std::optional<ThinkingBudget> thinking_budget;

  // Random seed if `sampling` has no seed. nullopt: the engine chooses one.
  std::optional<std::uint64_t> entropy;
  // If not empty, the engine computes only these answers and continues them. A random draw depends only on
  // the seed and the position, so with the same `entropy` the continuation is bit-identical.
  std::vector<AnswerSoFar> answers_so_far;

  // Index of the engine to use, with data parallelism. nullopt: any engine.
  std::optional<int> engine;

  // The KV blocks to keep or to load if one engine runs prefill and another one runs decode.
  std::optional<KvTransferParams> kv_transfer;

  std::optional<SessionUse> session;

  // Position of the first token of the second text, for cross-encoders with token types. nullopt: the
  // prompt is one text.
  std::optional<int> second_text;

  // whether the engine sends Output::computed_tokens while it computes the prompt
  bool report_progress = false;

  std::vector<MediaPart> media;  // parts of the prompt in ascending order of position, or the source

  // Returns whether `media` contains embeddings of the complete prompt. The ids in `prompt` are then
  // ignored.
  bool has_embeds() const { return !media.empty() && media[0].embeds; }

  int answers() const {
    return answers_so_far.empty() ? sampling.n : static_cast<int>(answers_so_far.size());
  }
};

enum class FinishReason : std::uint8_t {
  stop,        // an end-of-text token, a stop token or a stop string
  length,      // the answer has max_tokens tokens, or the maximum context length is reached
  repetition,  // repetition_detection found a repetition
  abort,       // the client disconnected or cancelled the request
  error,       // the request failed in the engine
};

std::string_view name(FinishReason reason);

struct TokenLogprobs {
  TokenId id = 0;
  float logprob = 0;  // natural logarithm
  int rank = 0;       // 1: the most likely token
  // most likely tokens first, or in the order of logprob_token_ids
  std::vector<std::pair<TokenId, float>> top;
};

// Times of a request's events, in microseconds of the monotonic clock (base/clock.h). 0: the event has not
// happened.
struct RequestTimes {
  std::int64_t arrived_us = 0;
  std::int64_t scheduled_us = 0;
  std::int64_t first_token_us = 0;
  std::int64_t last_token_us = 0;
};

// New tokens of one answer. The engine sends an Output after each step.
struct Output {
  RequestId id = 0;
  int engine = 0;  // EngineInfo::index
  int index = 0;   // index of the answer, below n
  std::vector<TokenId> token_ids;
  std::vector<TokenLogprobs> logprobs;  // logprobs of the new tokens, if requested
  // Logprobs of the prompt positions from 1 on, if requested. Sent once, with the first token or earlier.
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<float> pooled;  // complete result of a pooling task, before normalisation and activation
  int cached_tokens = 0;      // number of prompt tokens whose KV was in the cache
  // Number of prompt tokens that are computed or cached. Only set with Request::report_progress, in outputs
  // without tokens.
  int computed_tokens = 0;
  std::optional<FinishReason> finished;
  std::optional<TokenId> stop_token;  // token id from stop_token_ids that ended the answer
  std::optional<Error> error;
  // Parameters for the request to the decode engine. Set when the last answer ends.
  std::optional<KvTransferParams> kv_transfer;
  RequestTimes times;   // times so far, in outputs with tokens; complete in the last output
  int preemptions = 0;  // number of preemptions of the answer; set in the last output
  AnswerCost cost{};    // cost of the answer so far; complete in the last output
};

// Receives the outputs of a request on the engine's thread. Implementations must not block.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Delivers an output of one of the n answers. The last output of each answer has `finished` set.
  virtual void deliver(Output&& output) noexcept = 0;
};

}  // namespace octavo
