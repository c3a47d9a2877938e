#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <map>

#include "serve/openai/reply.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

json::array bytes_json(const Tokenizer& tokenizer, TokenId id) {
  json::array bytes;
  for (const char byte : tokenizer.token_bytes(id).value_or(""))
    bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

class ChatReply final : public Reply {
 public:
  ChatReply(const Tokenizer& tokenizer, ReplyOptions options)
      : tokenizer_(&tokenizer), options_(std::move(options)) {}

  std::string opening_chunk(int index, const Usage* usage) override {
    json::object choice{{"index", index},
                        {"delta", {{"role", "assistant"}, {"content", ""}}},
                        {"logprobs", nullptr},
                        {"finish_reason", nullptr}};
    return chunk_of(std::move(choice), usage);
  }

  std::string chunk(const AnswerPart& part, const Usage* usage) override {
    json::object delta{{"content", part.text}};
    bool calls = false;
    if (options_.forced_tool) {
      delta = call_delta(part);
      if (delta.empty()) return "";
      calls = delta.contains("tool_calls");
    }
    json::object choice{{"index", part.index},
                        {"delta", std::move(delta)},
                        {"logprobs", logprobs(part)},
                        {"finish_reason", finish_reason(part, calls)}};
    if (part.finish) choice["stop_reason"] = stop_reason_json(part.stop_reason);
    if (options_.return_token_ids) choice["token_ids"] = json::value_from(part.token_ids);
    return chunk_of(std::move(choice), usage);
  }

  std::string usage_chunk(const Usage& usage) override {
    json::object out = head("chat.completion.chunk");
    out["choices"] = json::array();
    out["usage"] = usage_json(usage);
    return json::serialize(out);
  }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                    const Usage& usage) override {
    json::array choices;
    for (const AnswerPart& part : parts) {
      json::object message{{"role", "assistant"}, {"content", part.text}, {"refusal", nullptr}};
      json::array calls;
      if (options_.forced_tool) calls = tool_calls_of(part.text, *options_.forced_tool);
      const bool called = !calls.empty();
      if (called) {
        message["content"] = nullptr;
        message["tool_calls"] = std::move(calls);
      }
      json::object choice{{"index", part.index},
                          {"message", std::move(message)},
                          {"logprobs", logprobs(part)},
                          {"finish_reason", finish_reason(part, called)},
                          {"stop_reason", stop_reason_json(part.stop_reason)}};
      if (options_.return_token_ids) choice["token_ids"] = json::value_from(part.token_ids);
      choices.push_back(std::move(choice));
    }
    json::object out = head("chat.completion");
    out["choices"] = std::move(choices);
    out["usage"] = usage_json(usage);
    if (options_.return_prompt_logprobs)
      out["prompt_logprobs"] = prompt_logprobs_json(*tokenizer_, prompts.front());
    if (options_.return_token_ids) out["prompt_token_ids"] = json::value_from(prompts.front().token_ids);
    return json::serialize(out);
  }

 private:
  // As OpenAI has it: "tool_calls" where the model chose what to call, "stop" where the request named it.
  json::value finish_reason(const AnswerPart& part, bool called) const {
    const bool chosen = called && options_.forced_tool->function.empty();
    if (chosen && part.finish == FinishReason::stop) return "tool_calls";
    return finish_reason_json(part.finish);
  }

  // A named function's arguments stream as they come; a list of calls is shown when it is whole.
  json::object call_delta(const AnswerPart& part) {
    const ForcedTool& forced = *options_.forced_tool;
    std::string& so_far = texts_[part.index];
    const bool first = so_far.empty();
    so_far += part.text;
    if (!forced.function.empty()) {
      const std::string id = first ? new_tool_call_id() : "";
      return calls_json({tool_call_json(id, forced.function, part.text)});
    }
    if (!part.finish) return json::object{};
    json::array calls = tool_calls_of(so_far, forced);
    return calls.empty() ? json::object{{"content", so_far}} : calls_json(std::move(calls));
  }

  static json::object calls_json(json::array calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i].as_object()["index"] = i;
    return {{"tool_calls", std::move(calls)}};
  }

  json::object head(std::string_view object) const {
    json::object out{
        {"id", options_.id}, {"object", object}, {"created", options_.created}, {"model", options_.model}};
    out["system_fingerprint"] =
        options_.fingerprint.empty() ? json::value(nullptr) : json::value(options_.fingerprint);
    return out;
  }

  std::string chunk_of(json::object choice, const Usage* usage) const {
    json::object out = head("chat.completion.chunk");
    out["choices"] = json::array{std::move(choice)};
    if (usage) out["usage"] = usage_json(*usage);
    return json::serialize(out);
  }

  json::object token_json(TokenId id, float logprob) const {
    return {{"token", shown_token(*tokenizer_, id, options_.return_tokens_as_token_ids)},
            {"logprob", shown_logprob(logprob)},
            {"bytes", bytes_json(*tokenizer_, id)}};
  }

  json::value logprobs(const AnswerPart& part) const {
    if (!options_.logprobs) return nullptr;
    json::array content;
    for (const TokenLogprobs& entry : part.logprobs) {
      json::array top;
      for (const auto& [id, logprob] : most_likely(entry, options_.top_logprobs))
        top.push_back(token_json(id, logprob));
      json::object token = token_json(entry.id, entry.logprob);
      token["top_logprobs"] = std::move(top);
      content.push_back(std::move(token));
    }
    return json::object{{"content", std::move(content)}};
  }

  const Tokenizer* tokenizer_;
  ReplyOptions options_;
  std::map<int, std::string> texts_;  // of choices that are forced calls, streamed so far
};

}  // namespace

std::unique_ptr<Reply> chat_reply(const Tokenizer& tokenizer, ReplyOptions options) {
  return std::make_unique<ChatReply>(tokenizer, std::move(options));
}

}  // namespace octavo::openai
