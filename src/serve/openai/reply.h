// Replies in OpenAI's two shapes. A reply belongs to one request; its functions are called in the order of
// the answer.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/openai/output_processor.h"
#include "serve/openai/tool_choice.h"
#include "text/tokenizer.h"

namespace octavo::openai {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::optional<std::int64_t> cached_tokens{};     // reported when set
  std::optional<std::int64_t> reasoning_tokens{};  // of the completion; reported when set
  std::optional<RequestTimes> times{};             // of a single answer; reported as "metrics" when set
};

// A prompt, as replies show it.
struct EchoedPrompt {
  int tokens = 0;
  std::string text{};                // with echo
  std::vector<TokenId> token_ids{};  // with return_token_ids, echo + logprobs, or prompt_logprobs
  std::vector<TokenLogprobs> logprobs{};
};

// How much of a request's prompts is computed.
struct Progress {
  std::int64_t total = 0;     // prompt tokens
  std::int64_t cached = 0;    // found in the prefix cache
  std::int64_t computed = 0;  // with the cached ones
  double ms = 0;              // since the first step
};

struct ReplyOptions {
  std::string id;
  std::string model;
  std::string fingerprint;  // "": null
  std::string role = "assistant";
  std::int64_t created = 0;  // seconds since 1970
  bool logprobs = false;
  int top_logprobs = 0;  // how many to show of each position; -1: all
  bool listed_logprobs = false;  // logprob_token_ids, and the sampled token
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool return_prompt_logprobs = false;
  bool include_usage = false;  // at the end of a stream
  ToolUse tools{};             // of chats
  int n = 1;                   // answers of each prompt
};

class Reply {
 public:
  virtual ~Reply() = default;

  // Streams: server-sent events; "" if there is nothing to send. usage: the current count, if requested for
  // every event. Call open() before the first part of a choice.
  virtual std::string open(int index, const EchoedPrompt& prompt, const Usage* usage) = 0;
  virtual std::string part(const AnswerPart& part, const Usage* usage) = 0;
  // After the last part of all choices.
  virtual std::string close(const Usage& usage) = 0;
  // Before the first part; "" in protocols without such an event.
  virtual std::string progress(const Progress&) { return ""; }
  // Bytes of a stream that has nothing to say yet: clients ignore them, proxies see that it is alive.
  virtual std::string keep_alive(const EchoedPrompt&) { return ": keep-alive\n\n"; }
  // Instead of the missing rest.
  virtual std::string failed(const Error& error) = 0;

  // The type of a stream.
  virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }
  // Whether close() and whole() need Usage::times.
  virtual bool shows_times() const { return false; }

  virtual std::string_view content_type() const { return "application/json"; }
  // The body of a reply that is not streamed. Parts are ordered by index; prompts[i] belongs to the choices i
  // * n .. i * n
  // + n - 1.
  virtual std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                            const Usage& usage) = 0;
};

std::unique_ptr<Reply> chat_reply(const Tokenizer& tokenizer, ReplyOptions options);
std::unique_ptr<Reply> completion_reply(const Tokenizer& tokenizer, ReplyOptions options);

// --- What both shapes share ---

// The end of a stream of data-only events: the usage, if requested, and "[DONE]".
std::string stream_end(const std::optional<boost::json::object>& usage_chunk);
std::string stream_failed(const Error& error);
boost::json::object usage_json(const Usage& usage);
// llama.cpp's prompt_progress.
boost::json::object progress_json(const Progress& progress);
// Adds "usage", and "metrics" as in vLLM: milliseconds, null for moments that an answer did not reach.
void add_usage(const Usage& usage, boost::json::object& out);
// The same for the header Server-Timing (W3C): queue, ttft and generation, as far as they are known.
std::string server_timing(const RequestTimes& times);
// Null fields of a whole reply, which vLLM's clients read without asking whether they exist.
void add_unused(boost::json::object& out);
// "kv_transfer_params", where one of the parts has them.
void add_kv_transfer(std::span<const AnswerPart> parts, boost::json::object& out);
boost::json::value stop_reason_json(const StopReason& reason);
boost::json::value finish_reason_json(const std::optional<FinishReason>& reason);
// vLLM's prompt_logprobs: null for the first position, then {"id": {"logprob", "rank", "decoded_token"}}.
boost::json::value prompt_logprobs_json(const Tokenizer& tokenizer, const EchoedPrompt& prompt);

// {"token", "logprob", "bytes", "top_logprobs"} for each position, in chats and responses.
boost::json::array token_logprobs_json(const Tokenizer& tokenizer, const ReplyOptions& options,
                                       const AnswerPart& part);

// A token's text in logprobs: "token_id:7" if requested, U+FFFD for bytes that are not a whole character.
std::string shown_token(const Tokenizer& tokenizer, TokenId id, bool as_id);
// JSON has no infinity: impossible tokens are shown as -9999, as vLLM does.
double shown_logprob(float logprob);
// The first `count` of the most likely tokens (-1: all).
std::span<const std::pair<TokenId, float>> most_likely(const TokenLogprobs& entry, int count);

}  // namespace octavo::openai
