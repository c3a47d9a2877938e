// /v1/sessions: lists, changes and prefills sessions (request/session.h).
#include <boost/json/serialize.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/quoted_text.h"
#include "openai/errors.h"
#include "openai/request_fields.h"
#include "serve/openai/session_fields.h"
#include "serve/prepare.h"
#include "serve/routes/handlers.h"

namespace octavo::routes {

namespace json = boost::json;

namespace {

constexpr std::string_view kSessions = "/v1/sessions";
constexpr int kPendingMax = 256;  // commands without a result, of all clients

// The parts of a path after /v1/sessions: /ID or /ID/ACTION.
struct SessionPath {
  std::string id;
  std::string_view action;
};

SessionPath parse_session_path(std::string_view path) {
  path.remove_prefix(path.rfind(kSessions) + kSessions.size());
  if (!path.empty()) path.remove_prefix(1);
  for (const std::string_view action : {"pin", "retain", "demote", "release", "fork", "prefill"})
    if (path.size() > action.size() + 1 && path.ends_with(action) &&
        path[path.size() - action.size() - 1] == '/')
      return {std::string(path.substr(0, path.size() - action.size() - 1)), action};
  return {std::string(path), ""};
}

json::object session_json(const SessionInfo& s) {
  const auto seconds = [](std::int64_t us) { return static_cast<double>(us) * 1e-6; };
  return {{"id", s.key.id},
          {"object", "session"},
          {"owner", s.key.owner},
          {"engine", s.engine},
          {"state", s.pinned       ? "pinned"
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

// Counts a command until this object is destroyed.
class PendingCommand {
 public:
  explicit PendingCommand(ServicePtr service)
      : service_(std::move(service)), before_(service_->admission.session_commands()++) {}
  ~PendingCommand() { --service_->admission.session_commands(); }
  PendingCommand(const PendingCommand&) = delete;
  PendingCommand& operator=(const PendingCommand&) = delete;

  int before() const { return before_; }  // number of earlier commands without a result

 private:
  const ServicePtr service_;
  const int before_;
};

// Responds with all sessions, or with the only one.
SessionsDone respond_sessions(const ExchangePtr& exchange, bool all,
                              std::shared_ptr<const PendingCommand> pending) {
  return [exchange, all, pending](const Result<std::vector<SessionInfo>>& sessions) {
    if (!sessions) return exchange->respond(openai::error_response(sessions.error()));
    if (!all && !sessions->empty())
      return exchange->respond({.body = json::serialize(session_json(sessions->front()))});
    json::array data;
    for (const SessionInfo& session : *sessions) data.push_back(session_json(session));
    exchange->respond({.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}})});
  };
}

// Replies with the usage of a prompt that a prefill has computed.
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

// Computes the prompt of a chat or completion request, so that the session's next turn finds it.
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

Result<SessionCommand> read_command(const ExchangePtr& exchange, const SessionPath& path, std::string owner) {
  SessionCommand command{.key = {std::move(owner), path.id}};
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
    return invalid(unread.front(), "is not a field of {}/{{id}}/{}", kSessions, path.action);
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
  const SessionPath path = parse_session_path(request.path);
  std::string owner = session_owner(*service, request);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::string_view methods = path.id.empty()       ? "GET, HEAD"
                                   : path.action.empty() ? "GET, HEAD, DELETE"
                                                         : "POST";
  if (methods.find(request.method) == std::string_view::npos) {
    http::Response response = openai::error_response(
        405,
        fmt::format("{} is not allowed for {}: use {}", request.method, quoted_text(request.path), methods));
    response.headers.add("Allow", std::string(methods));
    exchange->respond(std::move(response));
    return {};
  }
  if (path.action == "prefill") return prefill(service, exchange, path.id);
  SessionCommand command{.key = {owner, path.id}};
  if (request.method == "DELETE") command.verb = SessionVerb::release;
  if (!reads && request.method != "DELETE") {
    TRY(command, read_command(exchange, path, std::move(owner)));
  }
  const auto pending = std::make_shared<const PendingCommand>(service);
  if (pending->before() >= kPendingMax)
    return failure(ErrorCode::resource_exhausted,
                   "{} commands for sessions wait for the engine, which is the limit: retry later",
                   kPendingMax);
  service->engine.command_sessions(std::move(command), respond_sessions(exchange, path.id.empty(), pending));
  return {};
}

}  // namespace octavo::routes
