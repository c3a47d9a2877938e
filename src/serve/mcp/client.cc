#include "serve/mcp/client.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/exact_json.h"
#include "http/sse.h"
#include "text/utf8.h"

namespace octavo::mcp {

namespace json = boost::json;

namespace {

constexpr std::string_view kVersion = "2025-06-18";  // protocol version that the client proposes

std::string text_or_empty(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

// Returns whether the text is a protocol version (a date). It must be checked, because it becomes a header.
bool is_version(std::string_view text) {
  return text.size() == kVersion.size() && text.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Returns the message if it is the answer to the request with this id. Servers may send notifications before
// the answer.
std::optional<json::object> answer_in(std::string_view text, std::int64_t id) {
  boost::system::error_code broken;
  json::value message = parse_exact_json(std::string(text), broken);
  if (broken || !message.is_object()) return std::nullopt;
  const json::value* given = message.get_object().if_contains("id");
  if (!given || *given != id) return std::nullopt;
  return std::move(message.get_object());
}

// Reads the answer from a JSON body or (`events`) an event stream. Returns as soon as the answer has arrived,
// because the server may keep the stream open.
Result<std::optional<json::object>> read_answer(http::Client& client, bool events, std::int64_t id,
                                                std::int64_t deadline_us) {
  http::SseReader reader;
  std::string body;
  std::size_t bytes = 0;
  for (;;) {
    const std::int64_t left_ms = (deadline_us - now_us()) / 1000;
    if (left_ms <= 0) return failure(ErrorCode::unavailable, "the MCP server did not answer in time");
    TRY(const std::optional<std::string> piece, client.read_for(static_cast<int>(left_ms)));
    if (!piece) return events ? std::nullopt : answer_in(body, id);
    bytes += piece->size();
    if (bytes > Options::kAnswerBytesMax)
      return failure(ErrorCode::unavailable, "the answer has more than {} bytes", Options::kAnswerBytesMax);
    if (!events) {
      body += *piece;
      continue;
    }
    for (const std::string& event : reader.push(*piece))
      if (auto answer = answer_in(event, id)) return answer;
  }
}

// Returns the text of a result. Parts that are not text are replaced by their type, because the model reads
// only text.
CallResult result_of(const json::object& result) {
  CallResult out;
  const json::value* failed = result.if_contains("isError");
  out.failed = failed && *failed == true;
  const json::value* content = result.if_contains("content");
  if (content && content->is_array())
    for (const json::value& part : content->get_array()) {
      if (!part.is_object()) continue;
      const std::string type = text_or_empty(part.get_object(), "type");
      if (!out.text.empty()) out.text += '\n';
      out.text += type == "text" ? text_or_empty(part.get_object(), "text") : fmt::format("[{}]", type);
    }
  const json::value* structured = result.if_contains("structuredContent");
  if (out.text.empty() && structured) out.text = exact_json_text(*structured);
  if (out.text.size() > Options::kResultBytesMax) {
    const std::size_t all = out.text.size();
    out.text = replace_invalid_utf8(std::string_view(out.text).substr(0, Options::kResultBytesMax)) +
               fmt::format("\n[cut: {} of {} bytes]", Options::kResultBytesMax, all);
  }
  return out;
}

}  // namespace

Result<> Client::initialize() {
  TRY(const json::object server,
      request("initialize", {{"protocolVersion", kVersion},
                             {"capabilities", json::object()},
                             {"clientInfo", {{"name", "octavo"}, {"version", "1"}}}}));
  version_ = text_or_empty(server, "protocolVersion");
  if (!is_version(version_)) return fails("initialize", "protocolVersion must be a date");
  constexpr std::string_view kReady = "notifications/initialized";
  if (const auto sent = send({{"jsonrpc", "2.0"}, {"method", kReady}}, 0); !sent)
    return fails(kReady, sent.error().message);
  return {};
}

Result<std::vector<Tool>> Client::list_tools() {
  std::vector<Tool> tools;
  json::object params;
  for (int page = 0; page < Options::kPagesMax; ++page) {
    TRY(const json::object result, request("tools/list", params));
    const json::value* listed = result.if_contains("tools");
    if (!listed || !listed->is_array())
      return failure(ErrorCode::unavailable, "the MCP server {} lists no tools", url_.host);
    for (const json::value& value : listed->get_array()) {
      if (!value.is_object()) continue;
      const json::object& tool = value.get_object();
      const json::value* schema = tool.if_contains("inputSchema");
      tools.push_back({.name = text_or_empty(tool, "name"),
                       .description = text_or_empty(tool, "description"),
                       .schema = schema && schema->is_object() ? schema->get_object() : json::object()});
      TRY_VOID(count(tools.back()));
    }
    const std::string next = text_or_empty(result, "nextCursor");
    if (next.empty()) return tools;
    params["cursor"] = next;
  }
  return failure(ErrorCode::unavailable, "the tools of the MCP server {} have more than {} pages", url_.host,
                 Options::kPagesMax);
}

Result<> Client::count(const Tool& tool) {
  const std::size_t bytes = tool.name.size() + tool.description.size() + exact_json_text(tool.schema).size();
  if (bytes > budget_->list_bytes)
    return failure(ErrorCode::invalid_argument,
                   "the lists of tools of the request's MCP servers, including {}:{}, have more than {} "
                   "bytes: name fewer servers",
                   url_.host, url_.port, Options::kListsBytesMax);
  budget_->list_bytes -= bytes;
  return {};
}

Result<CallResult> Client::call(std::string_view tool, json::object arguments) {
  TRY(const json::object result,
      request("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}}));
  return result_of(result);
}

std::unexpected<Error> Client::fails(std::string_view method, std::string_view why) const {
  constexpr std::size_t kWhyBytesMax = 1 << 10;  // limits the text, because the MCP server chooses it
  return failure(ErrorCode::unavailable, "{} of the MCP server {}:{} failed: {}", method, url_.host,
                 url_.port, replace_invalid_utf8(why.substr(0, kWhyBytesMax)));
}

Result<json::object> Client::request(std::string_view method, json::object params) {
  const std::int64_t id = ++last_id_;
  auto sent = send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}}, id);
  if (!sent) return fails(method, sent.error().message);
  if (const json::value* error = sent->if_contains("error"); error && !error->is_null())
    return fails(
        method, error->is_object() ? text_or_empty(error->get_object(), "message") : exact_json_text(*error));
  json::value* result = sent->if_contains("result");
  if (!result || !result->is_object()) return fails(method, "the answer has neither a result nor an error");
  return std::move(result->get_object());
}

Result<json::object> Client::send(const json::object& message, std::int64_t id) {
  const std::int64_t started = now_us();
  const std::int64_t most = std::min(std::int64_t{1000} * timeout_ms_, budget_->us);
  if (most < 1000)
    return failure(ErrorCode::unavailable,
                   "the time limit of the response is over, so no more MCP tools run");
  auto answer = send_until(started + most, message, id);
  budget_->us -= now_us() - started;
  return answer;
}

http::ClientOptions Client::connection(std::int64_t deadline_us) const {
  return {.host = url_.host,
          .port = url_.port,
          .tls = url_.tls,
          .timeout_ms = static_cast<int>(std::max<std::int64_t>(1, (deadline_us - now_us()) / 1000)),
          .deadline_us = deadline_us,
          .body_bytes_max = Options::kAnswerBytesMax};
}

http::Headers Client::session_headers() const {
  http::Headers headers = headers_;
  if (!version_.empty()) headers.set("MCP-Protocol-Version", version_);
  if (!session_.empty()) headers.set("Mcp-Session-Id", session_);
  return headers;
}

Result<json::object> Client::send_until(std::int64_t deadline_us, const json::object& message,
                                        std::int64_t id) {
  TRY(http::Client client, http::Client::connect(connection(deadline_us)));
  http::Headers headers = session_headers();
  headers.set("Content-Type", "application/json");
  headers.set("Accept", "application/json, text/event-stream");
  TRY(const http::Response head, client.open("POST", url_.target, exact_json_text(message), headers));
  if (head.status < 200 || head.status >= 300)
    return failure(ErrorCode::unavailable, "HTTP status {}", head.status);
  if (const auto session = head.headers.find("Mcp-Session-Id")) session_ = *session;
  if (id == 0) return json::object();
  const bool events = head.content_type.starts_with("text/event-stream");
  TRY(std::optional<json::object> answer, read_answer(client, events, id, deadline_us));
  if (!answer) return failure(ErrorCode::unavailable, "the answer is not a JSON-RPC message");
  return *std::move(answer);
}

void Client::end() {
  constexpr std::int64_t kEndUs = 5'000'000;
  if (session_.empty()) return;
  if (auto client = http::Client::connect(connection(now_us() + kEndUs)))
    (void)client->open("DELETE", url_.target, "", session_headers());
  session_.clear();
}

}  // namespace octavo::mcp
