// Interface of the replies of all generation routes, and the replies of /v1/chat/completions and
// /v1/completions. A Reply belongs to one request. Its functions are called in the order of the answer.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "accounts/accounts.h"
#include "base/error.h"
#include "request/answer_cost.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/tool_choice.h"
#include "text/tokenizer.h"

namespace octavo::openai {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::optional<std::int64_t> cached_tokens{};
  std::optional<std::int64_t> stored_tokens{};  // prompt tokens that the request added to its session
  std::optional<std::int64_t> reasoning_tokens{};
  std::optional<RequestTimes> times{};  // times of a single answer; reported as "metrics" if set
  std::optional<AnswerCost> cost{};     // cost of all answers; reported as "octavo" if set
  const Prices* prices = nullptr;       // prices for `cost`; null: no money is reported
};

// A prompt, for replies that repeat it.
struct EchoedPrompt {
  int tokens = 0;
  std::string text{};                // prompt text; set with echo
  std::vector<TokenId> token_ids{};  // set with return_token_ids, prompt_logprobs, or echo plus logprobs
  std::vector<TokenLogprobs> logprobs{};
};

struct Progress {
  std::int64_t total = 0;
  std::int64_t cached = 0;    // number of tokens found in the prefix cache
  std::int64_t computed = 0;  // number of tokens computed so far, including `cached`
  double ms = 0;              // milliseconds since the first step of the request
};

struct ReplyOptions {
  std::string id;
  std::string model;
  std::string fingerprint;  // "": null in the reply
  std::string role = "assistant";
  std::string echo{};        // only for chats: text that the reply puts before the content of each answer
  std::int64_t created = 0;  // seconds since 1970
  bool logprobs = false;
  int top_logprobs = 0;          // number of log-probabilities per position; -1: all
  bool listed_logprobs = false;  // whether to report the sampled token and the tokens of logprob_token_ids
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_prompt_logprobs = false;
  // whether the prompt's log-probabilities are sent as prompt_token_id_logprobs
  bool return_prompt_scores = false;
  bool include_usage = false;  // whether to report the usage at the end of a stream
  ToolUse tools{};             // only for chats
  int n = 1;
};

class Reply {
 public:
  virtual ~Reply() = default;

  // open() to keep_alive() return server-sent events of a stream, or "" if there is nothing to send. usage:
  // the current usage if the client requested it in every event, otherwise null; open() also gets it if
  // shows_cached_tokens(). open() is called before the first part of each answer.
  virtual std::string open(int index, const EchoedPrompt& prompt, const Usage* usage) = 0;
  virtual std::string part(const AnswerPart& part, const Usage* usage) = 0;
  // Called after the parts that the client already has (resume_token_ids).
  virtual void resumed() {}
  // Called after the last part of all answers.
  virtual std::string close(const Usage& usage) = 0;
  // Called before the first part. Returns "" if the protocol has no such event.
  virtual std::string progress(const Progress&) { return ""; }
  // Returns bytes to send if there is no new output for a while. Clients ignore these bytes; they keep
  // proxies from closing the connection.
  virtual std::string keep_alive(const EchoedPrompt&) { return ": keep-alive\n\n"; }
  // Ends a broken stream with an error.
  virtual std::string failed(const Error& error) = 0;

  virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }
  // Returns whether close() and whole() need Usage::times.
  virtual bool shows_times() const { return false; }
  // Returns whether open(), close() and whole() need Usage::cached_tokens even without
  // --enable-prompt-tokens-details.
  virtual bool shows_cached_tokens() const { return false; }

  virtual std::string_view content_type() const { return "application/json"; }
  // Returns the body of a reply that is not a stream. parts: one whole answer each, sorted by index; answers
  // i * n to i * n + n - 1 belong to prompts[i].
  virtual std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                            const Usage& usage) = 0;
};

std::unique_ptr<Reply> chat_reply(const Tokenizer& tokenizer, ReplyOptions options);
std::unique_ptr<Reply> completion_reply(const Tokenizer& tokenizer, ReplyOptions options);

// Returns the end of a stream whose events have no names: the usage, if requested, and "[DONE]".
std::string stream_end(const std::optional<boost::json::object>& usage_chunk);
std::string stream_failed(const Error& error);
boost::json::object usage_json(const Usage& usage);
// Adds "octavo" to a usage object if the cost is set.
void add_cost(const Usage& usage, boost::json::object& out);
// Returns the progress in the format of llama.cpp's prompt_progress.
boost::json::object progress_json(const Progress& progress);
// Adds "usage" and vLLM's "metrics" (times in milliseconds). Times of events that did not happen are null.
void add_usage(const Usage& usage, boost::json::object& out);
// Returns the value of the header Server-Timing (W3C): the times queue, ttft and generation, as far as they
// are known.
std::string server_timing(const RequestTimes& times);
// Adds the fields of vLLM's replies that this server never sets, as null, because vLLM's clients read them
// without checking that they exist.
void add_unused(boost::json::object& out);
// Adds "kv_transfer_params" if one of the parts has them.
void add_kv_transfer(std::span<const AnswerPart> parts, boost::json::object& out);
// Returns vLLM's weight_versions, [{"version", "start", "end"}], for the output tokens of the whole answer.
boost::json::array weight_versions_json(const AnswerPart& part);
boost::json::value stop_reason_json(const StopReason& reason);
boost::json::value finish_reason_json(const std::optional<FinishReason>& reason);
// Returns vLLM's prompt_logprobs: null for the first position, then {"id": {"logprob", "rank",
// "decoded_token"}}.
// With ReplyOptions::return_prompt_scores, each position has only the prompt's own token.
boost::json::value prompt_logprobs_json(const Tokenizer& tokenizer, const ReplyOptions& options,
                                        const EchoedPrompt& prompt);

// Returns {"token", "logprob", "bytes", "top_logprobs"} for each position, for chats and responses.
boost::json::array token_logprobs_json(const Tokenizer& tokenizer, const ReplyOptions& options,
                                       const AnswerPart& part);

// Returns a token's text for logprobs, or "token_id:7" if `as_id` is set. Bytes that are not a complete
// character become U+FFFD.
std::string shown_token(const Tokenizer& tokenizer, TokenId id, bool as_id);
// Returns a log-probability for JSON, which has no infinity. Impossible tokens get -9999, as in vLLM.
double shown_logprob(float logprob);
// Returns the `count` most likely tokens, or all tokens if `count` is -1.
std::span<const std::pair<TokenId, float>> most_likely(const TokenLogprobs& entry, int count);

}  // namespace octavo::openai
