#include "serve/ollama/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>
#include <vector>

#include "serve/ollama/keep_alive.h"

namespace octavo::ollama {

namespace json = boost::json;
using openai::Fields;

namespace {

// Fields in `options`, and the corresponding fields of OpenAI's routes.
constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"num_predict", "max_tokens"},
    {"temperature", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"repeat_penalty", "repetition_penalty"},
    {"presence_penalty", "presence_penalty"},
    {"frequency_penalty", "frequency_penalty"},
};
// Fields that have the same meaning in both APIs.
constexpr std::string_view kShared[] = {"tools", "logprobs", "top_logprobs"};
constexpr std::string_view kOwn[] = {"model",  "messages", "prompt",   "system",    "images",
                                     "suffix", "raw",      "stream",   "format",    "options",
                                     "think",  "context",  "template", "keep_alive"};

// Returns "messages[1].images[0]" for "messages[1].content[0].image_url", and other names unchanged.
std::string image_name(std::string field) {
  constexpr std::string_view kParts = "].content[", kUrl = ".image_url";
  const std::size_t parts = field.find(kParts);
  if (parts == std::string::npos || !field.ends_with(kUrl)) return field;
  field.resize(field.size() - kUrl.size());
  return field.replace(parts, kParts.size(), "].images[");
}

// Replaces the field's name in the error with the name that the client used.
Error renamed(Error error) {
  for (const auto& [theirs, ours] : kOptions)
    if (error.field == ours) error.field = fmt::format("options.{}", theirs);
  if (error.field.starts_with("response_format") || error.field.starts_with("structured_outputs"))
    error.field = "format";
  return error;
}

template <class T>
Result<T> renamed(Result<T> result) {
  if (!result) return std::unexpected(renamed(std::move(result.error())));
  // The grammar compiler reports errors later.
  if (auto& output = result->generation.output; output && output->field.starts_with("response_format"))
    output->field = "format";
  return result;
}

// Gives errors and images the names of Ollama's fields. in_messages: whether the client's images are in
// messages.
Result<openai::ChatRequest> renamed_chat(Result<openai::ChatRequest> read, bool in_messages) {
  const auto rename = [&](std::string& field) {
    field = image_name(std::move(field));
    if (!in_messages && field.starts_with("messages[")) field.erase(0, field.find('.') + 1);
  };
  if (!read) rename(read.error().field);
  if (read)
    for (openai::ChatPrompt::Media& image : read->prompt.media) rename(image.field);
  return renamed(std::move(read));
}

// Converts `format`. "json" means any JSON object; an object is a schema.
Result<> convert_format(Fields& fields, json::object& out) {
  const json::value* format = fields.any("format");
  if (!format || (format->is_string() && format->get_string().empty())) return {};
  if (format->is_object()) {
    out["response_format"] = {{"type", "json_schema"},
                              {"json_schema", {{"name", "format"}, {"schema", *format}}}};
  } else if (*format == "json") {
    out["response_format"] = {{"type", "json_object"}};
  } else {
    return invalid("format", "must be \"json\" or a JSON schema");
  }
  return {};
}

// Converts `think`, which is true, false or a level.
Result<> convert_think(Fields& fields, json::object& out) {
  const json::value* think = fields.any("think");
  if (!think) return {};
  if (think->is_string())
    out["reasoning_effort"] = *think;
  else if (!think->is_bool())
    return invalid("think", "must be true, false, \"low\", \"medium\" or \"high\"");
  else if (think->get_bool())
    out["chat_template_kwargs"] = {{"enable_thinking", true}};
  else
    out["reasoning_effort"] = "none";
  return {};
}

bool has_texts(const json::value* input) {
  return input && *input != json::value("") && *input != json::value(json::array());
}

Result<> convert_options(Fields& fields, json::object& out, std::vector<std::string>& unknown) {
  TRY(const json::object* options, fields.object("options"));
  if (!options) return {};
  for (const auto& [key, value] : *options) {
    const auto known = std::ranges::find(kOptions, std::string_view(key),
                                         &std::pair<std::string_view, std::string_view>::first);
    if (known == std::end(kOptions))
      unknown.push_back(fmt::format("options.{}", std::string_view(key)));
    else
      out[known->second] = value;
  }
  // In Ollama's API, a num_predict of 0 or less means that there is no limit.
  const json::value* most = out.if_contains("max_tokens");
  if (most && most->is_int64() && most->get_int64() <= 0) out.erase("max_tokens");
  return {};
}

// Converts the fields that /api/chat and /api/generate share. Ollama streams by default.
Result<json::object> convert_shared(Fields& fields, const json::object& body,
                                    std::vector<std::string>& unknown) {
  json::object out;
  std::string model;
  TRY_VOID(fields.text("model", model));
  if (model.empty()) return invalid("model", "is missing");
  out["model"] = model;
  bool stream = true;
  TRY_VOID(fields.boolean("stream", stream));
  out["stream"] = stream;
  TRY_VOID(convert_format(fields, out));
  TRY_VOID(convert_think(fields, out));
  TRY_VOID(convert_options(fields, out, unknown));
  TRY_VOID(read_keep_alive(body));
  for (const auto& [key, value] : body) {
    const std::string_view name = key;
    if (std::ranges::find(kShared, name) != std::end(kShared))
      out[name] = value;
    else if (std::ranges::find(kOwn, name) == std::end(kOwn))
      unknown.emplace_back(name);
  }
  return out;
}

// Returns the content of a message. A text with base64 images becomes a list of parts.
Result<json::value> content_of(Fields& fields, std::string text) {
  TRY(const json::array* images, fields.array("images"));
  if (!images || images->empty()) return json::value(std::move(text));
  json::array parts;
  for (const json::value& image : *images) {
    if (!image.is_string()) return invalid(fields.full_name("images"), "must be a list of base64 texts");
    const std::string_view data = image.get_string();
    // Some clients send the data: URLs of OpenAI's API.
    const std::string url =
        data.starts_with("data:") ? std::string(data) : fmt::format("data:image;base64,{}", data);
    parts.push_back({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  }
  parts.push_back({{"type", "text"}, {"text", std::move(text)}});
  return json::value(std::move(parts));
}

Result<json::object> convert_message(const json::value& value, const std::string& name) {
  if (!value.is_object()) return invalid(name, "must be an object");
  Fields fields(value.get_object(), name + ".");
  std::string role, text, thinking, tool;
  TRY_VOID(fields.text("role", role));
  TRY_VOID(fields.text("content", text));
  TRY_VOID(fields.text("thinking", thinking));
  TRY_VOID(fields.text("tool_name", tool));
  json::object out{{"role", role}};
  TRY(out["content"], content_of(fields, std::move(text)));
  if (!thinking.empty()) out["reasoning"] = thinking;
  if (!tool.empty()) out["name"] = tool;
  for (const std::string_view key : {"tool_calls", "tool_call_id"})
    if (const json::value* given = fields.any(key)) out[key] = *given;
  return out;
}

Result<Hold> hold(Fields& fields, const json::object& body, const json::object& shared,
                  const openai::RequestRules& rules) {
  Fields names(shared);
  TRY_VOID(openai::read_model(names, rules));
  TRY(const auto keep_us, read_keep_alive(body));
  Hold out{.model = {}, .load = keep_us != 0};
  TRY_VOID(fields.text("model", out.model));
  return out;
}

Result<> refuse(Fields& fields) {
  if (const json::value* text = fields.any("template"); text && *text != "")
    return invalid(
        "template",
        "must be absent: the server cannot read Ollama's templates and uses the model's chat template");
  if (const json::value* ids = fields.any("context"); ids && (!ids->is_array() || !ids->get_array().empty()))
    return invalid("context", "must be absent or empty: send the conversation to /api/chat");
  return {};
}

}  // namespace

Result<Request> parse_chat(const json::object& body, const openai::RequestRules& rules) {
  Fields fields(body);
  std::vector<std::string> unknown;
  TRY(json::object chat, convert_shared(fields, body, unknown));
  TRY(const json::array* given, fields.array("messages"));
  if (!given || given->empty()) return hold(fields, body, chat, rules);
  json::array messages;
  for (std::size_t i = 0; i < given->size(); ++i) {
    TRY(json::object message, convert_message((*given)[i], fmt::format("messages[{}]", i)));
    messages.push_back(std::move(message));
  }
  chat["messages"] = std::move(messages);
  TRY(openai::ChatRequest request, renamed_chat(openai::parse_chat_request(chat, rules), true));
  std::ranges::move(unknown, std::back_inserter(request.generation.unknown_fields));
  return request;
}

Result<Request> parse_generate(const json::object& body, const openai::RequestRules& rules,
                               bool has_template) {
  Fields fields(body);
  std::vector<std::string> unknown;
  TRY(json::object shared, convert_shared(fields, body, unknown));
  TRY_VOID(refuse(fields));
  std::string prompt, system, suffix;
  bool raw = !has_template;
  TRY_VOID(fields.text("prompt", prompt));
  TRY_VOID(fields.text("system", system));
  TRY_VOID(fields.text("suffix", suffix));
  TRY_VOID(fields.boolean("raw", raw));
  TRY(const json::array* images, fields.array("images"));
  const bool pictured = images && !images->empty();
  if (prompt.empty() && suffix.empty() && !pictured) return hold(fields, body, shared, rules);
  if (raw || !suffix.empty()) {
    if (pictured)
      return invalid("images",
                     "must be absent, because a prompt without a chat template cannot contain them");
    shared["prompt"] = prompt;
    if (!suffix.empty()) shared["suffix"] = suffix;
    json::value most = 0;
    const json::value* given = shared.if_contains("top_logprobs");
    if (given && !given->is_null()) most = *given;
    for (const std::string_view chat_only :
         {"tools", "chat_template_kwargs", "reasoning_effort", "top_logprobs"})
      shared.erase(chat_only);
    if (const json::value* wanted = shared.if_contains("logprobs"); wanted && wanted->is_bool())
      shared["logprobs"] = wanted->get_bool() ? most : json::value(nullptr);
    if (!shared.contains("max_tokens")) shared["max_tokens"] = nullptr;
    TRY(openai::CompletionRequest request, renamed(openai::parse_completion_request(shared, rules)));
    std::ranges::move(unknown, std::back_inserter(request.generation.unknown_fields));
    return request;
  }
  json::array messages;
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  json::object& message = messages.emplace_back(json::object{{"role", "user"}}).get_object();
  TRY(message["content"], content_of(fields, std::move(prompt)));
  shared["messages"] = std::move(messages);
  TRY(openai::ChatRequest request, renamed_chat(openai::parse_chat_request(shared, rules), false));
  std::ranges::move(unknown, std::back_inserter(request.generation.unknown_fields));
  return request;
}

Result<json::object> embedding_body(const json::object& body) {
  Fields fields(body);
  std::string model;
  TRY_VOID(fields.text("model", model));
  if (model.empty()) return invalid("model", "is missing");
  const json::value* input = fields.any("input");
  if (!input) input = fields.any("prompt");
  TRY_VOID(read_keep_alive(body));
  bool truncate = true;
  TRY_VOID(fields.boolean("truncate", truncate));
  json::object out{{"model", model}, {"encoding_format", "float"}};
  if (has_texts(input)) out["input"] = *input;
  if (truncate) out["truncate_prompt_tokens"] = -1;
  if (const json::value* dimensions = fields.any("dimensions")) out["dimensions"] = *dimensions;
  return out;
}

}  // namespace octavo::ollama
