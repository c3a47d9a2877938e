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
    Message message = message_of(part);
    json::object delta;
    if (!part.reasoning.empty()) delta["reasoning"] = part.reasoning;
    if (!message.calls.empty()) delta["tool_calls"] = std::move(message.calls);
    const bool plain = !options_.tools.forced && !options_.tools.dialect && part.reasoning.empty();
    if (plain || !message.content.empty()) delta["content"] = message.content;
    const bool reports = options_.logprobs || options_.return_token_ids;
    if (delta.empty() && !part.finish && !reports) return "";
    json::object choice{{"index", part.index},
                        {"delta", std::move(delta)},
                        {"logprobs", logprobs(part)},
                        {"finish_reason", finish_reason(part, message.called)}};
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
      Message said = message_of(part);
      json::object message{{"role", "assistant"}, {"content", said.content}, {"refusal", nullptr}};
      if (!part.reasoning.empty()) message["reasoning"] = part.reasoning;
      if (said.content.empty() && (said.called || !part.reasoning.empty())) message["content"] = nullptr;
      if (said.called) {
        for (json::value& call : said.calls) call.as_object().erase("index");
        message["tool_calls"] = std::move(said.calls);
      }
      json::object choice{{"index", part.index},
                          {"message", std::move(message)},
                          {"logprobs", logprobs(part)},
                          {"finish_reason", finish_reason(part, said.called)},
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
  // What a part adds to its choice's message.
  struct Message {
    std::string content;
    json::array calls;    // each with its index
    bool called = false;  // now or before
  };

  // As OpenAI has it: "tool_calls" where the model chose what to call, "stop" where the request named it.
  json::value finish_reason(const AnswerPart& part, bool called) const {
    const bool chosen = called && !(options_.tools.forced && !options_.tools.forced->function.empty());
    if (chosen && part.finish == FinishReason::stop) return "tool_calls";
    return finish_reason_json(part.finish);
  }

  Message message_of(const AnswerPart& part) {
    if (options_.tools.forced) return forced_call(part);
    if (options_.tools.dialect) return free_calls(part);
    return {.content = part.text, .calls = {}};
  }

  // Calls that the model chose to write.
  Message free_calls(const AnswerPart& part) {
    const ToolUse& tools = options_.tools;
    ToolParser& parser =
        parsers_.try_emplace(part.index, *tools.dialect, tools.tools, tools.parallel).first->second;
    ParsedText parsed = parser.push(part.text);
    if (part.finish) parsed.append(parser.finish());
    Message message{.content = std::move(parsed.content), .calls = {}, .called = parser.calls() > 0};
    for (const CallPiece& piece : parsed.calls) {
      const std::string id = piece.name.empty() ? "" : new_tool_call_id(tools.dialect);
      message.calls.push_back(indexed(tool_call_json(id, piece.name, piece.arguments), piece.index));
    }
    return message;
  }

  // A named function's arguments stream as they come; a list of calls is shown when it is whole.
  Message forced_call(const AnswerPart& part) {
    const ForcedTool& forced = *options_.tools.forced;
    std::string& so_far = texts_[part.index];
    const bool first = so_far.empty();
    so_far += part.text;
    Message message;
    if (!forced.function.empty()) {
      message.called = !so_far.empty();
      if (!part.text.empty())
        message.calls.push_back(
            indexed(tool_call_json(first ? new_tool_call_id() : "", forced.function, part.text), 0));
    } else if (part.finish) {
      message.calls = tool_calls_of(so_far, forced);
      message.called = !message.calls.empty();
      for (std::size_t i = 0; i < message.calls.size(); ++i) message.calls[i].as_object()["index"] = i;
      if (!message.called) message.content = so_far;
    }
    return message;
  }

  static json::object indexed(json::object call, int index) {
    call["index"] = index;
    return call;
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
  // By choice.
  std::map<int, std::string> texts_;  // of forced calls, as far as they have come
  std::map<int, ToolParser> parsers_;
};

}  // namespace

std::unique_ptr<Reply> chat_reply(const Tokenizer& tokenizer, ReplyOptions options) {
  return std::make_unique<ChatReply>(tokenizer, std::move(options));
}

}  // namespace octavo::openai
