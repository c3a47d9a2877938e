#include "fleet/scan/request_scan.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <charconv>

#include "base/exact_json.h"
#include "fleet/scan/body_json.h"
#include "http/form.h"
#include "http/target.h"
#include "openai/routes.h"
#include "openai/session_path.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 9> kHeaders{"x-smg-target-worker",
                                                   "authorization",
                                                   "x-forwarded-for",
                                                   "cookie",
                                                   "test-epp-endpoint-selection",
                                                   "x-llm-d-slo-ttft-ms",
                                                   "x-slo-ttft-ms",
                                                   "x-llm-d-slo-tpot-ms",
                                                   "x-slo-tpot-ms"};

// SGLang's router reads the first header, vllm-router the others.
constexpr std::string_view kRoutingHeaders[] = {"x-smg-routing-key", "x-session-id", "x-user-id",
                                                "x-tenant-id"};
constexpr std::size_t kRoutingKeyBytesMax = 256;  // policies store keys, so longer keys are truncated
// the router stores ids, and servers refuse longer ones, so longer ids are ignored
constexpr std::size_t kSessionBytesMax = 256;

std::string_view text_of(const json::value& value) {
  return value.is_string() ? std::string_view(value.get_string()) : std::string_view();
}

// Headers that name the session; the first one that the request has is used (docs/guides/sessions.md).
constexpr std::array<std::string_view, 3> kSessionHeaders{"x-session-id", "x-claude-code-session-id",
                                                          "session_id"};

std::string_view field_text(const json::object& object, std::string_view name) {
  const auto* found = object.if_contains(name);
  return found ? text_of(*found) : std::string_view();
}

// Content part types with media, in requests of OpenAI's, Anthropic's and vLLM's APIs.
constexpr std::array<std::string_view, 6> kMediaParts{"image_url", "input_image", "image",
                                                      "video_url", "audio_url",   "input_audio"};

// Returns a hash of the URL of an image, video or audio, or of its data if it has no URL.
std::uint64_t key_of_media(const json::value& source) {
  if (source.is_object())
    if (const auto* url = source.get_object().if_contains("url")) return key_of_media(*url);
  const std::string text = source.is_string() ? std::string(source.get_string()) : exact_json_text(source);
  return XXH64(text.data(), text.size(), 0);
}

void append_content(const json::value& content, RouteRequest& route) {
  if (content.is_string()) route.text += text_of(content);
  if (!content.is_array()) return;
  for (const json::value& part : content.get_array()) {
    if (part.is_string()) route.text += text_of(part);
    if (!part.is_object()) continue;
    route.text += field_text(part.get_object(), "text");
    const std::string_view type = field_text(part.get_object(), "type");
    if (std::ranges::find(kMediaParts, type) == kMediaParts.end()) continue;
    const auto* source = part.get_object().if_contains(type);
    route.media.push_back(key_of_media(source ? *source : part));
    route.media_positions.push_back({.at = route.text.size(),
                                     .video = type.find("video") != type.npos,
                                     .image = type.find("image") != type.npos});
  }
}

void append_messages(const json::value& messages, RouteRequest& route) {
  if (!messages.is_array()) return append_content(messages, route);
  for (const json::value& message : messages.get_array()) {
    if (!message.is_object()) continue;
    route.text += field_text(message.get_object(), "role");
    if (const auto* content = message.get_object().if_contains("content")) append_content(*content, route);
  }
}

bool append_tokens(const json::array& values, std::vector<std::uint32_t>& tokens) {
  for (const json::value& value : values) {
    boost::system::error_code error;
    const auto token = value.to_number<std::uint32_t>(error);
    if (error) return false;
    tokens.push_back(token);
  }
  return !values.empty();
}

// Returns whether the server runs the tool. Clients run only "function" and "custom"; the server runs all
// other types, such as "mcp" and "web_search_preview".
bool runs_at_server(const json::value& tool) {
  if (!tool.is_object()) return false;
  const std::string_view type = field_text(tool.get_object(), "type");
  return !type.empty() && type != "function" && type != "custom";
}

void read_prompt(const json::value& prompt, RouteRequest& route) {
  if (prompt.is_string()) {
    route.text = text_of(prompt);
  } else if (prompt.is_array() && !prompt.get_array().empty()) {
    const json::array& items = prompt.get_array();
    if (!items[0].is_number()) {
      route.several_prompts = items.size() > 1;
      return read_prompt(items[0], route);
    }
    route.tokens_are_exact = append_tokens(items, route.tokens);
    if (!route.tokens_are_exact) route.tokens.clear();
  }
}

// Returns the id of the response or conversation that the request continues. Returns "" if the request
// continues none.
std::string_view stored_id(const json::object& body) {
  if (const std::string_view response = field_text(body, "previous_response_id"); !response.empty())
    return response;
  const auto* conversation = body.if_contains("conversation");
  if (conversation && conversation->is_object()) return field_text(conversation->get_object(), "id");
  return field_text(body, "conversation");
}

// Reads the fields that vllm-router reads, and those of OpenAI's and Anthropic's agents.
std::string_view routing_key(const json::object& body) {
  for (const auto& [parent, name] : {std::pair("session_params", "session_id"), {"metadata", "user_id"}})
    if (const auto* found = body.if_contains(parent); found && found->is_object())
      if (const std::string_view key = field_text(found->get_object(), name); !key.empty()) return key;
  for (const char* name : {"prompt_cache_key", "user", "session_id", "user_id"})
    if (const std::string_view key = field_text(body, name); !key.empty()) return key;
  return {};
}

// Returns 0 if engines do not accept the timeout.
double checked_timeout(double seconds) {
  constexpr double kMost = 86'400;
  return seconds > 0 && seconds <= kMost ? seconds : 0;
}

// Returns the session that the body names. Returns "" if it names none.
std::string_view session_of_body(const json::object& body) {
  for (const char* name : {"session_id", "prompt_cache_key"})
    if (const std::string_view id = field_text(body, name); !id.empty()) return id;
  const auto* more = body.if_contains("nvext");
  return more && more->is_object() ? field_text(more->get_object(), "session_id") : std::string_view();
}

void read_body(const json::object& body, RouteRequest& route) {
  if (const std::string_view id = session_of_body(body); !id.empty()) route.session = id;
  route.model = field_text(body, "model");
  route.cache_salt = field_text(body, "cache_salt");
  if (const auto* most = body.if_contains("truncate_prompt_tokens")) route.truncated = !most->is_null();
  if (const auto* stream = body.if_contains("stream"); stream && stream->is_bool())
    route.stream = stream->get_bool();
  const auto integer = [&](std::string_view name, int& value) {
    const auto* found = body.if_contains(name);
    boost::system::error_code error;
    if (const auto number = found ? found->to_number<std::int32_t>(error) : 0; found && !error)
      value = number;
  };
  integer("priority", route.priority);
  if (const auto* timeout = body.if_contains("timeout")) {
    boost::system::error_code error;
    const auto seconds = timeout->to_number<double>(error);
    if (!error) route.timeout_s = checked_timeout(seconds);
  }
  route.stored_id = stored_id(body);
  if (route.routing_key.empty()) route.routing_key = routing_key(body);
  for (const char* name : {"max_tokens", "max_completion_tokens", "max_output_tokens"})
    integer(name, route.output_tokens_max);

  if (const auto* tools = body.if_contains("tools"); tools && tools->is_array()) {
    route.text += exact_json_text(*tools);
    route.server_tools = std::ranges::any_of(tools->get_array(), runs_at_server);
  }
  for (const char* name : {"system", "instructions"})
    if (const auto* found = body.if_contains(name)) append_content(*found, route);
  if (const auto* messages = body.if_contains("messages")) return append_messages(*messages, route);
  for (const char* name : {"prompt", "text", "input_ids", "token_ids", "query"})
    if (const auto* found = body.if_contains(name)) return read_prompt(*found, route);
  // `input` is a list of messages in the Responses API, and a text or a list of texts for embeddings.
  const auto* input = body.if_contains("input");
  if (!input) return;
  if (input->is_array() && !input->get_array().empty() && input->get_array()[0].is_object())
    return append_messages(*input, route);
  read_prompt(*input, route);
}

void read_json(const std::string& text, RouteRequest& route) {
  BodyMemory memory(text.size());
  // A body that cannot be parsed is not an error here, because the endpoint may accept it.
  const Result<json::value> body = body_json(text, &memory);
  route.body.unreadable = !body;
  if (!body) return void(route.body.error = body.error().message);
  if (!body->is_object()) return void(route.body.error = "not an object");
  read_body(body->get_object(), route);
}

// Reads the model from a multipart form.
void read_form(std::string_view content_type, const std::string& body, RouteRequest& route) {
  route.body.error = "a form";
  const auto parts = http::parse_form(content_type, body);
  if (!parts) return;
  for (const http::FormPart& part : *parts)
    if (part.name == "model" && !part.filename) route.model = part.data;
}

// Reads the model or the stored id from paths such as "/v1/models/{model}" and "/v1/responses/{id}/cancel".
void read_path(std::string_view path, RouteRequest& route) {
  const openai::Route* known = openai::find_route(path);
  if (!known || !known->path.ends_with('/')) return;
  const std::string_view session = known->session ? openai::parse_session_path(path).id : std::string_view();
  path.remove_prefix(known->path.size());
  if (known->model == openai::ModelField::path) route.model = path;
  if (known->stored_id) route.stored_id = path.substr(0, path.find('/'));
  if (known->session) route.session = route.stored_id = session;
}

}  // namespace

RouteRequest scan_request(const http::Request& request, std::span<const std::string> headers) {
  RouteRequest route;
  const auto read = [&](std::string_view name) {
    if (const auto value = request.headers.find(name)) route.headers.emplace_back(name, *value);
  };
  for (const std::string_view name : kHeaders) read(name);
  for (const std::string& name : headers) read(name);
  for (const std::string_view name : kRoutingHeaders)
    if (route.routing_key.empty()) route.routing_key = request.headers.find(name).value_or("");
  for (const std::string_view name : kSessionHeaders)
    if (route.session.empty()) route.session = request.headers.find(name).value_or("");
  const std::string_view type = request.headers.find("Content-Type").value_or("");
  http::equal_ignoring_case(type.substr(0, type.find(';')), "multipart/form-data")
      ? read_form(type, request.body, route)
      : read_json(request.body, route);
  read_path(request.path, route);
  // as servers with many models read it
  if (route.model.empty()) route.model = http::query_value(request.query, "model").value_or("");
  if (const auto given = request.headers.find("X-Request-Timeout")) {
    double seconds = 0;
    std::from_chars(given->data(), given->data() + given->size(), seconds);
    route.timeout_s = checked_timeout(seconds);
  }
  route.routing_key.resize(std::min(route.routing_key.size(), kRoutingKeyBytesMax));
  if (route.session.size() > kSessionBytesMax) route.session.clear();
  if (!route.tokens_are_exact) route.tokens = estimated_tokens(route.text);
  return route;
}

}  // namespace octavo::fleet
