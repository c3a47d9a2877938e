#include "serve/anthropic/messages_reply.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/exact_json.h"
#include "http/sse.h"
#include "openai/anthropic_errors.h"
#include "serve/openai/message_reader.h"
#include "serve/openai/named_events.h"
#include "serve/openai/reply.h"

namespace octavo::anthropic {

namespace json = boost::json;
using openai::AnswerPart;
using openai::EchoedPrompt;
using openai::Usage;

namespace {

// Returns the usage in Anthropic's format, which counts cached tokens separately.
json::object usage_of(const Usage& usage) {
  const std::int64_t cached = usage.cached_tokens.value_or(0);
  const std::int64_t stored = usage.stored_tokens.value_or(0);
  json::object out{{"input_tokens", usage.prompt_tokens - cached - stored},
                   {"output_tokens", usage.completion_tokens},
                   {"cache_creation_input_tokens", stored},
                   {"cache_read_input_tokens", cached}};
  openai::add_cost(usage, out);
  return out;
}

// Writes content blocks one after another. Each block has a start event, delta events and a stop event.
class MessagesReply final : public openai::Reply {
 public:
  explicit MessagesReply(openai::ReplyOptions options)
      : options_(std::move(options)), reader_(options_.tools), events_(options_.return_token_ids) {}

  std::string open(int, const EchoedPrompt& prompt, const Usage* usage) override {
    // A keep-alive has already sent the first event.
    if (std::exchange(begun_, true)) return "";
    Usage start{.prompt_tokens = prompt.tokens};
    if (usage) start.cached_tokens = usage->cached_tokens, start.stored_tokens = usage->stored_tokens;
    event("message_start", {{"message", message(usage_of(start))}});
    return events_.take();
  }

  std::string keep_alive(const EchoedPrompt& prompt) override {
    std::string out = open(0, prompt, nullptr);
    event("ping", {});
    return out + events_.take();
  }

  std::string part(const AnswerPart& part, const Usage*) override {
    add(reader_.read(part), part);
    events_.count(part.token_ids);
    return part.finish ? events_.take_unfinished() : events_.take();
  }

  void resumed() override { events_.forget_tokens(); }

  std::string close(const Usage& usage) override {
    end_block();
    event("message_delta", {{"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                            {"usage", usage_of(usage)}});
    event("message_stop", {});
    return events_.take();
  }

  std::string failed(const Error& error) override { return http::sse_event("error", error_json(error)); }

  bool shows_cached_tokens() const override { return true; }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt>,
                    const Usage& usage) override {
    add(reader_.read_whole(parts.front()), parts.front());
    end_block();
    json::object out = message(usage_of(usage));
    out["content"] = std::move(content_);
    out["stop_reason"] = stop_reason();
    out["stop_sequence"] = stop_sequence();
    openai::add_kv_transfer(parts, out);
    return exact_json_text(out);
  }

 private:
  json::object message(json::object usage) const {
    return {{"id", options_.id},        {"type", "message"},        {"role", "assistant"},
            {"model", options_.model},  {"content", json::array()}, {"stop_reason", nullptr},
            {"stop_sequence", nullptr}, {"usage", std::move(usage)}};
  }

  void add(const openai::MessageDelta& parsed, const AnswerPart& part) {
    parsed.in_order(
        [&](const std::string& thought) { grow("thinking", "thinking_delta", "thinking", thought); },
        [&](const std::string& text) { add_text(text); },
        [&](const openai::CallDelta& call) { add_call(call); });
    if (!part.finish) return;
    finish_ = part.finish;
    if (const auto* text = std::get_if<std::string>(&part.stop_reason)) stop_ = *text;
  }

  void add_text(std::string text) {
    if (!block_.empty() && block_.at("type") == "tool_use") text.erase(0, openai::spaces_at_start(text));
    if (!text.empty()) grow("text", "text_delta", "text", text);
  }

  void add_call(const openai::CallDelta& call) {
    if (!call.id.empty()) {
      end_block();
      begin({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", json::object()}});
      called_ = true;
    }
    if (!call.arguments.empty()) grow("tool_use", "input_json_delta", "partial_json", call.arguments);
  }

  void begin(json::object block) {
    event("content_block_start", {{"index", content_.size()}, {"content_block", block}});
    block_ = std::move(block);
  }

  void grow(std::string_view type, std::string_view delta, std::string_view field, const std::string& piece) {
    if (block_.empty() || block_.at("type").as_string() != type) {
      end_block();
      json::object block{{"type", type}, {field, ""}};
      if (type == "thinking") block["signature"] = "";
      begin(std::move(block));
    }
    text_ += piece;
    event("content_block_delta", {{"index", content_.size()}, {"delta", {{"type", delta}, {field, piece}}}});
  }

  void end_block() {
    if (block_.empty()) return;
    const std::string_view type = block_.at("type").as_string();
    if (type == "tool_use") {
      boost::system::error_code broken;
      json::value input = parse_exact_json(text_, broken);
      if (!broken && input.is_object()) block_["input"] = std::move(input);
    } else if (type == "thinking") {
      block_["thinking"] = text_;
      event("content_block_delta",
            {{"index", content_.size()}, {"delta", {{"type", "signature_delta"}, {"signature", ""}}}});
    } else {
      block_["text"] = text_;
    }
    event("content_block_stop", {{"index", content_.size()}});
    content_.push_back(std::exchange(block_, {}));
    text_.clear();
  }

  json::value stop_reason() const {
    if (finish_ == FinishReason::length) return "max_tokens";
    if (finish_ != FinishReason::stop) return nullptr;
    if (called_) return "tool_use";
    return stop_ ? "stop_sequence" : "end_turn";
  }
  json::value stop_sequence() const {
    return stop_reason() == "stop_sequence" ? json::value(*stop_) : json::value(nullptr);
  }

  void event(std::string_view type, json::object fields) {
    fields["type"] = type;
    events_.add(type, std::move(fields));
  }

  const openai::ReplyOptions options_;
  openai::MessageReader reader_;
  json::array content_{};
  json::object block_{};  // block that is being written; empty: no block is open
  std::string text_{};
  bool begun_ = false;
  bool called_ = false;
  std::optional<FinishReason> finish_{};
  std::optional<std::string> stop_{};
  openai::NamedEvents events_;
};

}  // namespace

std::unique_ptr<openai::Reply> messages_reply(const Tokenizer&, openai::ReplyOptions options) {
  return std::make_unique<MessagesReply>(std::move(options));
}

}  // namespace octavo::anthropic
