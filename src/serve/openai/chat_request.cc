#include "serve/openai/chat_request.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <iterator>
#include <utility>

#include "serve/openai/result_order.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::size_t kRoleBytesMax = 64;

using MediaList = std::vector<ChatPrompt::Media>;

Result<> check_count(const std::string& name, const RequestRules& rules, const MediaList& media, MediaKind kind) {
  return check_media(name, rules, std::ranges::count(media, kind, &ChatPrompt::Media::kind), kind);
}

// Reads the client's name of an image, a video or a sound.
Result<std::string> read_uuid(Fields& part) {
  constexpr std::size_t kUuidBytesMax = 256;
  std::string uuid;
  TRY_VOID(part.text("uuid", uuid));
  if (uuid.size() > kUuidBytesMax)
    return invalid(part.full_name("uuid"), "must have at most {} bytes, got {}", kUuidBytesMax, uuid.size());
  return uuid;
}

// Reads {"image_url": {"url": ..}}, video_url or audio_url. As in vLLM, without `type` also a plain URL.
Result<> read_url(Fields& part, const std::string& type, const RequestRules& rules, MediaList& media) {
  const std::string name = part.full_name(type);
  const MediaKind kind = media_kind(type.substr(0, type.find('_')));
  TRY_VOID(check_count(name, rules, media, kind));
  const json::value* given = part.any(type);
  TRY(std::string uuid, read_uuid(part));
  if (!given && uuid.empty()) return invalid(name, "is missing");
  std::string url;
  if (given && given->is_object()) {
    Fields fields(given->get_object(), name + ".");
    TRY_VOID(fields.text("url", url));
  } else if (!part.any("type")) {
    TRY_VOID(part.text(type, url));
  }
  if (url.empty() && uuid.empty()) return invalid(name, "must be an object with a url");
  media.push_back({.field = name, .url = std::move(url), .kind = kind, .uuid = std::move(uuid)});
  return {};
}

// Reads {"input_audio": {"data": base64, "format": "wav"}}. Ignores `format`, because the decoder detects it.
Result<> read_audio(Fields& part, const RequestRules& rules, MediaList& media) {
  const std::string name = part.full_name("input_audio");
  TRY_VOID(check_count(name, rules, media, MediaKind::sound));
  TRY(const json::object* given, part.object("input_audio"));
  if (!given) return invalid(name, "is missing");
  Fields fields(*given, name + ".");
  std::string data, format;
  TRY_VOID(fields.text("data", data));
  TRY_VOID(fields.text("format", format));
  if (data.empty()) return invalid(name + ".data", "is missing");
  media.push_back(
      {.field = name, .url = fmt::format("data:audio/{};base64,{}", format, data), .kind = MediaKind::sound});
  return {};
}

// Reads {"thinking": TEXT}, or a list of text parts.
Result<std::string> read_thinking(Fields& part) {
  const json::value* given = part.any("thinking");
  const std::string name = part.full_name("thinking");
  if (!given) return invalid(name, "is missing");
  if (given->is_string()) return std::string(given->get_string());
  if (!given->is_array()) return invalid(name, "must be a string or a list of text parts");
  std::string thoughts, piece;
  for (const json::value& item : given->get_array()) {
    if (!item.is_object()) return invalid(name, "must be a list of objects with a string \"text\"");
    Fields text(item.get_object(), name + "[].");
    TRY_VOID(text.text("text", piece));
    thoughts += piece;
  }
  return thoughts;
}

struct Content {
  json::value shown;     // content for the template: a string, null or a list of parts
  std::string thoughts;
};

// Returns the type of a part. If `type` is missing, it is the name of the part's content field (`text`,
// `image_url`, ..), as in vLLM.
Result<std::string> part_type(Fields& part) {
  std::string type;
  TRY_VOID(part.text("type", type));
  for (const std::string_view member :
       {"text", "image_url", "video_url", "audio_url", "input_audio", "refusal"})
    if (type.empty() && part.any(member)) type = member;
  return type;
}

Result<> read_part(Fields& part, const RequestRules& rules, MediaList& media, json::array& parts,
                   std::string& thoughts) {
  std::string text;
  TRY(const std::string type, part_type(part));
  if (type == "image_url" || type == "video_url" || type == "audio_url") {
    TRY_VOID(read_url(part, type, rules, media));
    parts.push_back(json::object{{"type", type.substr(0, type.find('_'))}});
    return {};
  }
  if (type == "input_audio") {
    TRY_VOID(read_audio(part, rules, media));
    parts.push_back(json::object{{"type", "audio"}});
    return {};
  }
  if (type == "thinking") {
    TRY(text, read_thinking(part));
    thoughts += text;
    return {};
  }
  if (type != "text" && type != "refusal")
    return invalid(part.full_name("type"),
                   "only parts of type text, thinking, image_url, video_url, audio_url and input_audio are "
                   "supported");
  if (!part.any(type)) return invalid(part.full_name(type), "is missing");
  TRY_VOID(part.text(type, text));
  parts.push_back(json::object{{"type", "text"}, {"text", std::move(text)}});
  return {};
}

Result<Content> read_content(Fields& message, const RequestRules& rules, MediaList& media) {
  const json::value* content = message.any("content");
  const std::string name = message.full_name("content");
  if (!content) return Content{};
  if (content->is_string()) return Content{.shown = *content, .thoughts = {}};
  if (!content->is_array()) return invalid(name, "must be a string or a list of parts");
  Content read;
  json::array parts;
  for (std::size_t i = 0; i < content->get_array().size(); ++i) {
    const json::value& part = content->get_array()[i];
    const std::string part_name = fmt::format("{}[{}]", name, i);
    if (part.is_string()) {
      parts.push_back(json::object{{"type", "text"}, {"text", part}});
      continue;
    }
    if (!part.is_object()) return invalid(part_name, "must be an object or a string");
    Fields fields(part.get_object(), part_name + ".");
    TRY_VOID(read_part(fields, rules, media, parts, read.thoughts));
  }
  if (parts.empty())
    read.shown = "";
  else
    read.shown = std::move(parts);
  return read;
}

// OpenAI's clients send arguments as JSON text, but templates need an object. If the JSON is incomplete, the
// text stays.
Result<json::value> read_arguments(Fields& function) {
  const json::value* arguments = function.any("arguments");
  const std::string name = function.full_name("arguments");
  if (!arguments) return json::value(json::object());
  if (arguments->is_object()) return *arguments;
  if (!arguments->is_string()) return invalid(name, "must be a JSON text or an object");
  if (arguments->get_string().empty()) return json::value(json::object());
  auto parsed = parse_body(arguments->get_string());
  return parsed ? json::value(*std::move(parsed)) : *arguments;
}

Result<json::array> read_tool_calls(Fields& message) {
  json::array calls;
  TRY(const json::array* given, message.array("tool_calls"));
  for (std::size_t i = 0; given && i < given->size(); ++i) {
    const std::string name = fmt::format("{}[{}]", message.full_name("tool_calls"), i);
    if (!(*given)[i].is_object()) return invalid(name, "must be an object");
    Fields call((*given)[i].get_object(), name + ".");
    TRY(const json::object* function, call.object("function"));
    if (!function) return invalid(name + ".function", "is missing");
    Fields f(*function, name + ".function.");
    std::string function_name;
    TRY_VOID(f.text("name", function_name));
    if (function_name.empty()) return invalid(name + ".function.name", "is missing");
    auto arguments = read_arguments(f);
    if (!arguments) return invalid(name + ".function.arguments", "{}", arguments.error().message);
    json::object copy = (*given)[i].get_object();
    copy["type"] = "function";
    copy["function"] = json::object{{"name", function_name}, {"arguments", *std::move(arguments)}};
    calls.push_back(std::move(copy));
  }
  return calls;
}

Result<json::object> read_message(const json::value& value, const std::string& name,
                                  const RequestRules& rules, MediaList& media) {
  if (!value.is_object()) return invalid(name, "must be an object");
  Fields fields(value.get_object(), name + ".");
  std::string role;
  TRY_VOID(fields.text("role", role));
  if (role.empty() || role.size() > kRoleBytesMax)
    return invalid(name + ".role", "must be a string of 1 to {} bytes", kRoleBytesMax);
  TRY(auto read, read_content(fields, rules, media));
  auto& [content, thoughts] = read;
  if (!thoughts.empty() && role != "assistant")
    return invalid(name + ".content", "parts of type thinking are allowed only in messages of the assistant");
  TRY(json::array calls, read_tool_calls(fields));
  if (content.is_null()) {
    // Content may be missing in calls, in answers that ended within the reasoning, and in empty tool results.
    // As in vLLM, it becomes "", because templates concatenate contents with other texts.
    const bool given = value.get_object().contains("content");
    if (given && calls.empty() && role != "assistant" && role != "tool")
      return invalid(name + ".content", "may only be null in messages of assistant and tool");
    content = "";
  }

  json::object message{{"role", role}, {"content", std::move(content)}};
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  for (const std::string_view key : {"name", "tool_call_id"}) {
    std::string text;
    if (!fields.any(key)) continue;
    TRY_VOID(fields.text(key, text));
    message[key] = text;
  }
  // Clients send `reasoning` or `reasoning_content`, and a template reads one of them. So the message gets
  // both.
  std::string reasoning = std::move(thoughts);
  TRY_VOID(fields.text("reasoning_content", reasoning));
  TRY_VOID(fields.text("reasoning", reasoning));
  if (!reasoning.empty())
    for (const std::string_view key : {"reasoning", "reasoning_content"}) message[key] = reasoning;
  return message;
}

bool has_role(const json::object& message, std::string_view role) {
  const json::value* given = message.if_contains("role");
  return given && given->is_string() && std::string_view(given->get_string()) == role;
}

// Returns the parts of a message's content, or null if the content is not a list.
json::array* parts_of(json::value& message) {
  json::object* object = message.if_object();
  json::value* content = object ? object->if_contains("content") : nullptr;
  return content ? content->if_array() : nullptr;
}

bool is_image(const json::value& part) {
  const json::object* object = part.if_object();
  if (!object) return false;
  const json::value* type = object->if_contains("type");
  return type ? *type == "image_url" : object->contains("image_url");
}

bool has_image(const json::value& message) {
  const json::object* object = message.if_object();
  const json::value* content = object ? object->if_contains("content") : nullptr;
  return content && content->is_array() && std::ranges::any_of(content->get_array(), is_image);
}

// Returns whether every template accepts the message: its content is a string, and its role is common.
bool is_plain(const json::object& message, bool first) {
  const std::string_view role = message.at("role").get_string();
  return !message.at("content").is_array() &&
         (role == "user" || role == "assistant" || role == "tool" || (first && role == "system"));
}

Result<> read_messages(Fields& fields, const RequestRules& rules, ChatPrompt& prompt) {
  TRY(const json::array* given, fields.array("messages"));
  if (!given || given->empty()) return invalid("messages", "must be a list of at least one message");
  if (given->size() > kMessagesMax)
    return invalid("messages", "at most {}, got {}", kMessagesMax, given->size());
  json::array without_images;
  std::vector<std::string> names;
  // Prompts of pooling models keep their images, so that the request is refused: a vector without the images
  // would describe other content.
  if (prompt.add_generation_prompt && rules.images_max == 0 && std::ranges::any_of(*given, has_image)) {
    without_images = *given;
    if (omit_images(rules, without_images, names) > 0) prompt.omitted_images = true;
    given = &without_images;
  }
  json::array messages;
  for (const std::size_t i : message_order(*given)) {
    TRY(json::object message, read_message((*given)[i], fmt::format("messages[{}]", i), rules, prompt.media));
    prompt.plain = prompt.plain && is_plain(message, i == 0);
    prompt.calls = prompt.calls || message.contains("tool_calls") || has_role(message, "tool");
    messages.push_back(std::move(message));
  }
  prompt.messages = exact_json_text(messages);
  return {};
}

Result<std::string> read_tool_definitions(Fields& fields) {
  TRY(const json::array* tools, fields.array("tools"));
  if (!tools || tools->empty()) return "";
  if (tools->size() > kToolsMax)
    return invalid("tools", "must have at most {} tools, got {}", kToolsMax, tools->size());
  json::array shown;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string name = fmt::format("tools[{}]", i);
    if (!(*tools)[i].is_object()) return invalid(name, "must be an object");
    Fields tool((*tools)[i].get_object(), name + ".");
    std::string type = "function";
    TRY_VOID(tool.text("type", type));
    if (type != "function") return invalid(name + ".type", "must be \"function\"");
    TRY(const json::object* function, tool.object("function"));
    if (!function) return invalid(name + ".function", "is missing");
    Fields f(*function, name + ".function.");
    std::string function_name;
    TRY_VOID(f.text("name", function_name));
    if (function_name.empty()) return invalid(name + ".function.name", "is missing");
    json::object& one = shown.emplace_back((*tools)[i]).get_object();
    one["type"] = type;  // some templates print the type
  }
  return exact_json_text(shown);
}

// Reads the tools. Forced calls and strict tools constrain the answer.
Result<> read_tools(Fields& fields, const RequestRules& rules, ChatRequest& request) {
  GenerationRequest& out = request.generation;
  const std::optional<grammar::JsonOptions> options =
      out.output ? std::optional(out.output->options) : std::nullopt;
  TRY(ToolRequest tools, read_tool_use(fields, rules.tool_dialect, rules.special_tokens, std::move(out.output)));
  out.tools = std::move(tools.use);
  out.output = std::move(tools.output);
  if (out.output) out.output->options = options.value_or(rules.json);
  if (rules.exclude_unused_tools && tools_unused(fields)) request.prompt.tools.clear();
  return {};
}

Result<> read_reasoning(Fields& fields, const RequestRules& rules, GenerationRequest& out) {
  TRY_VOID(fields.boolean("include_reasoning", out.thinking.included));
  TRY(const json::object* given, fields.object("chat_template_kwargs"));
  const auto apply = [&](const json::object& kwargs) {
    for (const std::string_view name : {"enable_thinking", "thinking"})
      if (const json::value* wanted = kwargs.if_contains(name); wanted && wanted->is_bool())
        out.thinking.off = !wanted->get_bool();
  };
  apply(rules.default_template_kwargs);
  std::string effort;
  TRY_VOID(fields.text("reasoning_effort", effort));
  if (!effort.empty()) out.thinking.off = effort == "none";
  if (given) apply(*given);
  return {};
}

// Reads max_completion_tokens, or its old name max_tokens. The default is all tokens that fit the context
// after the prompt.
Result<> read_max_tokens(Fields& fields, const RequestRules& rules, GenerationRequest& out) {
  out.sampling.max_tokens.reset();
  TRY_VOID(fields.integer("max_tokens", out.sampling.max_tokens));
  TRY_VOID(fields.integer("max_completion_tokens", out.sampling.max_tokens));
  if (fields.any("max_completion_tokens"))
    out.limit_field = "max_completion_tokens";
  else if (out.sampling.max_tokens)
    out.limit_field = "max_tokens";
  else
    out.sampling.max_tokens = rules.defaults.max_tokens;
  return {};
}

Result<> read_logprobs(Fields& fields, GenerationRequest& out) {
  bool wanted = false;
  TRY_VOID(fields.boolean("logprobs", wanted));
  std::optional<int> top;
  TRY_VOID(fields.integer("top_logprobs", top));
  if (top && *top != 0 && !wanted) return invalid("top_logprobs", "needs logprobs = true");
  if (wanted)
    out.sampling.logprobs.output = top.value_or(static_cast<int>(out.sampling.logprobs.token_ids.size()));
  return {};
}

// Reads echo: if the last message has the role assistant, the reply repeats its content at the beginning of
// the answer.
Result<> read_echo(Fields& fields, const json::object& body, ChatPrompt& prompt) {
  bool wanted = false;
  TRY_VOID(fields.boolean("echo", wanted));
  const json::object& last = body.at("messages").as_array().back().as_object();
  if (!wanted || last.at("role") != "assistant") return {};
  const json::value* content = last.if_contains("content");
  if (!content || content->is_null()) return {};
  if (!content->is_string()) return invalid("echo", "needs a last message whose content is a string");
  prompt.echo = content->get_string();
  return {};
}

// Chats are never stored. As in vLLM, `store` has no effect; the log reports the field.
Result<> ignore_store(Fields& fields, GenerationRequest& out) {
  bool wanted = false;
  TRY_VOID(fields.boolean("store", wanted));
  if (wanted) out.unknown_fields.emplace_back("store");
  return {};
}

Result<> refuse_chat_only(Fields& f) {
  TRY_VOID(f.refuse("return_prompt_text", "is not supported", false));
  TRY_VOID(f.refuse("audio", "audio is not supported"));
  TRY_VOID(f.refuse("modalities", "only text is supported", json::array{"text"}));
  f.accept({"prediction"});  // would only make the answer faster, so it can be ignored
  TRY_VOID(f.refuse("web_search_options", "web search is not supported"));
  TRY_VOID(f.refuse("functions", "use tools"));
  TRY_VOID(f.refuse("function_call", "use tool_choice", "none"));
  return {};
}

}  // namespace

int omit_images(const RequestRules& rules, json::array& messages, std::vector<std::string>& names) {
  if (rules.images_max > 0) return 0;
  std::size_t last = messages.size();  // index of the last user message; images before it are in earlier
                                       // turns
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const json::object* message = messages[i].if_object();
    if (message && has_role(*message, "user")) last = i;
    if (message && has_role(*message, "assistant")) last = messages.size();
  }
  std::size_t image = 0;
  int omitted = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    json::array* parts = parts_of(messages[i]);
    for (std::size_t j = 0; parts && j < parts->size(); ++j) {
      if (!is_image((*parts)[j])) continue;
      if (i == last) {
        ++image;
        continue;
      }
      (*parts)[j] = json::object{{"type", "text"}, {"text", kOmittedImage}};
      if (image < names.size()) names.erase(names.begin() + static_cast<std::ptrdiff_t>(image));
      ++omitted;
    }
  }
  return omitted;
}

Result<json::value> read_content_parts(Fields& message, const RequestRules& rules,
                                       std::vector<ChatPrompt::Media>& media) {
  TRY(Content read, read_content(message, rules, media));
  return std::move(read.shown);
}

Result<ChatPrompt> read_chat_prompt(Fields& fields, const RequestRules& rules, bool add_generation_prompt) {
  ChatPrompt prompt{.messages = {},
                    .plain = true,
                    .tools = {},
                    .documents = {},
                    .kwargs = {},
                    .add_generation_prompt = add_generation_prompt};
  TRY_VOID(fields.text("chat_template", prompt.chat_template));
  if (!prompt.chat_template.empty() && !rules.trust_chat_templates)
    return invalid("chat_template", "needs a server with --trust-request-chat-template");
  TRY_VOID(read_messages(fields, rules, prompt));
  TRY(const json::object* processor, fields.object("mm_processor_kwargs"));
  if (processor && !processor->empty() && rules.images_max + rules.videos_max == 0)
    return invalid("mm_processor_kwargs", "needs a model for images, and this model accepts none");
  if (processor) prompt.processor = *processor;
  TRY(const json::object* media_io, fields.object("media_io_kwargs"));
  if (media_io) TRY_VOID(read_media_io(*media_io, "media_io_kwargs.", prompt.media_io, prompt.ignored));
  TRY(prompt.tools, read_tool_definitions(fields));
  prompt.tools_as_text = may_call(fields, rules.tool_dialect);
  TRY(const json::array* documents, fields.array("documents"));
  if (documents && !documents->empty()) prompt.documents = exact_json_text(*documents);
  TRY_VOID(fields.boolean("add_generation_prompt", prompt.add_generation_prompt));
  TRY_VOID(fields.boolean("continue_final_message", prompt.continue_final_message));
  if (prompt.continue_final_message && prompt.add_generation_prompt)
    return invalid("continue_final_message",
                   "Cannot set both `continue_final_message` and `add_generation_prompt` to True.");
  TRY(const json::object* given, fields.object("chat_template_kwargs"));
  json::object kwargs = rules.default_template_kwargs;
  if (given)
    for (const auto& [name, value] : *given) kwargs[name] = value;
  std::string effort;
  TRY_VOID(fields.text("reasoning_effort", effort));
  if (!effort.empty()) {
    if (!given || !given->contains("reasoning_effort")) kwargs["reasoning_effort"] = effort;
    if (!given || !given->contains("enable_thinking")) kwargs["enable_thinking"] = effort != "none";
  }
  if (!kwargs.empty()) prompt.kwargs = exact_json_text(kwargs);
  return prompt;
}

Result<ChatRequest> parse_chat_request(const json::object& body, const RequestRules& rules) {
  ChatRequest request;
  GenerationRequest& out = request.generation;
  // The template writes the special tokens, so the tokenizer must not add them.
  out.prompt.add_special_tokens = false;
  Fields fields(body);
  TRY_VOID(read_shared_fields(fields, rules, out));
  TRY(request.prompt, read_chat_prompt(fields, rules));
  std::ranges::move(request.prompt.ignored, std::back_inserter(out.unknown_fields));
  if (request.prompt.omitted_images) out.unknown_fields.emplace_back(kOmittedImagesField);
  TRY_VOID(read_echo(fields, body, request.prompt));
  TRY_VOID(read_tools(fields, rules, request));
  TRY_VOID(read_reasoning(fields, rules, out));
  TRY_VOID(read_max_tokens(fields, rules, out));
  TRY_VOID(read_logprobs(fields, out));
  TRY_VOID(refuse_chat_only(fields));
  TRY_VOID(ignore_store(fields, out));
  TRY_VOID(reported_as(finish_reading(fields, rules, out), "logprobs", "top_logprobs"));
  return request;
}

}  // namespace octavo::openai
