#include "serve/openai/responses_reply.h"

#include <fmt/format.h>

#include <boost/json/value_from.hpp>
#include <span>
#include <utility>

#include "base/exact_json.h"
#include "base/hash.h"
#include "base/log.h"
#include "serve/openai/message_reader.h"
#include "serve/openai/named_events.h"
#include "serve/openai/reply.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

enum class Kind : std::uint8_t { reasoning, message, call, custom };

// The ids depend only on the arguments. So a server that continues another server's stream writes the same
// ids.
std::string item_id(Kind kind, const std::string& response_id, std::size_t index) {
  constexpr std::string_view kPrefixes[] = {"rs", "msg", "fc", "ctc"};
  const std::string_view prefix = kPrefixes[static_cast<std::size_t>(kind)];
  const Hash128 bits = hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(std::span(response_id)), index);
  return fmt::format("{}_{:016x}{:016x}", prefix, bits.high, bits.low);
}

// Writes output items one after another. Each item has events for its start, its pieces and its end.
class ResponsesReply final : public Reply {
 public:
  ResponsesReply(const Tokenizer& tokenizer, ReplyOptions options, ResponsesOptions responses)
      : tokenizer_(&tokenizer),
        options_(std::move(options)),
        responses_(std::move(responses)),
        response_(pending_response(responses_.response, options_)),
        reader_(options_.tools, options_.id),
        events_(options_.return_token_ids) {
    if (responses_.background)
      responses_.store->begin(options_.id, exact_json_text(response_),
                              exact_json_text(responses_.conversation));
    response_["status"] = "in_progress";
  }

  std::string open(int, const EchoedPrompt& prompt, const Usage*) override {
    // A keep-alive has already sent the first events.
    if (sequence_ > 0) return "";
    prompt_ids_ = prompt.token_ids;
    response_event("response.created");
    response_event("response.in_progress");
    return events_.take();
  }

  std::string keep_alive(const EchoedPrompt& prompt) override {
    if (sequence_ == 0) return open(0, prompt, nullptr);
    response_event("response.in_progress");
    return events_.take();
  }

  std::string part(const AnswerPart& part, const Usage*) override {
    add(reader_.read(part), part);
    events_.count(part.token_ids);
    return part.finish ? events_.take_unfinished() : events_.take();
  }

  void resumed() override { events_.forget_tokens(); }

  std::string close(const Usage& usage) override {
    finish(usage);
    const bool completed = response_.at("status") == "completed";
    response_event(completed ? "response.completed" : "response.incomplete");
    return events_.take();
  }

  std::string failed(const Error& error) override {
    (void)events_.take_unfinished();
    response_["status"] = "failed";
    response_["error"] = json::object{{"code", "server_error"}, {"message", error.message}};
    // Stores the response only if the client can know its id.
    if (responses_.background || sequence_ > 0) keep();
    response_event("response.failed");
    return events_.take_unfinished();
  }

  bool shows_cached_tokens() const override { return true; }

  std::string whole(std::span<const AnswerPart> parts, std::span<const EchoedPrompt> prompts,
                    const Usage& usage) override {
    prompt_ids_ = prompts.front().token_ids;
    add(reader_.read_whole(parts.front()), parts.front());
    finish(usage);
    json::object out = response_;
    // The stored copy has no kv_transfer_params, because they are only valid for one request.
    add_kv_transfer(parts, out);
    return exact_json_text(out);
  }

 private:
  struct Item {
    Kind kind;
    json::object shown;
    std::string text{};  // text of the item's content, or arguments of a call
    json::array logprobs{};
  };

  void add(const MessageDelta& parsed, const AnswerPart& part) {
    if (responses_.messages)
      output_ids_.insert(output_ids_.end(), part.token_ids.begin(), part.token_ids.end());
    if (options_.logprobs) {
      // If several tokens form one character, their log-probabilities are sent together with the character.
      const json::array news = token_logprobs_json(*tokenizer_, options_, part);
      logprobs_.insert(logprobs_.end(), news.begin() + static_cast<std::ptrdiff_t>(part.thought_logprobs), news.end());
    }
    const bool ends_message = part.finish && item_ && item_->kind == Kind::message;
    if (ends_message && parsed.content.empty() && !logprobs_.empty()) add_text("");
    parsed.in_order([&](const std::string& thought) { grow(Kind::reasoning, thought); },
                    [&](const std::string& text) {
                      const bool after_call =
                          item_ && item_->kind != Kind::message && item_->kind != Kind::reasoning;
                      const std::size_t spaces = after_call ? spaces_at_start(text) : 0;
                      if (text.size() > spaces) add_text(text.substr(spaces));
                    },
                    [&](const CallDelta& call) {
                      if (!call.id.empty()) begin_call(call);
                      if (!call.arguments.empty()) grow(item_->kind, call.arguments);
                    });
    if (part.finish) finish_ = part.finish;
  }

  // Adds text and the log-probabilities of its tokens to the message.
  void add_text(const std::string& text) {
    begin(Kind::message);
    item_->logprobs.insert(item_->logprobs.end(), logprobs_.begin(), logprobs_.end());
    grow(Kind::message, text, std::exchange(logprobs_, {}));
  }

  // Starts an item of this kind, unless the current item has this kind.
  void begin(Kind kind) {
    if (item_ && item_->kind == kind) return;
    end("completed");
    json::object shown{{"id", new_item_id(kind)}, {"status", "in_progress"}};
    if (kind == Kind::reasoning) {
      shown["type"] = "reasoning";
      shown["summary"] = json::array();
      shown["content"] = json::array();
    } else {
      shown["type"] = "message";
      shown["role"] = "assistant";
      shown["content"] = json::array();
    }
    open_item(kind, std::move(shown));
    item_event("response.content_part.added", {{"part", content_part("", {})}});
  }

  void begin_call(const CallDelta& call) {
    end("completed");
    const auto known = responses_.tools.find(call.name);
    const ResponsesTool tool =
        known == responses_.tools.end() ? ResponsesTool{.name = call.name} : known->second;
    const Kind kind = tool.custom ? Kind::custom : Kind::call;
    json::object shown{{"id", new_item_id(kind)},
                       {"status", "in_progress"},
                       {"type", tool.custom ? "custom_tool_call" : "function_call"},
                       {"call_id", call.id},
                       {"name", tool.name},
                       {tool.custom ? "input" : "arguments", ""}};
    if (!tool.name_space.empty()) shown["namespace"] = tool.name_space;
    open_item(kind, std::move(shown));
  }

  void open_item(Kind kind, json::object shown) {
    event("response.output_item.added", {{"output_index", index()}, {"item", shown}});
    item_ = Item{.kind = kind, .shown = std::move(shown)};
  }

  void grow(Kind kind, const std::string& text, json::array logprobs = {}) {
    if (has_content(kind)) begin(kind);
    item_->text += text;
    if (kind == Kind::reasoning) return item_event("response.reasoning_text.delta", {{"delta", text}});
    if (kind == Kind::message)
      return item_event("response.output_text.delta", {{"delta", text}, {"logprobs", std::move(logprobs)}});
    // The input of a custom tool is known only when its JSON is complete.
    if (kind == Kind::call) item_event("response.function_call_arguments.delta", {{"delta", text}});
  }

  void end(std::string_view status) {
    if (!item_) return;
    Item& item = *item_;
    item.shown["status"] = status;
    if (item.kind == Kind::call) {
      item.shown["arguments"] = item.text;
      item_event("response.function_call_arguments.done",
                 {{"arguments", item.text}, {"name", item.shown.at("name")}});
    } else if (item.kind == Kind::custom) {
      const std::string input = custom_tool_input(item.text);
      item.shown["input"] = input;
      item_event("response.custom_tool_call_input.delta", {{"delta", input}});
      item_event("response.custom_tool_call_input.done", {{"input", input}});
    } else {
      json::object part = content_part(item.text, item.logprobs);
      if (item.kind == Kind::reasoning)
        item_event("response.reasoning_text.done", {{"text", item.text}});
      else
        item_event("response.output_text.done", {{"text", item.text}, {"logprobs", item.logprobs}});
      item_event("response.content_part.done", {{"part", part}});
      item.shown["content"] = json::array{std::move(part)};
    }
    event("response.output_item.done", {{"output_index", index()}, {"item", item.shown}});
    response_["output"].as_array().push_back(std::move(item.shown));
    item_.reset();
  }

  json::object content_part(const std::string& text, const json::array& logprobs) const {
    if (item_->kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", text}};
    return {{"type", "output_text"}, {"text", text}, {"annotations", json::array()}, {"logprobs", logprobs}};
  }

  void finish(const Usage& usage) {
    const bool incomplete = finish_ == FinishReason::length;
    const bool cancelled = finish_ == FinishReason::abort;
    end(incomplete || cancelled ? "incomplete" : "completed");
    response_["status"] = cancelled ? "cancelled" : incomplete ? "incomplete" : "completed";
    if (incomplete) response_["incomplete_details"] = json::object{{"reason", "max_output_tokens"}};
    response_["usage"] = response_usage(usage);
    if (responses_.messages) {
      response_["input_messages"] = raw_messages(prompt_ids_);
      response_["output_messages"] = raw_messages(output_ids_);
    }
    extend_conversation();
    keep();
  }

  // Appends the request's new items and the output to the conversation.
  void extend_conversation() {
    if (responses_.conversation_id.empty()) return;
    const json::array& all = responses_.conversation;
    json::array news(all.begin() + static_cast<std::ptrdiff_t>(responses_.known_items), all.end());
    for (const json::value& item : response_.at("output").as_array()) news.push_back(item);
    if (const auto added = responses_.conversations->add(responses_.conversation_id, news); !added)
      log_warning("conversation {}: {}", responses_.conversation_id, added.error().message);
  }

  // Returns messages in vLLM's format: the text with special tokens, and the token ids.
  json::array raw_messages(const std::vector<TokenId>& ids) const {
    return {json::object{{"type", "raw_message_tokens"},
                         {"message", tokenizer_->decode(ids, false).value_or("")},
                         {"tokens", json::value_from(ids)}}};
  }

  void keep() {
    if (!responses_.store) return;
    json::array conversation = std::move(responses_.conversation);
    for (const json::value& item : response_.at("output").as_array()) conversation.push_back(item);
    responses_.store->finish(options_.id, exact_json_text(response_), exact_json_text(conversation));
  }

  static bool has_content(Kind kind) { return kind == Kind::reasoning || kind == Kind::message; }

  std::string new_item_id(Kind kind) const {
    return item_id(kind, options_.id, static_cast<std::size_t>(index()));
  }

  int index() const { return static_cast<int>(response_.at("output").as_array().size()); }

  void response_event(const std::string& type) { event(type, {{"response", response_}}); }

  void item_event(std::string_view type, json::object fields) {
    fields["item_id"] = item_->shown.at("id");
    fields["output_index"] = index();
    if (has_content(item_->kind)) fields["content_index"] = 0;
    event(type, std::move(fields));
  }

  void event(std::string_view type, json::object fields) {
    fields["type"] = type;
    fields["sequence_number"] = sequence_++;
    events_.add(type, std::move(fields));
  }

  const Tokenizer* tokenizer_;
  const ReplyOptions options_;
  ResponsesOptions responses_;
  json::object response_;
  MessageReader reader_;
  std::optional<Item> item_{};
  json::array logprobs_{};  // log-probabilities of tokens whose text was not sent yet
  std::vector<TokenId> prompt_ids_{}, output_ids_{};
  std::optional<FinishReason> finish_{};
  int sequence_ = 0;
  NamedEvents events_;
};

}  // namespace

json::object response_usage(const Usage& usage) {
  json::object out{{"input_tokens", usage.prompt_tokens},
                   {"input_tokens_details",
                    {{"cached_tokens", usage.cached_tokens.value_or(0)},
                     {"cache_write_tokens", usage.stored_tokens.value_or(0)}}},
                   {"output_tokens", usage.completion_tokens},
                   {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens.value_or(0)}}},
                   {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  add_cost(usage, out);
  return out;
}

json::object pending_response(const json::object& response, const ReplyOptions& options) {
  json::object out{{"id", options.id}, {"created_at", options.created}, {"status", "queued"}};
  for (const auto& [name, value] : response) out[name] = value;
  return out;
}

std::unique_ptr<Reply> responses_reply(const Tokenizer& tokenizer, ReplyOptions options,
                                       ResponsesOptions responses) {
  return std::make_unique<ResponsesReply>(tokenizer, std::move(options), std::move(responses));
}

}  // namespace octavo::openai
