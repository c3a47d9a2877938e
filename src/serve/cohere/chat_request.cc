#include "serve/cohere/chat_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <utility>
#include <vector>

#include "serve/openai/generation_fields.h"
#include "serve/openai/tool_names.h"

namespace octavo::cohere {

namespace json = boost::json;
using openai::Fields;

namespace {

// Fields with the same meaning in chats.
constexpr std::string_view kSameFields[] = {
    "model",      "stream",     "temperature",      "seed",       "frequency_penalty",
    "max_tokens", "logprobs",   "presence_penalty", "priority",   "kv_transfer_params",
    "cache_salt", "request_id", "include_cost",     "session_id", "prompt_cache_key",
};
struct RenamedField {
  std::string_view cohere, chat;
};
constexpr RenamedField kRenamedFields[] = {{"stop_sequences", "stop"}, {"p", "top_p"}, {"k", "top_k"}};
// Fields that this file converts.
constexpr std::string_view kConvertedFields[] = {
    "messages",    "tools",    "strict_tools",     "tool_choice",     "documents",
    "safety_mode", "thinking", "citation_options", "response_format", "chat_template_kwargs"};

Result<const json::object*> object_in(const json::value& value, const std::string& name) {
  if (!value.is_object()) return invalid(name, "must be an object");
  return &value.get_object();
}

// Passes each block of a content to `use`, with its type. A text counts as one text block.
template <class Use>
Result<> for_each_block(const json::value* content, const std::string& name, Use use) {
  if (!content) return {};
  if (content->is_string()) {
    const json::object block{{"type", "text"}, {"text", content->get_string()}};
    Fields fields(block, name + ".");
    return use("text", fields);
  }
  if (!content->is_array()) return invalid(name, "must be a string or a list of blocks");
  for (std::size_t i = 0; i < content->get_array().size(); ++i) {
    const std::string block_name = fmt::format("{}[{}]", name, i);
    TRY(const json::object* block, object_in(content->get_array()[i], block_name));
    Fields fields(*block, block_name + ".");
    std::string type;
    TRY_VOID(fields.text("type", type));
    TRY_VOID(use(type, fields));
  }
  return {};
}

// Converts the reasoning, the text and the calls of an earlier answer. Citations have no effect.
Result<json::object> assistant_message(Fields& fields) {
  std::string text, thoughts, plan;
  const std::string name = fields.full_name("content");
  const auto add = [&](std::string_view type, Fields& block) -> Result<> {
    if (type != "text" && type != "thinking")
      return invalid(block.full_name("type"), "must be \"text\" or \"thinking\"");
    std::string piece;
    TRY_VOID(block.text(type, piece));
    (type == "text" ? text : thoughts) += piece;
    return {};
  };
  TRY_VOID(for_each_block(fields.any("content"), name, add));
  TRY_VOID(fields.text("tool_plan", plan));
  thoughts += plan;
  json::object out{{"role", "assistant"}, {"content", text}};
  if (!thoughts.empty()) out["reasoning"] = thoughts;
  TRY(const json::array* calls, fields.array("tool_calls"));
  if (calls && !calls->empty()) out["tool_calls"] = *calls;
  return out;
}

// Converts the result of a tool. Documents become JSON texts.
Result<json::object> tool_message(Fields& fields) {
  json::array parts;
  const std::string name = fields.full_name("content");
  const auto add = [&](std::string_view type, Fields& block) -> Result<> {
    std::string text;
    if (type == "document") {
      TRY(const json::object* document, block.object("document"));
      if (!document) return invalid(block.full_name("document"), "is missing");
      text = json::serialize(*document);
    } else if (type == "text") {
      TRY_VOID(block.text("text", text));
    } else {
      return invalid(block.full_name("type"), "must be \"text\" or \"document\"");
    }
    parts.push_back(json::object{{"type", "text"}, {"text", text}});
    return {};
  };
  TRY_VOID(for_each_block(fields.any("content"), name, add));
  json::object out{{"role", "tool"}};
  if (const json::value* id = fields.any("tool_call_id")) out["tool_call_id"] = *id;
  out["content"] = parts.size() == 1 ? parts.front().at("text") : json::value(std::move(parts));
  return out;
}

Result<json::object> converted_message(const json::value& value, const std::string& name) {
  TRY(const json::object* message, object_in(value, name));
  Fields fields(*message, name + ".");
  std::string role;
  TRY_VOID(fields.text("role", role));
  if (role == "assistant") return assistant_message(fields);
  if (role == "tool") return tool_message(fields);
  if (role == "developer") role = "system";
  if (role != "user" && role != "system")
    return invalid(name + ".role", "must be \"user\", \"assistant\", \"system\" or \"tool\"");
  const json::value* content = fields.any("content");
  if (!content) return invalid(name + ".content", "is missing");
  return json::object{{"role", role}, {"content", *content}};
}

// `strict_tools` is OpenAI's `strict` of every function.
Result<> convert_cohere_tools(Fields& fields, json::object& chat) {
  TRY(const json::array* tools, fields.array("tools"));
  const bool given = tools && !tools->empty();
  bool strict = false;
  TRY_VOID(fields.boolean("strict_tools", strict));
  if (given) {
    json::array out = *tools;
    for (json::value& tool : out)
      if (json::object* object = tool.if_object(); object && strict)
        if (json::value* function = object->if_contains("function"); function && function->is_object())
          function->get_object()["strict"] = true;
    chat["tools"] = std::move(out);
  }
  std::string choice;
  TRY_VOID(fields.text("tool_choice", choice));
  if (choice.empty()) return {};
  if (choice != "REQUIRED" && choice != "NONE")
    return invalid("tool_choice", "must be \"REQUIRED\" or \"NONE\"");
  if (choice == "REQUIRED" && !given) return invalid("tool_choice", "\"REQUIRED\" needs at least one tool");
  if (given) chat["tool_choice"] = choice == "REQUIRED" ? "required" : "none";
  return {};
}

Result<> convert_response_format(Fields& fields, json::object& chat) {
  TRY(const json::object* format, fields.object("response_format"));
  if (!format) return {};
  Fields f(*format, "response_format.");
  std::string type;
  TRY_VOID(f.text("type", type));
  if (type == "text") return {};
  if (type != "json_object") return invalid("response_format.type", "must be \"text\" or \"json_object\"");
  TRY(const json::object* schema, f.object("json_schema"));
  TRY(const json::object* older, f.object("schema"));  // name of the field in Cohere's older API
  if (!schema) schema = older;
  chat["response_format"] = json::object{{"type", "json_object"}};
  if (schema)
    chat["response_format"] =
        json::object{{"type", "json_schema"}, {"json_schema", {{"name", "output"}, {"schema", *schema}}}};
  return {};
}

// Returns documents in the format of Cohere's chat templates, {"id", "data"}.
Result<json::array> documents_of(const json::array& given) {
  json::array out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = fmt::format("documents[{}]", i);
    std::string id = fmt::format("doc_{}", i);
    const json::value* data = &given[i];
    if (!data->is_string()) {
      TRY(const json::object* document, object_in(given[i], name));
      Fields fields(*document, name + ".");
      TRY_VOID(fields.text("id", id));
      data = fields.any("data");
      if (!data || (!data->is_object() && !data->is_string()))
        return invalid(name + ".data", "must be an object or a string");
    }
    out.push_back(json::object{
        {"id", id}, {"data", data->is_object() ? *data : json::value(json::object{{"text", *data}})}});
  }
  return out;
}

// Passes fields for chat templates on. A value in the request's chat_template_kwargs has priority.
Result<> convert_template_fields(Fields& fields, const openai::RequestRules& rules, json::object& chat) {
  json::object kwargs;
  TRY(const json::array* documents, fields.array("documents"));
  if (documents && !documents->empty()) {
    TRY(chat["documents"], documents_of(*documents));
  }
  std::string mode;
  TRY_VOID(fields.text("safety_mode", mode));
  std::ranges::transform(mode, mode.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  if (!mode.empty()) kwargs["safety_mode"] = mode;
  TRY(const json::object* citations, fields.object("citation_options"));
  if (citations) kwargs["citation_options"] = *citations;
  TRY(const json::object* thinking, fields.object("thinking"));
  if (thinking) {
    Fields t(*thinking, "thinking.");
    std::string type;
    TRY_VOID(t.text("type", type));
    if (type != "enabled" && type != "disabled")
      return invalid("thinking.type", "must be \"enabled\" or \"disabled\"");
    kwargs["thinking"] = *thinking;
    // Reasoning tokens can be counted only if the begin and end markers are single tokens.
    const bool counted = rules.reasoning && rules.reasoning->tokens();
    if (type == "disabled") chat["reasoning_effort"] = "none";
    if (const json::value* budget = t.any("token_budget"); budget && type == "enabled" && counted)
      chat["thinking_token_budget"] = *budget;
  }
  TRY(const json::object* given, fields.object("chat_template_kwargs"));
  if (given)
    for (const auto& [name, value] : *given) kwargs[name] = value;
  if (!kwargs.empty()) chat["chat_template_kwargs"] = std::move(kwargs);
  return {};
}

Result<json::object> as_chat(const json::object& body, const openai::RequestRules& rules,
                             std::vector<std::string>& unknown) {
  Fields fields(body);
  json::object chat;
  for (const auto& [key, value] : body) {
    const std::string_view name = key;
    const auto* renamed = std::ranges::find(kRenamedFields, name, &RenamedField::cohere);
    if (std::ranges::find(kSameFields, name) != std::end(kSameFields))
      chat[name] = value;
    else if (renamed != std::end(kRenamedFields))
      chat[renamed->chat] = value;
    else if (std::ranges::find(kConvertedFields, name) == std::end(kConvertedFields))
      unknown.emplace_back(name);
  }
  if (!fields.any("model")) return invalid("model", "is missing");
  TRY(const json::array* messages, fields.array("messages"));
  if (!messages || messages->empty()) return invalid("messages", "must be a list of at least one message");
  json::array converted;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    TRY(json::object message, converted_message((*messages)[i], fmt::format("messages[{}]", i)));
    converted.push_back(std::move(message));
  }
  chat["messages"] = std::move(converted);
  TRY_VOID(convert_cohere_tools(fields, chat));
  TRY_VOID(convert_response_format(fields, chat));
  TRY_VOID(convert_template_fields(fields, rules, chat));
  return chat;
}

}  // namespace

Result<ConvertedChat> parse_chat_request(const json::object& body, const openai::RequestRules& rules) {
  std::vector<std::string> unknown;
  TRY(json::object chat, as_chat(body, rules, unknown));
  auto read = openai::parse_chat_request(chat, rules);
  for (const RenamedField& field : kRenamedFields)
    read = openai::reported_as(std::move(read), field.chat, field.cohere);
  read = openai::reported_as(std::move(read), "reasoning_effort", "thinking.type");
  read = openai::tools_reported_as(std::move(read));
  TRY(openai::ChatRequest request, std::move(read));
  std::ranges::move(unknown, std::back_inserter(request.generation.unknown_fields));
  // Cohere's log-probabilities have token ids.
  request.generation.report.token_ids = request.generation.sampling.logprobs.output.has_value();
  return ConvertedChat{std::move(chat), std::move(request)};
}

}  // namespace octavo::cohere
