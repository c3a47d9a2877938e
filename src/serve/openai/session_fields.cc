#include "serve/openai/session_fields.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cctype>

#include "base/quoted_text.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr int kShortTtlS = 300, kLongTtlS = 3600;  // Anthropic's "5m" and "1h"

Result<> read_ttl(Fields& f, SessionUse& use) {
  for (const std::string_view name : {"ttl_seconds", "ttl"})
    if (f.any(name)) TRY_VOID(f.integer(name, use.ttl_s, 1, kSessionTtlMaxS));
  return {};
}

Result<> read_priority(Fields& f, SessionUse& use) {
  int priority = 0;
  TRY_VOID(f.integer("priority", priority));
  use.priority = std::clamp(priority, -kSessionPriorityMax, kSessionPriorityMax);
  return {};
}

// Reads an action of kv_hints: {"action_type": "Retain", "payload": {"session_id", "ttl_seconds",
// "priority"}}.
Result<> read_action(const json::value& value, const std::string& name, SessionUse& use,
                     std::vector<std::string>& unknown) {
  if (!value.is_object()) return invalid(name, "must be an object");
  Fields f(value.get_object(), name + ".");
  std::string type;
  TRY_VOID(f.text("action_type", type));
  if (type.empty()) return invalid(f.full_name("action_type"), "is missing");
  std::ranges::transform(type, type.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  f.accept({"action_id", "action_version"});
  TRY(const json::object* payload, f.object("payload"));
  constexpr std::string_view kVerbs[] = {"pin", "retain", "demote", "release", "prefetch"};
  // An action of an unknown type is ignored with a warning in the log, as in vLLM.
  if (std::ranges::find(kVerbs, type) == std::end(kVerbs)) {
    unknown.push_back(fmt::format("{}={}", f.full_name("action_type"), quoted_text(type)));
    return {};
  }
  use.pin = type == "pin";
  use.demote = type == "demote" || type == "release";
  if (type == "release") use.ttl_s = 1;
  if (payload == nullptr) return {};
  Fields p(*payload, f.full_name("payload."));
  for (const std::string_view id : {"session", "session_id"})
    if (p.any(id)) TRY_VOID(p.text(id, use.key.id));
  if (type != "release") TRY_VOID(read_ttl(p, use));
  TRY_VOID(read_priority(p, use));
  for (std::string& unread : p.unread()) unknown.push_back(std::move(unread));
  return {};
}

Result<> read_kv_hints(Fields& fields, SessionUse& use, std::vector<std::string>& unknown) {
  TRY(const json::object* hints, fields.object("kv_hints"));
  if (hints == nullptr) return {};
  Fields f(*hints, "kv_hints.");
  f.accept({"protocol_version", "message_id"});
  TRY(const json::array* actions, f.array("actions"));
  constexpr std::size_t kActionsMax = 64;
  if (actions && actions->size() > kActionsMax)
    return invalid("kv_hints.actions", "must have at most {} actions, got {}", kActionsMax, actions->size());
  for (std::size_t i = 0; actions && i < actions->size(); ++i)
    TRY_VOID(read_action((*actions)[i], fmt::format("kv_hints.actions[{}]", i), use, unknown));
  for (std::string& unread : f.unread()) unknown.push_back(std::move(unread));
  return {};
}

// Reads Dynamo's extensions. Ignores `osl`, which is for routers, and `speculative_prefill`, because the
// blocks of an answer stay cached anyway.
Result<> read_nvext(Fields& fields, SessionHints& out, std::vector<std::string>& unknown) {
  TRY(const json::object* extensions, fields.object("nvext"));
  if (extensions == nullptr) return {};
  Fields f(*extensions, "nvext.");
  TRY_VOID(f.text("session_id", out.use.key.id));
  if (const json::value* control = f.any("cache_control")) {
    TRY(out.use.ttl_s, read_cache_control(*control, "nvext.cache_control"));
  }
  TRY(const json::object* hints, f.object("agent_hints"));
  if (hints != nullptr) {
    Fields h(*hints, "nvext.agent_hints.");
    int osl = 0;
    bool speculative = false;
    TRY_VOID(h.integer("osl", osl, 1));
    TRY_VOID(h.boolean("speculative_prefill", speculative));
    TRY_VOID(h.integer("priority", out.request_priority));
    TRY_VOID(read_priority(h, out.use));
    h.accept({"strict_priority"});
    for (std::string& unread : h.unread()) unknown.push_back(std::move(unread));
  }
  for (std::string& unread : f.unread()) unknown.push_back(std::move(unread));
  return {};
}

}  // namespace

Result<> check_session_id(std::string_view field, std::string_view id) {
  if (id.empty() || id.size() > kSessionIdBytesMax)
    return invalid(field, "must have 1 to {} bytes, got {}", kSessionIdBytesMax, id.size());
  return {};
}

Result<int> read_cache_control(const json::value& value, std::string_view field) {
  if (!value.is_object()) return invalid(field, "must be an object");
  Fields f(value.get_object(), std::string(field) + ".");
  std::string type, ttl = "5m";
  TRY_VOID(f.text("type", type));
  TRY_VOID(f.text("ttl", ttl));
  if (type != "ephemeral")
    return invalid(f.full_name("type"), "must be \"ephemeral\", got {}", quoted_text(type));
  if (ttl != "5m" && ttl != "1h")
    return invalid(f.full_name("ttl"), "must be \"5m\" or \"1h\", got {}", quoted_text(ttl));
  return ttl == "5m" ? kShortTtlS : kLongTtlS;
}

Result<SessionHints> read_session(Fields& fields, std::vector<std::string>& unknown) {
  SessionHints hints;
  if (const json::value* control = fields.any("cache_control")) {
    TRY(hints.use.ttl_s, read_cache_control(*control, "cache_control"));
  }
  TRY_VOID(read_kv_hints(fields, hints.use, unknown));
  TRY_VOID(read_nvext(fields, hints, unknown));
  std::string_view named_by = hints.use.key.id.empty() ? "" : "kv_hints";
  for (const std::string_view name : {"prompt_cache_key", "session_id"})  // session_id has precedence
    if (fields.any(name)) {
      TRY_VOID(fields.text(name, hints.use.key.id));
      named_by = name;
    }
  // An empty prompt_cache_key counts as missing, because OpenAI's clients send "" if they have no key.
  if (!hints.use.key.id.empty()) TRY_VOID(check_session_id(named_by, hints.use.key.id));
  return hints;
}

}  // namespace octavo::openai
