// /v1/sessions: lists, changes, prefills, exports and imports sessions (request/session.h).
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/quoted_text.h"
#include "http/target.h"
#include "openai/errors.h"
#include "openai/request_fields.h"
#include "openai/session_path.h"
#include "serve/openai/session_fields.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"
#include "serve/routes/item_page.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr int kPendingMax = 256;  // commands without a result and exports that are not sent, of all clients
constexpr std::uint64_t kExportBytes = 4 << 20;     // usual size of a part of an export
constexpr int kPageDefault = 100, kPageMax = 1000;  // sessions in one page of the list
constexpr std::string_view kNextPiece = "X-Octavo-Next-Piece";

json::object session_json(const SessionInfo& s) {
  const auto seconds = [](std::int64_t us) { return static_cast<double>(us) * 1e-6; };
  return {{"id", s.key.id},
          {"object", "session"},
          {"owner", s.key.owner},
          {"engine", s.engine},
          {"state", s.importing    ? "importing"
                    : s.pinned     ? "pinned"
                    : s.blocks > 0 ? "retained"
                                   : "demoted"},
          {"active", s.active},
          {"tokens", s.length},
          {"held_tokens", s.tokens},
          {"held_blocks", s.blocks},
          {"priority", s.priority},
          {"ttl_seconds", s.ttl_s},
          {"age_seconds", seconds(s.age_us)},
          {"idle_seconds", seconds(s.idle_us)},
          {"turns", s.turns},
          {"usage", {{"prompt_tokens", s.prompt_tokens}, {"cached_tokens", s.cached_tokens}}}};
}

// While this object exists, the command counts as pending.
class PendingCommand {
 public:
  explicit PendingCommand(ServicePtr service)
      : service_(std::move(service)), before_(service_->admission.session_commands()++) {}
  ~PendingCommand() { --service_->admission.session_commands(); }
  PendingCommand(const PendingCommand&) = delete;
  PendingCommand& operator=(const PendingCommand&) = delete;

  int before() const { return before_; }  // number of commands that were pending when this one was counted

 private:
  const ServicePtr service_;
  const int before_;
};

// sessions: up to `limit` + 1 sessions of each engine.
http::Response page_of_sessions(std::vector<SessionInfo> sessions, int limit) {
  std::ranges::sort(sessions, {}, [](const SessionInfo& s) { return std::pair(s.key, s.engine); });
  // The next page begins after the last id of this page. So all sessions with that id must be on this page.
  std::size_t count = std::min(static_cast<std::size_t>(limit), sessions.size());
  while (count > 0 && count < sessions.size() && sessions[count].key == sessions[count - 1].key) ++count;
  const bool more = sessions.size() > count;
  sessions.resize(count);
  json::array data;
  for (const SessionInfo& session : sessions) data.push_back(session_json(session));
  return {.body = json::serialize(item_list(std::move(data), more))};
}

http::Response response_of(std::vector<SessionInfo> sessions, const SessionCommand& command) {
  if (command.key.id.empty()) return page_of_sessions(std::move(sessions), command.limit - 1);
  SessionInfo& session = sessions.front();
  if (command.verb != SessionVerb::export_part) return {.body = json::serialize(session_json(session))};
  http::Response part{.content_type = "application/octet-stream", .body = std::move(session.part)};
  if (session.next_piece > 0) part.headers.add(std::string(kNextPiece), std::to_string(session.next_piece));
  return part;
}

// Returns the query parameter `name` as an integer from `least` to `most`, or `otherwise` if the parameter is
// missing.
Result<int> query_integer(const http::Request& request, std::string_view name, int otherwise, int least,
                          int most) {
  const std::optional<std::string> text = http::query_value(request.query, name);
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least || value > most)
    return invalid(name, "must be an integer from {} to {}, got {}", least, most,
                   quoted_text(text->substr(0, 100)));
  return value;
}

// Reply of a prefill: only the usage.
class PrefillReply final : public openai::Reply {
 public:
  explicit PrefillReply(std::string id) : id_(std::move(id)) {}
  std::string open(int, const openai::EchoedPrompt&, const openai::Usage*) override { return ""; }
  std::string part(const openai::AnswerPart&, const openai::Usage*) override { return ""; }
  std::string close(const openai::Usage&) override { return ""; }
  std::string failed(const Error& error) override { return openai::stream_failed(error); }
  bool shows_cached_tokens() const override { return true; }
  std::string whole(std::span<const openai::AnswerPart>, std::span<const openai::EchoedPrompt>,
                    const openai::Usage& usage) override {
    return json::serialize(
        json::object{{"id", id_}, {"object", "session.prefill"}, {"usage", openai::usage_json(usage)}});
  }

 private:
  std::string id_;
};

// Computes the prompt of a chat or completion request, so that the next turn of the session finds it in the
// cache.
Result<> prefill(const ServicePtr& service, const ExchangePtr& exchange, const std::string& id) {
  TRY(json::object body, openai::parse_body(exchange->take_body()));
  const bool chat = body.contains("messages");
  if (!chat && !body.contains("prompt"))
    return invalid("messages", "is missing: send the messages or the prompt with which the next turn begins");
  body["session_id"] = id;
  body["stream"] = false;
  body["n"] = 1;
  body["max_tokens"] = 1;
  body.erase("max_completion_tokens");
  if (chat && !body.contains("add_generation_prompt")) body["add_generation_prompt"] = false;
  const ReplyMaker reply = [&](const Tokenizer&, openai::ReplyOptions) {
    return std::make_unique<PrefillReply>(id);
  };
  const auto go = [&](auto request, auto prepare) -> Result<> {
    TRY_VOID(read_headers(exchange->request(), request.generation));
    TRY(GenerationPlan plan, prepare(*service, std::move(request), "prefill-", reply));
    plan.prompt_only = true;
    return start(service, exchange, std::move(plan));
  };
  if (chat) {
    TRY(openai::ChatRequest request, openai::parse_chat_request(body, service->options.rules));
    if (!request.prompt.media.empty())
      return invalid("messages", "must contain only text, because a prefill loads no media");
    return go(std::move(request), prepare_chat_as);
  }
  TRY(openai::CompletionRequest request, openai::parse_completion_request(body, service->options.rules));
  return go(std::move(request), prepare_completion_as);
}

// Reads a GET request.
Result<SessionCommand> read_look_up(const http::Request& request, const openai::SessionPath& path,
                                    std::string owner) {
  SessionCommand command{.key = {std::move(owner), std::string(path.id)}};
  if (path.action == "export") {
    command.verb = SessionVerb::export_part;
    TRY(command.first, query_integer(request, "first", 0, 0, std::numeric_limits<int>::max()));
  } else if (path.id.empty()) {
    command.after = http::query_value(request.query, "after").value_or("");
    TRY(const int limit, query_integer(request, "limit", kPageDefault, 1, kPageMax));
    command.limit = limit + 1;  // one more than the page, to know whether more sessions exist
  }
  return command;
}

// Reads a POST request.
Result<SessionCommand> read_command(const Service& service, const ExchangePtr& exchange,
                                    const openai::SessionPath& path, std::string owner) {
  SessionCommand command{.key = {std::move(owner), std::string(path.id)}};
  if (path.action == "import") {
    if (!service.options.features.session_import)
      return failure(ErrorCode::unsupported,
                     "this server imports no sessions: start it with --enable-session-import");
    TRY_VOID(openai::check_session_id("session_id", path.id));
    command.verb = SessionVerb::import_part;
    TRY(command.engine, chosen_engine(exchange->request()));
    command.part = exchange->take_body();
    return command;
  }
  const std::string text = exchange->take_body();
  TRY(const json::object body, openai::parse_body(text.empty() ? "{}" : text));
  openai::Fields fields(body);
  if (path.action == "fork") {
    command.verb = SessionVerb::fork;
    TRY_VOID(fields.text("session_id", command.fork_id));
    TRY_VOID(openai::check_session_id("session_id", command.fork_id));
  } else if (path.action == "pin" || path.action == "retain") {
    command.verb = path.action == "pin" ? SessionVerb::pin : SessionVerb::retain;
    TRY_VOID(fields.integer("ttl_seconds", command.ttl_s, 1, kSessionTtlMaxS));
  } else {
    command.verb = path.action == "demote" ? SessionVerb::demote : SessionVerb::release;
  }
  if (const auto unread = fields.unread(); !unread.empty())
    return invalid(unread.front(), "is not a field of {}/{{id}}/{}", openai::kSessionsPath, path.action);
  return command;
}

}  // namespace

std::string session_owner(const Service& service, const http::Request& request) {
  const AccessOptions& access = service.options.access;
  const bool named = !access.client_header.empty() && request.headers.find(access.client_header);
  if (!named && access.api_keys.empty()) return std::string(kAnonymous);
  return hashed_tenant(client_of(service, request));
}

Result<> sessions(const ServicePtr& service, const ExchangePtr& exchange) {
  const http::Request& request = exchange->request();
  const openai::SessionPath path = openai::parse_session_path(request.path);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::string_view methods = path.id.empty() || path.action == "export" ? "GET, HEAD"
                                   : path.action.empty()                      ? "GET, HEAD, DELETE"
                                                                              : "POST";
  if (methods.find(request.method) == std::string_view::npos) {
    http::Response response = openai::error_response(
        405,
        fmt::format("{} is not allowed for {}: use {}", request.method, quoted_text(request.path), methods));
    response.headers.add("Allow", std::string(methods));
    exchange->respond(std::move(response));
    return {};
  }
  if (path.action == "prefill") return prefill(service, exchange, std::string(path.id));
  std::string owner = session_owner(*service, request);
  SessionCommand command{.verb = SessionVerb::release, .key = {owner, std::string(path.id)}};
  if (reads) {
    TRY(command, read_look_up(request, path, std::move(owner)));
  } else if (request.method != "DELETE") {
    TRY(command, read_command(*service, exchange, path, std::move(owner)));
  }
  const auto pending = std::make_shared<const PendingCommand>(service);
  if (pending->before() >= kPendingMax)
    return failure(ErrorCode::resource_exhausted,
                   "{} commands for sessions wait for the engine, which is the limit: retry later",
                   kPendingMax);
  // Counts an export, and its bytes, until the response is sent, because clients may not read it. The
  // connection owns the function, and so the exchange, until then.
  if (command.verb == SessionVerb::export_part) {
    if (auto full = exchange->reserve(kExportBytes)) {
      exchange->respond(*std::move(full));
      return {};
    }
    exchange->on_close([pending, exchange](http::CloseReason) {});
  }
  SessionCommand shape{.verb = command.verb, .key = command.key, .limit = command.limit};
  service->engine.command_sessions(std::move(command), [exchange, pending, shape = std::move(shape)](
                                                           Result<std::vector<SessionInfo>> sessions) {
    if (sessions && shape.verb == SessionVerb::export_part)
      if (auto full = exchange->reserve(sessions->front().part.size()))
        return exchange->respond(*std::move(full));
    exchange->respond(sessions ? response_of(*std::move(sessions), shape)
                               : openai::error_response(sessions.error()));
  });
  return {};
}

}  // namespace octavo::routes
