#include "serve/openai/responses_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/exact_json.h"
#include "serve/openai/client_tools.h"
#include "serve/openai/compaction.h"
#include "serve/openai/item_references.h"
#include "serve/openai/response_fields.h"
#include "serve/openai/result_order.h"
#include "serve/openai/tool_names.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Returns whether this is a call that another API's server has run within its answer. The item has no result;
// the text of that answer follows it.
bool is_hosted_call(std::string_view type) {
  constexpr std::string_view kTypes[] = {"web_search_call", "file_search_call", "code_interpreter_call",
                                         "image_generation_call"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

// Converts items to chat messages. Consecutive reasoning, texts and calls of the assistant become one
// message.
class Conversation {
 public:
  Result<> add(const json::value& item, const std::string& name) {
    if (!item.is_object()) return invalid(name, "must be an object");
    Fields fields(item.get_object(), name + ".");
    std::string type = "message";
    TRY_VOID(fields.text("type", type));
    unfinished_ = false;
    if (type == "message") return add_message(fields);
    if (type == "function_call" || type == "custom_tool_call") return add_call(fields, type);
    if (type == "function_call_output" || type == "custom_tool_call_output") return add_output(fields);
    if (type == "reasoning") return add_reasoning(fields);
    if (type == "mcp_call") return add_server_call(fields);
    if (type.starts_with("mcp_")) return {};  // lists of tools, and approvals
    if (const ClientTool* tool = client_tool(type))
      return type == tool->call ? add_client_call(fields, *tool) : add_client_output(fields, *tool);
    if (type == "additional_tools") return add_tools(fields);
    if (is_compaction(type)) return add_compaction(fields);
    if (is_hosted_call(type)) {
      ignored_.push_back("input.type=" + type);
      return {};
    }
    return invalid(name + ".type",
                   "{} is not supported: must be message, item_reference, function_call, "
                   "function_call_output, custom_tool_call, custom_tool_call_output, reasoning, "
                   "additional_tools, compaction, a call or output of a shell, apply_patch or tool_search, "
                   "or an mcp item",
                   type);
  }

  json::array take() { return std::move(messages_); }
  // Returns whether the last item is an assistant message with the status of an unfinished one.
  bool unfinished() const { return unfinished_; }
  std::vector<std::string> take_images() { return std::move(images_); }
  std::vector<std::string> take_ignored() { return std::move(ignored_); }
  // Returns the lists of tools that items of the input add.
  std::vector<ToolList> take_tools() { return std::move(tools_); }

 private:
  // Reads a string, or joins the texts of a list of parts.
  static Result<std::string> text_of(Fields& fields, std::string_view field) {
    const json::value* content = fields.any(field);
    const std::string name = fields.full_name(field);
    if (!content) return "";
    if (content->is_string()) return std::string(content->get_string());
    if (!content->is_array()) return invalid(name, "must be a string or a list of parts");
    std::string text;
    for (std::size_t i = 0; i < content->get_array().size(); ++i) {
      TRY(const std::string piece, part_text(content->get_array()[i], fmt::format("{}[{}]", name, i)));
      if (!text.empty()) text += '\n';
      text += piece;
    }
    return text;
  }

  static Result<std::string> part_text(const json::value& part, const std::string& name) {
    if (!part.is_object()) return invalid(name, "must be an object");
    Fields f(part.get_object(), name + ".");
    std::string type, text;
    TRY_VOID(f.text("type", type));
    const bool is_text = type == "input_text" || type == "output_text" || type == "text" ||
                         type == "summary_text" || type == "reasoning_text";
    if (!is_text && type != "refusal")
      return invalid(name + ".type", "{} is not supported: only text and input_image are", type);
    TRY_VOID(f.text(is_text ? "text" : "refusal", text));
    return text;
  }

  Result<> add_message(Fields& fields) {
    std::string role;
    TRY_VOID(fields.text("role", role));
    if (role.empty()) return invalid(fields.full_name("role"), "is missing");
    // An answer that ended within its reasoning has no content.
    if (!fields.any("content") && role != "assistant")
      return invalid(fields.full_name("content"), "is missing");
    TRY(json::value content, content_of(fields, "content"));
    if (role == "assistant") {
      std::string status;
      TRY_VOID(fields.text("status", status));
      unfinished_ = status == "in_progress" || status == "incomplete";
      if (has_text_) end_turn();
      assistant()["content"] = std::move(content);
      has_text_ = true;
      return {};
    }
    end_turn();
    messages_.push_back(json::object{{"role", role}, {"content", std::move(content)}});
    return {};
  }

  Result<> add_compaction(Fields& fields) {
    TRY(std::string summary, read_compaction(fields));
    end_turn();
    messages_.push_back(json::object{{"role", "user"}, {"content", std::move(summary)}});
    return {};
  }

  // Returns the content for a chat message: a text, which is "" if the field is missing, or a list of parts.
  Result<json::value> content_of(Fields& fields, std::string_view field) {
    const json::value* content = fields.any(field);
    if (!content || !content->is_array()) {
      TRY(std::string text, text_of(fields, field));
      return json::value(std::move(text));
    }
    json::array parts;
    for (std::size_t i = 0; i < content->get_array().size(); ++i) {
      const json::value& part = content->get_array()[i];
      const std::string name = fmt::format("{}[{}]", fields.full_name(field), i);
      const json::value* type = part.is_object() ? part.get_object().if_contains("type") : nullptr;
      if (type && *type == "input_image") {
        Fields f(part.get_object(), name + ".");
        std::string url;
        TRY_VOID(f.text("image_url", url));
        if (url.empty())
          return invalid(name + ".image_url",
                         "is missing: send a URL, because the server stores no files with ids");
        parts.push_back(json::object{{"type", "image_url"}, {"image_url", {{"url", url}}}});
        images_.push_back(name + ".image_url");
        continue;
      }
      TRY(std::string text, part_text(part, name));
      parts.push_back(json::object{{"type", "text"}, {"text", std::move(text)}});
    }
    return json::value(std::move(parts));
  }

  Result<> add_call(Fields& fields, std::string_view type) {
    const bool custom = type == "custom_tool_call";
    std::string id;
    std::string name, name_space;
    std::string arguments;
    TRY_VOID(fields.text("call_id", id));
    TRY_VOID(fields.text("name", name));
    TRY_VOID(fields.text("namespace", name_space));
    TRY_VOID(fields.text(custom ? "input" : "arguments", arguments));
    if (custom) arguments = custom_tool_arguments(arguments);
    if (id.empty()) return invalid(fields.full_name("call_id"), "is missing");
    if (name.empty()) return invalid(fields.full_name("name"), "is missing");
    json::object& message = assistant();
    if (!message.contains("tool_calls")) message["tool_calls"] = json::array();
    message["tool_calls"].get_array().push_back(
        json::object{{"id", id},
                     {"type", "function"},
                     {"function", {{"name", flat_tool_name(name_space, name)}, {"arguments", arguments}}}});
    return {};
  }

  Result<> add_output(Fields& fields) {
    std::string id;
    TRY_VOID(fields.text("call_id", id));
    if (id.empty()) return invalid(fields.full_name("call_id"), "is missing");
    if (!fields.any("output")) return invalid(fields.full_name("output"), "is missing");
    TRY(json::value content, content_of(fields, "output"));
    end_turn();
    messages_.push_back(json::object{{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(content)}});
    return {};
  }

  Result<> add_client_call(Fields& fields, const ClientTool& tool) {
    std::string id;
    TRY_VOID(fields.text("call_id", id));
    if (id.empty() && tool.function == "tool_search") {  // OpenAI's server has run the search
      ignored_.push_back("input.type=tool_search_call");
      return {};
    }
    const json::value* arguments = fields.any(tool.arguments);
    json::object call{{"call_id", id},
                      {"name", tool.function},
                      {"arguments", arguments ? exact_json_text(*arguments) : "{}"}};
    Fields called(call, fields.full_name(""));
    return add_call(called, "function_call");
  }

  // Adds the result of such a call. A text stays, and other results are shown as JSON. A result may have only
  // a status.
  Result<> add_client_output(Fields& fields, const ClientTool& tool) {
    std::string id;
    TRY_VOID(fields.text("call_id", id));
    TRY_VOID(add_tools(fields));
    const json::value* output = fields.any("output");
    if (!output) output = fields.any("tools");
    if (!output) output = fields.any("status");
    if (id.empty() && tool.function == "tool_search") return {};
    if (id.empty()) TRY_VOID(fields.text("id", id));  // local_shell_call_output
    json::object result{{"call_id", id}, {"output", ""}};
    if (output) result["output"] = output->is_string() ? *output : json::value(exact_json_text(*output));
    Fields answered(result, fields.full_name(""));
    return add_output(answered);
  }

  Result<> add_tools(Fields& fields) {
    TRY(const json::array* tools, fields.array("tools"));
    if (tools) tools_.push_back({fields.full_name("tools"), tools});
    return {};
  }

  // Adds a call that an MCP server has run, with its result.
  Result<> add_server_call(Fields& fields) {
    std::string id, label, name, arguments;
    TRY_VOID(fields.text("id", id));
    TRY_VOID(fields.text("server_label", label));
    TRY_VOID(fields.text("name", name));
    TRY_VOID(fields.text("arguments", arguments));
    const json::value* output = fields.any("output");
    if (!output) output = fields.any("error");
    const json::value* text =
        output && output->is_object() ? output->get_object().if_contains("content") : output;
    json::object call{{"call_id", id}, {"name", name}, {"namespace", label}, {"arguments", arguments}};
    Fields called(call, fields.full_name(""));
    TRY_VOID(add_call(called, "function_call"));
    json::object result{{"call_id", id}, {"output", text && text->is_string() ? *text : json::value("")}};
    Fields answered(result, fields.full_name(""));
    return add_output(answered);
  }

  Result<> add_reasoning(Fields& fields) {
    TRY(std::string text, text_of(fields, "content"));
    if (text.empty()) {
      TRY(text, text_of(fields, "summary"));
    }
    if (text.empty()) return {};
    if (has_text_) end_turn();
    json::value& thoughts = assistant()["reasoning"];
    thoughts =
        thoughts.is_string() ? fmt::format("{}\n{}", std::string_view(thoughts.get_string()), text) : text;
    return {};
  }

  json::object& assistant() {
    if (!in_turn_) messages_.push_back(json::object{{"role", "assistant"}, {"content", nullptr}});
    in_turn_ = true;
    return messages_.back().get_object();
  }

  void end_turn() { in_turn_ = has_text_ = false; }

  json::array messages_;
  std::vector<std::string> images_;
  std::vector<std::string> ignored_;
  std::vector<ToolList> tools_;
  bool in_turn_ = false;
  bool has_text_ = false;  // whether the current turn contains text
  bool unfinished_ = false;
};

// Appends the request's items to the items of the previous response, and converts all items to chat
// messages. As in vLLM, the answer continues an unfinished message. Returns the lists of tools in the items.
Result<std::vector<ToolList>> read_input(Fields& fields, const ResponseStore& stored, json::array& items,
                                         std::vector<std::string>& images, std::vector<std::string>& ignored,
                                         json::object& chat) {
  const json::value* input = fields.any("input");
  if (!input) return invalid("input", "is missing");
  const std::size_t before = items.size();
  if (input->is_string()) {
    items.push_back(json::object{{"role", "user"}, {"content", *input}});
  } else if (input->is_array() && !input->get_array().empty()) {
    items.insert(items.end(), input->get_array().begin(), input->get_array().end());
  } else {
    return invalid("input", "must be a string or a list of at least one item");
  }
  if (items.size() > kMessagesMax)
    return invalid("input", "must have at most {} items together with the earlier items, got {}",
                   kMessagesMax, items.size());
  TRY_VOID(resolve_references(items, before, stored));
  Conversation conversation;
  for (const std::size_t i : item_order(items))
    TRY_VOID(conversation.add(items[i], fmt::format("input[{}]", i < before ? i : i - before)));
  images = conversation.take_images();
  ignored = conversation.take_ignored();
  chat["messages"] = conversation.take();
  if (conversation.unfinished()) {
    chat["add_generation_prompt"] = false;
    chat["continue_final_message"] = true;
  }
  return conversation.take_tools();
}

// Converts text.format to response_format.
Result<> convert_format(Fields& fields, json::object& chat, std::vector<std::string>& ignored) {
  TRY_VOID(fields.refuse("response_format", "use text.format"));
  TRY(const json::object* text, fields.object("text"));
  if (!text) return {};
  Fields t(*text, "text.");
  TRY(const json::object* format, t.object("format"));
  t.accept({"verbosity"});
  for (std::string& name : t.unread()) ignored.push_back(std::move(name));
  if (!format) return {};
  const json::value* type = format->if_contains("type");
  if (!type || *type != "json_schema") {
    chat["response_format"] = *format;
    return {};
  }
  json::object schema = *format;
  schema.erase("type");
  chat["response_format"] = json::object{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  return {};
}

// Only the log-probabilities have an effect. The other values concern parts that no response here has.
Result<> convert_include(Fields& fields, json::object& chat) {
  constexpr std::string_view kLogprobs = "message.output_text.logprobs";
  constexpr std::string_view kNames[] = {kLogprobs,
                                         "code_interpreter_call.outputs",
                                         "computer_call_output.output.image_url",
                                         "file_search_call.results",
                                         "message.input_image.image_url",
                                         "reasoning.encrypted_content",
                                         "web_search_call.action.sources",
                                         "web_search_call.results"};
  std::vector<std::string> include;
  TRY_VOID(fields.texts("include", include));
  for (const std::string& name : include) {
    if (std::ranges::find(kNames, name) == std::end(kNames))
      return invalid("include", "must be a list of {}; got \"{}\"", fmt::join(kNames, ", "),
                     name.substr(0, 100));
    if (name == kLogprobs) chat["logprobs"] = true;
  }
  return {};
}

Result<> convert_limits(Fields& fields, json::object& chat) {
  if (const json::value* most = fields.any("max_output_tokens")) chat["max_completion_tokens"] = *most;
  TRY(const json::object* reasoning, fields.object("reasoning"));
  if (reasoning)
    if (const json::value* effort = reasoning->if_contains("effort"); effort && !effort->is_null())
      chat["reasoning_effort"] = *effort;
  TRY_VOID(convert_include(fields, chat));
  if (const json::value* top = fields.any("top_logprobs"); top && chat.contains("logprobs"))
    chat["top_logprobs"] = *top;
  std::string truncation = "disabled";
  TRY_VOID(fields.text("truncation", truncation));
  if (truncation == "auto")
    chat["truncate_prompt_tokens"] = -1;
  else if (truncation != "disabled")
    return invalid("truncation", "must be \"auto\" or \"disabled\"");
  return {};
}

// Fields that chats do not have, or that have another name in chats.
constexpr std::string_view kOwnFields[] = {"input",
                                           "instructions",
                                           "max_output_tokens",
                                           "previous_response_id",
                                           "prompt",
                                           "reasoning",
                                           "text",
                                           "tools",
                                           "tool_choice",
                                           "background",
                                           "store",
                                           "include",
                                           "truncation",
                                           "max_tool_calls",
                                           "top_logprobs",
                                           "conversation",
                                           "enable_response_messages",
                                           "response_format",
                                           "stream_options"};
// Fields of chats that this route does not have.
constexpr std::string_view kChatFields[] = {"messages", "logprobs", "max_tokens", "max_completion_tokens"};

}  // namespace

Result<> read_history(Fields& fields, const ResponseStore& stored, ResponsesRequest& request) {
  std::string previous;
  TRY_VOID(fields.text("previous_response_id", previous));
  const json::value* conversation = fields.any("conversation");
  if (!previous.empty()) {
    if (conversation) return invalid("conversation", "cannot be combined with previous_response_id");
    TRY(request.conversation,
        reported_as(stored.conversation(previous), "response_id", "previous_response_id"));
  }
  if (conversation) {
    const json::value* id =
        conversation->is_object() ? conversation->get_object().if_contains("id") : conversation;
    if (!id || !id->is_string()) return invalid("conversation", "must be an id, or an object with an id");
    request.conversation_id = id->get_string();
    TRY(request.conversation, stored.conversations().items(request.conversation_id));
  }
  request.known_items = request.conversation.size();
  return {};
}

Result<ResponsesRequest> parse_responses_request(const json::object& body, const RequestRules& rules,
                                                 const ResponseStore& stored) {
  ResponsesRequest request;
  Fields fields(body);
  TRY_VOID(fields.boolean("store", request.store));
  TRY_VOID(fields.boolean("background", request.background));
  TRY_VOID(fields.boolean("enable_response_messages", request.messages));
  if (request.background && !request.store) return invalid("background", "needs store = true");
  TRY_VOID(fields.refuse("prompt", "stored prompts are not supported"));
  TRY_VOID(fields.refuse("previous_input_messages", "is not supported: use previous_response_id"));

  TRY_VOID(read_history(fields, stored, request));
  std::vector<std::string> images, ignored;
  json::object chat;
  TRY(const std::vector<ToolList> added,
      read_input(fields, stored, request.conversation, images, ignored, chat));
  const int omitted = omit_images(rules, chat["messages"].get_array(), images);
  for (std::size_t i = 0; i < images.size(); ++i)
    TRY_VOID(check_media(images[i], rules, static_cast<std::ptrdiff_t>(i), MediaKind::image));

  if (omitted > 0) ignored.emplace_back(kOmittedImagesField);
  for (const auto& [name, value] : body) {
    const std::string_view field = name;
    if (std::ranges::find(kChatFields, field) != std::end(kChatFields))
      ignored.emplace_back(field);
    else if (std::ranges::find(kOwnFields, field) == std::end(kOwnFields))
      chat[field] = value;
  }
  TRY(request.tools, convert_responses_tools(fields, added, chat, ignored));
  TRY_VOID(convert_format(fields, chat, ignored));
  TRY_VOID(convert_limits(fields, chat));
  std::string instructions;
  TRY_VOID(fields.text("instructions", instructions));
  json::array& messages = chat["messages"].get_array();
  if (!instructions.empty())
    messages.insert(messages.begin(), json::object{{"role", "system"}, {"content", instructions}});

  auto read = reported_as(parse_chat_request(chat, rules), "max_completion_tokens", "max_output_tokens");
  read = tools_reported_as(reported_as(std::move(read), "reasoning_effort", "reasoning.effort"));
  TRY(request.chat, format_reported_as(std::move(read), "text.format"));
  if (request.messages) request.chat.generation.report.token_ids = true;
  if (!request.chat.generation.limit_field.empty()) request.chat.generation.limit_field = "max_output_tokens";
  for (std::size_t i = 0; i < images.size(); ++i) request.chat.prompt.media[i].field = std::move(images[i]);
  if (request.chat.generation.sampling.n != 1) return invalid("n", "must be 1");
  for (std::string& name : ignored) request.chat.generation.unknown_fields.push_back(std::move(name));
  request.response = response_fields(body, request);
  return request;
}

}  // namespace octavo::openai
