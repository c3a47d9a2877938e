#include "serve/mcp/tools.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash.h"
#include "http/url.h"
#include "openai/request_fields.h"
#include "serve/openai/responses_tools.h"

namespace octavo::mcp {

namespace json = boost::json;
using openai::Fields;

namespace {

constexpr std::size_t kServersMax = 16;
constexpr std::size_t kLabelBytesMax = 64;

bool is_mcp(const json::value& tool) {
  const json::value* type = tool.is_object() ? tool.get_object().if_contains("type") : nullptr;
  return type && *type == "mcp";
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The label becomes part of function names, so its characters are checked.
Result<> read_label(Fields& fields, std::string& label) {
  TRY_VOID(fields.text("server_label", label));
  const auto plain = [](unsigned char c) { return c == '_' || c == '-' || (c < 0x80 && std::isalnum(c)); };
  if (label.empty() || label.size() > kLabelBytesMax || !std::ranges::all_of(label, plain))
    return invalid(fields.full_name("server_label"), "must have 1 to {} letters, digits, _ and -",
                   kLabelBytesMax);
  return {};
}

Result<http::Url> read_url(Fields& fields) {
  std::string text;
  TRY_VOID(fields.text("server_url", text));
  const std::string name = fields.full_name("server_url");
  if (text.empty())
    return invalid(name, "is missing: send a URL, because connectors and tunnels are not supported");
  auto url = http::parse_url(text);
  if (!url) return invalid(name, "{}", url.error().message);
  return *std::move(url);
}

// Returns the index in Options::allowed of the entry for the URL. An entry with the port has precedence over
// one without.
Result<std::size_t> entry_of(const http::Url& url, const std::string& name, const Options& options) {
  const std::string with_port = http::host_and_port(url.host, url.port);
  for (const std::string& host : {with_port, url.host})
    for (std::size_t i = 0; i < options.allowed.size(); ++i)
      if (http::equal_ignoring_case(options.allowed[i], host)) return i;
  return invalid(name, "the host {} is not in --mcp-allow", with_port);
}

Result<http::Headers> read_headers(Fields& fields) {
  http::Headers headers;
  TRY(const json::object* given, fields.object("headers"));
  const std::string at = fields.full_name("headers");
  const auto printable = [](unsigned char c) { return c >= 0x20 && c < 0x7f; };
  if (given)
    for (const auto& [name, value] : *given) {
      const bool plain =
          value.is_string() && std::ranges::all_of(value.get_string(), printable) &&
          std::ranges::all_of(name, [&](unsigned char c) { return printable(c) && c != ':' && c != ' '; });
      if (!plain || name.empty())
        return invalid(at, "must be an object whose values are strings of printable ASCII characters");
      for (const std::string_view own : {"Host", "Content-Length", "Transfer-Encoding", "Connection",
                                         "Expect", "TE", "Trailer", "Upgrade"})
        if (http::equal_ignoring_case(own, std::string_view(name.data(), name.size())))
          return invalid(at, "must not contain {}, because the server sets this header itself", own);
      headers.set(std::string(name), std::string(value.get_string()));
    }
  std::string token;
  TRY_VOID(fields.text("authorization", token));
  if (!std::ranges::all_of(token, printable))
    return invalid(fields.full_name("authorization"), "must contain only printable ASCII characters");
  if (!token.empty()) headers.set("Authorization", "Bearer " + token);
  return headers;
}

// Reads a list of names, or {"tool_names": [..]}.
Result<std::vector<std::string>> read_names(const json::value& given, const std::string& at) {
  std::vector<std::string> names;
  const json::object list = given.is_object() ? given.get_object() : json::object{{"tool_names", given}};
  Fields fields(list, at + ".");
  TRY_VOID(fields.texts("tool_names", names));
  return names;
}

// Reads "always", "never", or {"always": {"tool_names"}, "never": {"tool_names"}}.
Result<> read_approval(Fields& fields, Server& server) {
  const json::value* given = fields.any("require_approval");
  if (!given) return {};
  const std::string at = fields.full_name("require_approval");
  if (given->is_object()) {
    const json::object& object = given->get_object();
    if (const json::value* always = object.if_contains("always")) {
      TRY(server.unapproved, read_names(*always, at));
    }
    if (const json::value* never = object.if_contains("never")) {
      TRY(server.approved, read_names(*never, at));
    }
    return {};
  }
  if (*given != "always" && *given != "never")
    return invalid(at, "must be \"always\", \"never\" or an object with lists of tools");
  server.needs_approval = *given == "always";
  return {};
}

Result<Server> read_server(const json::object& tool, const std::string& at, const Options& options,
                           const std::shared_ptr<Budget>& budget) {
  Fields fields(tool, at + ".");
  Server server{.field = at, .label = {}, .entry = 0, .client = nullptr};
  TRY_VOID(read_label(fields, server.label));
  TRY(http::Url url, read_url(fields));
  TRY(server.entry, entry_of(url, fields.full_name("server_url"), options));
  TRY(http::Headers headers, read_headers(fields));
  if (const json::value* allowed = fields.any("allowed_tools")) {
    TRY(server.allowed, read_names(*allowed, fields.full_name("allowed_tools")));
  }
  TRY_VOID(read_approval(fields, server));
  server.client = std::make_shared<Client>(std::move(url), std::move(headers), options.timeout_ms, budget);
  return server;
}

}  // namespace

bool Server::offers(std::string_view tool) const { return !allowed || contains(*allowed, tool); }

bool Server::requires_approval(std::string_view tool) const {
  return contains(unapproved, tool) || (needs_approval && !contains(approved, tool));
}

bool names_servers(const json::object& body) {
  const json::value* tools = body.if_contains("tools");
  return tools && tools->is_array() && std::ranges::any_of(tools->get_array(), is_mcp);
}

Result<Servers> read_servers(const json::object& body, const Options& options) {
  Servers servers;
  const json::array& tools = body.at("tools").get_array();
  const auto budget = std::make_shared<Budget>(Budget{.us = 1000 * options.response_ms});
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (!is_mcp(tools[i])) {
      servers.functions.push_back(tools[i]);
      continue;
    }
    const std::string at = fmt::format("tools[{}]", i);
    TRY(Server server, read_server(tools[i].get_object(), at, options, budget));
    if (std::ranges::find(servers.all, server.label, &Server::label) != servers.all.end())
      return invalid(at + ".server_label", "{} is also the label of another server: use a different label",
                     server.label);
    servers.all.push_back(std::move(server));
  }
  if (servers.all.size() > kServersMax)
    return invalid("tools", "must name at most {} MCP servers, got {}", kServersMax, servers.all.size());
  return servers;
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

std::string new_item_id(std::string_view prefix) {
  return fmt::format("{}_{:016x}{:016x}", prefix, secret_seed(), secret_seed());
}

void fail_call(json::object& item, std::string_view why) {
  item["status"] = "failed";
  item["error"] = json::object{{"type", "mcp_tool_execution_error"}, {"content", why}};
}

Result<std::deque<Call>> answered_calls(const json::array& known, const json::array& input,
                                        const Servers& servers) {
  std::map<std::string, const json::object*> requests;
  // ids of approval requests that were answered before; clients send old items again
  std::set<std::string> answered;
  for (const json::value& value : known) {
    if (!value.is_object()) continue;
    const json::object& item = value.get_object();
    const std::string type = text_at(item, "type");
    if (type == "mcp_approval_request") requests.emplace(text_at(item, "id"), &item);
    if (type == "mcp_call") answered.insert(text_at(item, "approval_request_id"));
  }
  std::deque<Call> calls;
  for (const json::value& value : input) {
    if (!value.is_object() || text_at(value.get_object(), "type") != "mcp_approval_response") continue;
    const json::object& answer = value.get_object();
    const std::string id = text_at(answer, "approval_request_id");
    const auto requested = requests.find(id);
    if (requested == requests.end()) return invalid("input", "no approval request has the id {}", id);
    if (!answered.insert(id).second) continue;
    const json::object& call = *requested->second;
    const std::string label = text_at(call, "server_label"), name = text_at(call, "name");
    const auto tool = servers.tools.find(openai::flat_tool_name(label, name));
    if (tool == servers.tools.end())
      return invalid("tools", "the tool {} of the MCP server {} is not among the request's tools", name,
                     label);
    json::object item{
        {"id", new_item_id("mcp")}, {"type", "mcp_call"}, {"status", "in_progress"},
        {"server_label", label},    {"name", name},       {"arguments", text_at(call, "arguments")},
        {"output", nullptr},        {"error", nullptr},   {"approval_request_id", id}};
    const json::value* approve = answer.if_contains("approve");
    if (!approve || *approve != true) fail_call(item, "the user did not approve this call");
    calls.push_back({.item = std::move(item), .tool = tool->second});
  }
  return calls;
}

json::object tools_item(std::string_view label, const std::vector<Tool>& tools) {
  json::array listed;
  for (const Tool& tool : tools)
    listed.push_back(json::object{{"name", tool.name},
                                  {"description", tool.description},
                                  {"input_schema", tool.schema},
                                  {"annotations", nullptr}});
  return {{"id", new_item_id("mcpl")},
          {"type", "mcp_list_tools"},
          {"server_label", label},
          {"tools", std::move(listed)},
          {"error", nullptr}};
}

void Servers::add_functions(std::size_t server, const json::object& item) {
  const json::value* listed = item.if_contains("tools");
  if (!listed || !listed->is_array()) return;
  for (const json::value& value : listed->get_array()) {
    const json::value* name = value.is_object() ? value.get_object().if_contains("name") : nullptr;
    if (!name || !name->is_string() || !all[server].offers(name->get_string())) continue;
    const json::object& tool = value.get_object();
    std::string flat = openai::flat_tool_name(all[server].label, name->get_string());
    json::object function{{"type", "function"}, {"name", flat}};
    if (const json::value* text = tool.if_contains("description")) function["description"] = *text;
    if (const json::value* schema = tool.if_contains("input_schema")) function["parameters"] = *schema;
    functions.push_back(std::move(function));
    tools.insert_or_assign(std::move(flat), ServerTool{server, std::string(name->get_string())});
  }
}

}  // namespace octavo::mcp
