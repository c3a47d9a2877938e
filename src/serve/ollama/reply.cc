#include "serve/ollama/reply.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "base/exact_json.h"
#include "openai/ollama_errors.h"
#include "serve/openai/message_reader.h"

namespace octavo::ollama {

namespace json = boost::json;
using openai::AnswerPart;
using openai::EchoedPrompt;
using openai::Usage;

namespace {

json::object line_of(std::string_view model) { return {{"model", model}, {"created_at", time_now()}}; }

void put_text(Shape shape, std::string_view text, std::string_view thoughts, json::object& out) {
  json::object message;
  if (shape == Shape::chat) message["role"] = "assistant";
  message[shape == Shape::chat ? "content" : "response"] = text;
  if (!thoughts.empty()) message["thinking"] = thoughts;
  if (shape == Shape::chat)
    out["message"] = std::move(message);
  else
    for (auto& [name, value] : message) out[name] = std::move(value);
}

std::int64_t nanoseconds(std::int64_t from_us, std::int64_t to_us) {
  return from_us > 0 && to_us > from_us ? (to_us - from_us) * 1000 : 0;
}

// Adds counts and times to the last object of an answer. The times are in nanoseconds.
void put_usage(const Usage& usage, json::object& out) {
  const RequestTimes times = usage.times.value_or(RequestTimes{});
  out["total_duration"] = nanoseconds(times.arrived_us, times.last_token_us);
  out["load_duration"] = 0;
  out["prompt_eval_count"] = usage.prompt_tokens;
  out["prompt_eval_duration"] = nanoseconds(times.scheduled_us, times.first_token_us);
  out["eval_count"] = usage.completion_tokens;
  out["eval_duration"] = nanoseconds(times.first_token_us, times.last_token_us);
}

std::string written(const json::object& object) { return exact_json_text(object) + '\n'; }

class OllamaReply final : public openai::Reply {
 public:
  OllamaReply(Shape shape, const Tokenizer& tokenizer, openai::ReplyOptions options)
      : shape_(shape), tokenizer_(&tokenizer), options_(std::move(options)), reader_(options_.tools) {}

  std::string open(int, const EchoedPrompt&, const Usage*) override { return ""; }

  std::string part(const AnswerPart& part, const Usage*) override {
    const openai::MessageDelta parsed = reader_.read(part);
    take_calls(parsed);
    json::array calls = part.finish ? take_complete(true) : take_complete(false);
    if (part.finish) finish_ = part.finish;
    if (parsed.content.empty() && parsed.reasoning.empty() && calls.empty() && part.logprobs.empty())
      return "";
    json::object out = line_of(options_.model);
    put_text(shape_, parsed.content, parsed.reasoning, out);
    if (!calls.empty()) put_calls(std::move(calls), out);
    out["done"] = false;
    put_logprobs(part, out);
    return written(out);
  }

  std::string close(const Usage& usage) override {
    json::object out = line_of(options_.model);
    put_text(shape_, "", "", out);
    put_end(usage, out);
    return written(out);
  }

  std::string keep_alive(const EchoedPrompt&) override {
    json::object out = line_of(options_.model);
    put_text(shape_, "", "", out);
    out["done"] = false;
    return written(out);
  }

  std::string failed(const Error& error) override { return error_json(error) + '\n'; }

  std::string_view stream_type() const override { return "application/x-ndjson"; }
  bool shows_times() const override { return true; }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt>,
                    const Usage& usage) override {
    const AnswerPart& part = parts.front();
    const openai::MessageDelta parsed = reader_.read_whole(part);
    take_calls(parsed);
    finish_ = part.finish;
    json::object out = line_of(options_.model);
    put_text(shape_, parsed.content, parsed.reasoning, out);
    if (json::array calls = take_complete(true); !calls.empty()) put_calls(std::move(calls), out);
    put_logprobs(part, out);
    put_end(usage, out);
    return exact_json_text(out);
  }

 private:
  // A tool call of the model. Clients receive only complete calls.
  struct Call {
    std::string id, name, arguments;
  };

  void take_calls(const openai::MessageDelta& parsed) {
    for (const openai::CallDelta& delta : parsed.calls) {
      if (!delta.id.empty()) calls_.push_back({.id = delta.id, .name = delta.name, .arguments = {}});
      if (!calls_.empty()) calls_.back().arguments += delta.arguments;
    }
  }

  // Returns the complete calls: all calls if `all` is true, otherwise all but the last one.
  json::array take_complete(bool all) {
    json::array complete;
    while (calls_.size() > (all ? 0U : 1U)) {
      Call call = std::move(calls_.front());
      calls_.erase(calls_.begin());
      boost::system::error_code broken;
      json::value arguments = parse_exact_json(call.arguments, broken);
      if (broken || !arguments.is_object()) arguments = json::object();
      complete.push_back(
          {{"id", call.id},
           {"function",
            {{"index", calls_sent_++}, {"name", call.name}, {"arguments", std::move(arguments)}}}});
    }
    return complete;
  }

  void put_calls(json::array calls, json::object& out) const {
    json::object& message = shape_ == Shape::chat ? out.at("message").get_object() : out;
    message["tool_calls"] = std::move(calls);
  }

  void put_logprobs(const AnswerPart& part, json::object& out) const {
    if (options_.logprobs) out["logprobs"] = token_logprobs_json(*tokenizer_, options_, part);
  }

  void put_end(const Usage& usage, json::object& out) const {
    out["done"] = true;
    out["done_reason"] = finish_ == FinishReason::length ? "length" : "stop";
    put_usage(usage, out);
  }

  const Shape shape_;
  const Tokenizer* tokenizer_;
  const openai::ReplyOptions options_;
  openai::MessageReader reader_;
  std::vector<Call> calls_{};  // calls that the client has not received yet
  int calls_sent_ = 0;
  std::optional<FinishReason> finish_{};
};

}  // namespace

std::unique_ptr<openai::Reply> make_reply(Shape shape, const Tokenizer& tokenizer,
                                          openai::ReplyOptions options) {
  return std::make_unique<OllamaReply>(shape, tokenizer, std::move(options));
}

std::string hold_reply(Shape shape, const Hold& hold) {
  json::object out = line_of(hold.model);
  put_text(shape, "", "", out);
  out["done"] = true;
  out["done_reason"] = hold.load ? "load" : "unload";
  return written(out);
}

std::string time_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(us / 1000000)),
                     us % 1000000);
}

std::string time_of(std::int64_t seconds_since_1970) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(static_cast<std::time_t>(seconds_since_1970)));
}

}  // namespace octavo::ollama
