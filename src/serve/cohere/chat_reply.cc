#include "serve/cohere/chat_reply.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>

#include "http/sse.h"
#include "serve/openai/message_reader.h"

namespace octavo::cohere {

namespace json = boost::json;
using openai::AnswerPart;
using openai::EchoedPrompt;
using openai::Usage;

namespace {

json::object usage_in_cohere_format(const Usage& usage) {
  const json::object tokens{{"input_tokens", usage.prompt_tokens},
                            {"output_tokens", usage.completion_tokens}};
  json::object out{{"billed_units", tokens}, {"tokens", tokens}};
  if (usage.cached_tokens) out["cached_tokens"] = *usage.cached_tokens;
  openai::add_cost(usage, out);
  return out;
}

// Writes content blocks and tool calls one after another. Each has a start event, delta events and an end
// event.
class CohereReply final : public openai::Reply {
 public:
  CohereReply(const Tokenizer& tokenizer, openai::ReplyOptions options, bool plans)
      : tokenizer_(&tokenizer), options_(std::move(options)), plans_(plans), reader_(options_.tools) {}

  std::string open(int, const EchoedPrompt&, const Usage*) override {
    return http::sse_event(json::serialize(json::object{
        {"type", "message-start"}, {"id", options_.id}, {"delta", {{"message", {{"role", "assistant"}}}}}}));
  }

  std::string part(const AnswerPart& part, const Usage*) override {
    reader_.read(part).in_order([&](const std::string& thought) { add_thought(thought); },
                                [&](const std::string& text) { grow("text", text); },
                                [&](const openai::CallDelta& call) { add_call(call); });
    note_end(part);
    return std::exchange(events_, {});
  }

  std::string close(const Usage& usage) override {
    end_block();
    event("message-end",
          {{"id", options_.id},
           {"delta", {{"finish_reason", finish_reason()}, {"usage", usage_in_cohere_format(usage)}}}});
    return std::exchange(events_, {}) + kDone;
  }

  std::string failed(const Error& error) override {
    end_block();
    event("message-end",
          {{"id", options_.id}, {"delta", {{"error", error.message}, {"finish_reason", "ERROR"}}}});
    return std::exchange(events_, {}) + kDone;
  }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt>,
                    const Usage& usage) override {
    const openai::MessageDelta answer = reader_.read_whole(parts.front());
    json::object message{{"role", "assistant"}};
    json::array content;
    const bool plan = plans_ && answer.called;
    if (!answer.reasoning.empty() && plan) message["tool_plan"] = answer.reasoning;
    if (!answer.reasoning.empty() && !plan)
      content.push_back(json::object{{"type", "thinking"}, {"thinking", answer.reasoning}});
    if (!answer.content.empty()) content.push_back(json::object{{"type", "text"}, {"text", answer.content}});
    if (!content.empty()) message["content"] = std::move(content);
    if (answer.called) message["tool_calls"] = calls_of(answer);
    called_ = answer.called;
    note_end(parts.front());
    json::object out{{"id", options_.id},
                     {"finish_reason", finish_reason()},
                     {"message", std::move(message)},
                     {"usage", usage_in_cohere_format(usage)}};
    if (options_.logprobs) out["logprobs"] = logprobs_of(parts.front());
    openai::add_kv_transfer(parts, out);
    return json::serialize(out);
  }

 private:
  static constexpr const char* kDone = "data: [DONE]\n\n";

  static json::array calls_of(const openai::MessageDelta& answer) {
    json::array calls;
    for (const openai::CallDelta& call : answer.calls)
      calls.push_back(openai::tool_call_json(call.id, call.name, call.arguments));
    return calls;
  }

  json::array logprobs_of(const AnswerPart& part) const {
    const json::array entries = openai::token_logprobs_json(*tokenizer_, options_, part);
    json::array out;
    for (std::size_t i = 0; i < std::min(entries.size(), part.token_ids.size()); ++i)
      out.push_back(json::object{{"text", entries[i].at("token")},
                                 {"token_ids", json::array{part.token_ids[i]}},
                                 {"logprobs", json::array{entries[i].at("logprob")}}});
    return out;
  }

  void note_end(const AnswerPart& part) {
    if (!part.finish) return;
    finish_ = *part.finish;
    stopped_by_text_ = std::holds_alternative<std::string>(part.stop_reason);
  }

  std::string_view finish_reason() const {
    if (finish_ == FinishReason::length) return "MAX_TOKENS";
    if (finish_ == FinishReason::abort || finish_ == FinishReason::error) return "ERROR";
    if (called_ && finish_ == FinishReason::stop) return "TOOL_CALL";
    return stopped_by_text_ ? "STOP_SEQUENCE" : "COMPLETE";
  }

  void add_thought(const std::string& thought) {
    if (!plans_) return grow("thinking", thought);
    end_block();
    event("tool-plan-delta", {{"delta", {{"message", {{"tool_plan", thought}}}}}});
  }

  void grow(std::string_view type, const std::string& piece) {
    if (block_ != type) {
      end_block();
      block_ = type;
      event("content-start",
            {{"index", blocks_}, {"delta", content_delta(json::object{{"type", type}, {type, ""}})}});
    }
    event("content-delta", {{"index", blocks_}, {"delta", content_delta(json::object{{type, piece}})}});
  }

  void add_call(const openai::CallDelta& call) {
    json::object function{{"arguments", call.arguments}};
    if (!call.id.empty()) {
      end_block();
      block_ = "call";
      called_ = true;
      call_ = call.index;
      function["name"] = call.name;
      event("tool-call-start",
            {{"index", call_},
             {"delta",
              call_delta(json::object{{"id", call.id}, {"type", "function"}, {"function", function}})}});
    } else if (!call.arguments.empty()) {
      event("tool-call-delta",
            {{"index", call_}, {"delta", call_delta(json::object{{"function", function}})}});
    }
  }

  void end_block() {
    if (block_.empty()) return;
    if (std::exchange(block_, "") == "call")
      event("tool-call-end", {{"index", call_}});
    else
      event("content-end", {{"index", blocks_++}});
  }

  static json::object content_delta(json::object content) {
    return {{"message", json::object{{"content", std::move(content)}}}};
  }
  static json::object call_delta(json::object call) {
    return {{"message", json::object{{"tool_calls", std::move(call)}}}};
  }

  void event(std::string_view type, json::object fields) {
    fields["type"] = type;
    events_ += http::sse_event(json::serialize(fields));
  }

  const Tokenizer* tokenizer_;
  const openai::ReplyOptions options_;
  const bool plans_;
  openai::MessageReader reader_;
  std::string events_{};
  std::string_view block_{};  // type of the open block: "text", "thinking" or "call"; "": no block is open
  int blocks_ = 0;            // number of content blocks that have ended
  int call_ = 0;              // index of the last call
  bool called_ = false;
  bool stopped_by_text_ = false;
  FinishReason finish_ = FinishReason::stop;
};

}  // namespace

std::unique_ptr<openai::Reply> chat_reply(const Tokenizer& tokenizer, openai::ReplyOptions options,
                                          bool plans) {
  return std::make_unique<CohereReply>(tokenizer, std::move(options), plans);
}

}  // namespace octavo::cohere
