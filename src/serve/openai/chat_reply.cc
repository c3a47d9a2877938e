#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>

#include "http/sse.h"
#include "serve/openai/message_reader.h"
#include "serve/openai/reply.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

class ChatReply final : public Reply {
 public:
  ChatReply(const Tokenizer& tokenizer, ReplyOptions options)
      : tokenizer_(&tokenizer), options_(std::move(options)) {}

  std::string open(int index, const EchoedPrompt& prompt, const Usage* usage) override {
    json::object choice{{"index", index},
                        {"delta", {{"role", options_.role}, {"content", options_.echo}}},
                        {"logprobs", nullptr},
                        {"finish_reason", nullptr}};
    json::object out = chunk_of(std::move(choice), usage);
    if (options_.return_token_ids) out["prompt_token_ids"] = json::value_from(prompt.token_ids);
    return http::sse_event(json::serialize(out));
  }

  std::string progress(const Progress& progress) override {
    json::object choice{
        {"index", 0}, {"delta", json::object()}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    json::object out = chunk_of(std::move(choice), nullptr);
    out["prompt_progress"] = progress_json(progress);
    return http::sse_event(json::serialize(out));
  }

  std::string part(const AnswerPart& part, const Usage* usage) override {
    MessageDelta parsed = reader(part.index).read(part);
    json::object delta;
    if (!parsed.reasoning.empty()) delta["reasoning"] = parsed.reasoning;
    if (!parsed.calls.empty()) delta["tool_calls"] = calls_json(parsed, true);
    const bool plain = !options_.tools.forced && !options_.tools.dialect && parsed.reasoning.empty();
    if (plain || !parsed.content.empty()) delta["content"] = parsed.content;
    const bool reports = options_.logprobs || options_.return_token_ids;
    if (delta.empty() && !part.finish && !reports) return "";
    json::object choice{{"index", part.index},
                        {"delta", std::move(delta)},
                        {"logprobs", logprobs(part)},
                        {"finish_reason", finish_reason(part, parsed.called)}};
    if (part.finish) choice["stop_reason"] = stop_reason_json(part.stop_reason);
    if (options_.return_token_ids) choice["token_ids"] = json::value_from(part.token_ids);
    if (options_.return_token_ids && part.finish) choice["weight_versions"] = weight_versions_json(part);
    json::object out = chunk_of(std::move(choice), usage);
    add_kv_transfer(std::span(&part, 1), out);
    return http::sse_event(json::serialize(out));
  }

  std::string close(const Usage& usage) override {
    if (!options_.include_usage) return stream_end(std::nullopt);
    json::object out = head("chat.completion.chunk");
    out["choices"] = json::array();
    add_usage(usage, out);
    return stream_end(out);
  }

  std::string failed(const Error& error) override { return stream_failed(error); }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                    const Usage& usage) override {
    json::array choices;
    for (const AnswerPart& part : parts) {
      MessageDelta parsed = reader(part.index).read_whole(part);
      parsed.content.insert(0, options_.echo);
      json::object message{
          {"role", options_.role}, {"content", parsed.content}, {"refusal", nullptr}, {"reasoning", nullptr}};
      if (!parsed.reasoning.empty()) message["reasoning"] = parsed.reasoning;
      if (parsed.content.empty() && (parsed.called || options_.tools.forced || !parsed.reasoning.empty()))
        message["content"] = nullptr;
      if (parsed.called) message["tool_calls"] = calls_json(parsed, false);
      json::object choice{{"index", part.index},
                          {"message", std::move(message)},
                          {"logprobs", logprobs(part)},
                          {"finish_reason", finish_reason(part, parsed.called)},
                          {"stop_reason", stop_reason_json(part.stop_reason)},
                          {"token_ids", nullptr}};
      if (options_.return_token_ids) choice["token_ids"] = json::value_from(part.token_ids);
      if (options_.return_token_ids && part.finish) choice["weight_versions"] = weight_versions_json(part);
      choices.push_back(std::move(choice));
    }
    json::object out = head("chat.completion");
    out["choices"] = std::move(choices);
    add_usage(usage, out);
    add_unused(out);
    add_kv_transfer(parts, out);
    // As in vLLM, fields that the request did not enable are null.
    out["prompt_logprobs"] = nullptr;
    out["prompt_token_ids"] = nullptr;
    if (options_.return_prompt_logprobs)
      out["prompt_logprobs"] = prompt_logprobs_json(*tokenizer_, options_, prompts.front());
    if (options_.return_token_ids) out["prompt_token_ids"] = json::value_from(prompts.front().token_ids);
    return json::serialize(out);
  }

 private:
  // As in OpenAI's API, the reason is "tool_calls" if the model chose the function, and "stop" if the request
  // forced it.
  json::value finish_reason(const AnswerPart& part, bool called) const {
    const bool chosen = called && !(options_.tools.forced && !options_.tools.forced->function.empty());
    if (chosen && part.finish == FinishReason::stop) return "tool_calls";
    return finish_reason_json(part.finish);
  }

  MessageReader& reader(int index) { return readers_.try_emplace(index, options_.tools).first->second; }

  static json::array calls_json(const MessageDelta& parsed, bool indexed) {
    json::array calls;
    for (const CallDelta& call : parsed.calls) {
      json::object shown = tool_call_json(call.id, call.name, call.arguments);
      if (indexed) shown["index"] = call.index;
      calls.push_back(std::move(shown));
    }
    return calls;
  }

  json::object head(std::string_view object) const {
    json::object out{
        {"id", options_.id}, {"object", object}, {"created", options_.created}, {"model", options_.model}};
    out["system_fingerprint"] =
        options_.fingerprint.empty() ? json::value(nullptr) : json::value(options_.fingerprint);
    return out;
  }

  json::object chunk_of(json::object choice, const Usage* usage) const {
    json::object out = head("chat.completion.chunk");
    out["choices"] = json::array{std::move(choice)};
    if (usage) out["usage"] = usage_json(*usage);
    return out;
  }

  json::value logprobs(const AnswerPart& part) const {
    if (!options_.logprobs) return nullptr;
    return json::object{{"content", token_logprobs_json(*tokenizer_, options_, part)}, {"refusal", nullptr}};
  }

  const Tokenizer* tokenizer_;
  ReplyOptions options_;
  std::map<int, MessageReader> readers_;  // the key is the index of the answer
};

}  // namespace

std::unique_ptr<Reply> chat_reply(const Tokenizer& tokenizer, ReplyOptions options) {
  return std::make_unique<ChatReply>(tokenizer, std::move(options));
}

}  // namespace octavo::openai
