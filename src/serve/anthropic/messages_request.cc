#include "serve/anthropic/messages_request.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/anthropic/cache_control.h"
#include "serve/anthropic/message_tools.h"
#include "serve/anthropic/tool_changes.h"
#include "serve/openai/result_order.h"
#include "serve/openai/structured_output.h"
#include "serve/openai/tool_names.h"

namespace octavo::anthropic {

namespace json = boost::json;
using openai::Fields;

namespace {

// A line that Claude Code writes before its system prompt. The server removes it, because it differs in each
// request and would prevent matches in the prefix cache.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

// Returns the text of a string or of a list of text blocks. tool_changes: whether the list may contain blocks
// that change tools, which are skipped.
Result<std::string> text_of(const json::value& content, const std::string& name, bool tool_changes = false) {
  if (content.is_string()) return std::string(content.get_string());
  if (!content.is_array()) return invalid(name, "must be a string or a list of blocks");
  std::string text;
  for (std::size_t i = 0; i < content.get_array().size(); ++i) {
    const std::string block_name = fmt::format("{}[{}]", name, i);
    const json::value& block = content.get_array()[i];
    if (!block.is_object()) return invalid(block_name, "must be an object");
    Fields fields(block.get_object(), block_name + ".");
    std::string type;
    std::string piece;
    TRY_VOID(fields.text("type", type));
    if (tool_changes && is_tool_change(type)) continue;
    if (type != "text") return invalid(block_name + ".type", "{} is not supported, only text", type);
    TRY_VOID(fields.text("text", piece));
    if (!piece.starts_with(kBillingHeader)) text += piece;
  }
  return text;
}

// Converts Anthropic's messages to chat messages. A message with tool results becomes several chat
// messages.
class Messages {
 public:
  explicit Messages(bool reads_images) : reads_images_(reads_images) {}

  Result<> add_system(Fields& fields) {
    const json::value* system = fields.any("system");
    if (!system) return {};
    TRY(std::string text, text_of(*system, "system"));
    if (!text.empty()) push("system", std::move(text));
    return {};
  }

  Result<> add(const json::value& value, const std::string& name) {
    if (!value.is_object()) return invalid(name, "must be an object");
    Fields fields(value.get_object(), name + ".");
    std::string role;
    TRY_VOID(fields.text("role", role));
    if (role != "user" && role != "assistant" && role != "system")
      return invalid(name + ".role", "must be \"user\", \"assistant\" or \"system\"");
    const json::value* content = fields.any("content");
    if (!content) return invalid(name + ".content", "is missing");
    if (content->is_string() || role == "system") {
      TRY(std::string text, text_of(*content, name + ".content", role == "system"));
      if (!text.empty() || role != "system") push(role, std::move(text));
      return {};
    }
    if (!content->is_array()) return invalid(name + ".content", "must be a string or a list of blocks");
    message_ = {{"role", role}};
    parts_.clear();
    has_results_ = false;
    const json::object* before = messages_.empty() ? nullptr : messages_.back().if_object();
    for (const std::size_t i : openai::block_order(before, content->get_array()))
      TRY_VOID(add_block(content->get_array()[i], fmt::format("{}.content[{}]", name, i)));
    finish_message();
    return {};
  }

  json::array take() { return std::move(messages_); }
  std::vector<std::string> take_images() { return std::move(images_); }
  // Returns the names of the fields and blocks that had no effect.
  std::vector<std::string> take_ignored() { return std::move(ignored_); }

 private:
  void push(std::string_view role, std::string text) {
    messages_.push_back(json::object{{"role", role}, {"content", std::move(text)}});
  }

  void finish_message() {
    const bool user = message_.at("role") == "user", has_parts = !parts_.empty();
    if (user && !has_parts && has_results_) return;
    const bool empty = !has_parts && (message_.contains("tool_calls") || message_.contains("reasoning"));
    message_["content"] = empty ? json::value(nullptr) : content_of(std::exchange(parts_, {}));
    messages_.push_back(std::move(message_));
  }

  static json::value content_of(json::array parts) {
    if (parts.empty()) return "";
    if (parts.size() > 1 || parts.front().at("type") != "text") return parts;
    return parts.front().at("text");
  }

  static void add_text(std::string text, json::array& parts) {
    if (!text.empty()) parts.push_back(json::object{{"type", "text"}, {"text", std::move(text)}});
  }

  // Reads {"source": {"type": "base64", "media_type": .., "data": ..}} or {"type": "url", "url": ..}. As in
  // vLLM, "base64" and "image/jpeg" are the defaults. As in Anthropic's API, the field in errors contains the
  // block's type: Claude Code needs it to find the image, removes the image and continues.
  Result<> add_image(Fields& fields) {
    const std::string at = fields.full_name("image.source");
    TRY(const json::object* source, fields.object("source"));
    if (!source) return invalid(at, "is missing");
    Fields s(*source, at + ".");
    std::string type = "base64", media_type = "image/jpeg", data, url;
    TRY_VOID(s.text("type", type));
    TRY_VOID(s.text("media_type", media_type));
    TRY_VOID(s.text("data", data));
    TRY_VOID(s.text("url", url));
    if (type == "base64") url = fmt::format("data:{};base64,{}", media_type, data);
    if (type != "base64" && type != "url")
      return invalid(s.full_name("type"), "must be \"base64\" or \"url\"");
    parts_.push_back(json::object{{"type", "image_url"}, {"image_url", {{"url", url}}}});
    images_.push_back(at);
    return {};
  }

  // Adds a document {"source", "title", "context", "citations"} as text to the message. As for images, the
  // field in errors contains the block's type.
  Result<> add_document(Fields& fields, json::array& parts) {
    const std::string at = fields.full_name("document.source");
    TRY(const json::object* source, fields.object("source"));
    if (!source) return invalid(at, "is missing");
    Fields s(*source, at + ".");
    std::string type, media_type = "application/pdf", title, context, text;
    TRY_VOID(s.text("type", type));
    TRY_VOID(s.text("media_type", media_type));
    TRY_VOID(fields.text("title", title));
    TRY_VOID(fields.text("context", context));
    if (type == "text") {
      TRY_VOID(s.text("data", text));
    } else if (const json::value* content = s.any("content"); type == "content" && content) {
      TRY(text, text_of(*content, at + ".content"));
    } else {
      return invalid(at,
                     "{} is not supported: only documents with text are. Send the text of the document with "
                     "source.type \"text\", or images of its pages",
                     type == "base64" ? media_type : fmt::format("type \"{}\"", type));
    }
    for (std::string* piece : {&title, &context})
      if (!piece->empty()) *piece += '\n';
    add_text(title + context + text, parts);
    TRY(const json::object* citations, fields.object("citations"));
    if (citations) ignored_.emplace_back("messages.content.citations");
    return {};
  }

  Result<> add_search_result(Fields& fields, json::array& parts) {
    std::string title, source, text;
    TRY_VOID(fields.text("title", title));
    TRY_VOID(fields.text("source", source));
    if (const json::value* content = fields.any("content")) {
      TRY(text, text_of(*content, fields.full_name("content")));
    }
    add_text(fmt::format("{}\n{}\n{}", title, source, text), parts);
    return {};
  }

  Result<> add_block(const json::value& value, const std::string& name) {
    if (!value.is_object()) return invalid(name, "must be an object");
    Fields fields(value.get_object(), name + ".");
    std::string type;
    TRY_VOID(fields.text("type", type));
    if (type == "text") {
      std::string text;
      TRY_VOID(fields.text("text", text));
      add_text(std::move(text), parts_);
      return {};
    }
    if (type == "image") return add_image(fields);
    if (type == "document") return add_document(fields, parts_);
    if (type == "search_result") return add_search_result(fields, parts_);
    if (type == "thinking") {
      std::string thoughts, before;
      TRY_VOID(fields.text("thinking", thoughts));
      if (const json::value* given = message_.if_contains("reasoning")) before = given->get_string();
      message_["reasoning"] = before + thoughts;
      return {};
    }
    if (type == "redacted_thinking") return {};  // another server has encrypted this reasoning
    if (type == "tool_use") return add_call(fields);
    if (type == "tool_result") return add_result(fields);
    if (type == "server_tool_use" || type.ends_with("_tool_result")) {  // Another server has run this tool.
      ignored_.push_back("messages.content.type=" + type);
      return {};
    }
    return invalid(name + ".type", "{} is not supported", type);
  }

  Result<> add_call(Fields& fields) {
    std::string id;
    std::string name;
    TRY_VOID(fields.text("id", id));
    TRY_VOID(fields.text("name", name));
    if (name.empty()) return invalid(fields.full_name("name"), "is missing");
    TRY(const json::object* input, fields.object("input"));
    if (!message_.contains("tool_calls")) message_["tool_calls"] = json::array();
    message_["tool_calls"].get_array().push_back(
        json::object{{"id", id},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", input ? *input : json::object()}}}});
    return {};
  }

  Result<> add_result(Fields& fields) {
    std::string id;
    TRY_VOID(fields.text("tool_use_id", id));
    if (id.empty()) return invalid(fields.full_name("tool_use_id"), "is missing");
    json::array parts;
    const json::value* content = fields.any("content");
    const std::string name = fields.full_name("tool_result.content");
    if (content && content->is_array()) {
      for (std::size_t i = 0; i < content->get_array().size(); ++i)
        TRY_VOID(add_result_block(content->get_array()[i], fmt::format("{}[{}]", name, i), parts));
    } else if (content) {
      TRY(std::string text, text_of(*content, name));
      add_text(std::move(text), parts);
    }
    messages_.push_back(
        json::object{{"role", "tool"}, {"tool_call_id", id}, {"content", content_of(std::move(parts))}});
    has_results_ = true;
    return {};
  }

  // Reads one block of a tool result. Images are moved to a user message after the results, because templates
  // print no images in tool messages. The result of a tool search becomes text with the names of the found
  // tools, which are already in the prompt.
  Result<> add_result_block(const json::value& value, const std::string& name, json::array& parts) {
    if (!value.is_object()) return invalid(name, "must be an object");
    Fields block(value.get_object(), name + ".");
    std::string type, text;
    TRY_VOID(block.text("type", type));
    if (type == "image" && !reads_images_) {
      add_text(std::string(openai::kOmittedImage), parts);
      ignored_.emplace_back(openai::kOmittedImagesField);
      return {};
    }
    if (type == "image") return add_image(block);
    if (type == "document") return add_document(block, parts);
    if (type == "search_result") return add_search_result(block, parts);
    if (type != "text" && type != "tool_reference")
      return invalid(name + ".type",
                     "{} is not supported, only text, image, document, search_result and tool_reference",
                     type);
    const std::string_view field = type == "text" ? "text" : "tool_name";
    TRY_VOID(block.text(field, text));
    if (type == "tool_reference" && text.empty()) return invalid(block.full_name(field), "is missing");
    add_text(std::move(text), parts);
    return {};
  }

  bool reads_images_;
  json::array messages_;
  json::object message_;
  json::array parts_;
  bool has_results_ = false;  // whether the message has tool results
  std::vector<std::string> images_;
  std::vector<std::string> ignored_;
};

Result<json::array> convert_messages(Fields& fields, const openai::RequestRules& rules,
                                     std::vector<std::string>& images, std::vector<std::string>& unknown) {
  Messages messages(rules.images_max > 0);
  TRY_VOID(messages.add_system(fields));
  TRY(const json::array* given, fields.array("messages"));
  if (!given || given->empty()) return invalid("messages", "must be a list of at least one message");
  for (std::size_t i = 0; i < given->size(); ++i)
    TRY_VOID(messages.add((*given)[i], fmt::format("messages[{}]", i)));
  images = messages.take_images();
  std::ranges::move(messages.take_ignored(), std::back_inserter(unknown));
  json::array converted = messages.take();
  if (openai::omit_images(rules, converted, images) > 0) unknown.emplace_back(openai::kOmittedImagesField);
  return converted;
}

// Reads {"type": "json_schema", "schema": ..} from output_config, or from output_format as in Anthropic's
// beta.
Result<> convert_format(const json::object& format, const std::string& name, json::object& chat) {
  Fields f(format, name + ".");
  std::string type = "json_schema";
  TRY_VOID(f.text("type", type));
  if (type != "json_schema") return invalid(name + ".type", "must be \"json_schema\", got \"{}\"", type);
  if (chat.contains("response_format")) return invalid(name, "cannot be combined with another output format");
  TRY(const json::object* schema, f.object("schema"));
  if (!schema) return invalid(name + ".schema", "is missing");
  chat["response_format"] =
      json::object{{"type", "json_schema"}, {"json_schema", {{"name", "output"}, {"schema", *schema}}}};
  return {};
}

Result<> convert_output(Fields& fields, const openai::RequestRules& rules, json::object& chat) {
  TRY(const json::object* output, fields.object("output_config"));
  if (output) {
    Fields o(*output, "output_config.");
    if (const json::value* effort = o.any("effort")) chat["reasoning_effort"] = *effort;
    TRY(const json::object* format, o.object("format"));
    if (format) TRY_VOID(convert_format(*format, "output_config.format", chat));
  }
  TRY(const json::object* format, fields.object("output_format"));
  if (format) TRY_VOID(convert_format(*format, "output_format", chat));
  TRY(const json::object* thinking, fields.object("thinking"));
  if (!thinking) return {};
  Fields t(*thinking, "thinking.");
  std::string type;
  TRY_VOID(t.text("type", type));
  if (type == "disabled") {
    chat["reasoning_effort"] = "none";
  } else if (type == "enabled" || type == "adaptive") {
    json::object kwargs{{"enable_thinking", true}};
    if (const json::value* given = fields.any("chat_template_kwargs"); given && given->is_object())
      for (const auto& [name, value] : given->get_object()) kwargs[name] = value;
    chat["chat_template_kwargs"] = std::move(kwargs);
    // Reasoning tokens can be counted only if the begin and end markers are single tokens.
    const bool counted = rules.reasoning && rules.reasoning->tokens();
    if (const json::value* budget = t.any("budget_tokens"); budget && counted)
      chat["thinking_token_budget"] = *budget;
  } else {
    return invalid("thinking.type", "must be \"enabled\", \"adaptive\" or \"disabled\"");
  }
  return {};
}

// Fields, beside sampling_fields(), that have the same meaning in chats.
constexpr std::string_view kSharedFields[] = {"model",
                                              "stream",
                                              "metadata",
                                              "cache_salt",
                                              "request_id",
                                              "priority",
                                              "service_tier",
                                              "include_cost",
                                              "chat_template_kwargs",
                                              "return_token_ids",
                                              "resume_token_ids",
                                              "kv_transfer_params",
                                              "session_id",
                                              "prompt_cache_key",
                                              "kv_hints",
                                              "nvext"};
// Fields that this file converts, and fields that have no effect.
constexpr std::string_view kOwnFields[] = {
    "messages", "system",        "max_tokens",    "stop_sequences", "tools",       "tool_choice",
    "thinking", "output_config", "cache_control", "container",      "mcp_servers", "context_management",
    "betas",    "inference_geo", "output_format"};

bool is_shared(std::string_view name) {
  const SamplingField* sampling = find_sampling_field(name);
  return std::ranges::find(kSharedFields, name) != std::end(kSharedFields) ||
         (sampling && sampling->messages) || openai::is_constraint(name);
}

// As in Anthropic's API, the answer continues a last message of the assistant.
void continue_last_message(json::object& chat) {
  const json::array& messages = chat.at("messages").as_array();
  if (messages.empty()) return;
  const json::object& last = messages.back().as_object();
  const json::value* content = last.if_contains("content");
  if (last.at("role") != "assistant" || last.contains("tool_calls")) return;
  if (!content || !content->is_string() || content->get_string().empty()) return;
  chat["add_generation_prompt"] = false;
  chat["continue_final_message"] = true;
}

Result<openai::ChatRequest> parse(const json::object& body, const openai::RequestRules& rules) {
  Fields fields(body);
  json::object chat;
  std::vector<std::string> unknown;
  for (const auto& [key, value] : body) {
    const std::string_view name = key;
    if (is_shared(name))
      chat[name] = value;
    else if (std::ranges::find(kOwnFields, name) == std::end(kOwnFields))
      unknown.emplace_back(name);
  }
  if (const json::value* most = fields.any("max_tokens")) chat["max_tokens"] = *most;
  if (const json::value* stops = fields.any("stop_sequences")) chat["stop"] = *stops;
  TRY(std::string session, convert_cache_control(body, chat));
  TRY_VOID(refuse_servers(fields));
  TRY_VOID(convert_tools(fields, chat, unknown));
  TRY_VOID(convert_output(fields, rules, chat));
  std::vector<std::string> images;
  TRY(chat["messages"], convert_messages(fields, rules, images, unknown));
  continue_last_message(chat);
  for (std::size_t i = 0; i < images.size(); ++i)
    TRY_VOID(openai::check_media(images[i], rules, static_cast<std::ptrdiff_t>(i), openai::MediaKind::image));
  auto read = openai::reported_as(openai::parse_chat_request(chat, rules), "stop", "stop_sequences");
  read = openai::reported_as(std::move(read), "reasoning_effort", "output_config.effort");
  read = openai::tools_reported_as(std::move(read), "input_schema");
  if (!body.contains("response_format"))
    read = openai::format_reported_as(
        std::move(read), body.contains("output_format") ? "output_format" : "output_config.format");
  TRY(openai::ChatRequest request, std::move(read));
  request.generation.derived_session = std::move(session);
  for (std::size_t i = 0; i < images.size(); ++i) request.prompt.media[i].field = std::move(images[i]);
  std::ranges::move(unknown, std::back_inserter(request.generation.unknown_fields));
  return request;
}

}  // namespace

Result<openai::ChatRequest> parse_messages_request(const json::object& body,
                                                   const openai::RequestRules& rules) {
  if (const json::value* most = body.if_contains("max_tokens"); !most || most->is_null())
    return invalid("max_tokens", "is missing");
  return parse(body, rules);
}

Result<openai::ChatRequest> parse_count_tokens_request(const json::object& body,
                                                       const openai::RequestRules& rules) {
  json::object counted = body;
  counted.erase("max_tokens");
  counted.erase("stream");
  return parse(counted, rules);
}

}  // namespace octavo::anthropic
