// agent-identity: reads the session id of a coding agent from the headers that agents send.
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {
namespace {

// Session headers of Claude Code, OpenCode, Codex since 0.131, and older Codex.
constexpr std::string_view kAgents[] = {"x-claude-code-session-id", "x-session-affinity", "session-id", "session_id"};

}  // namespace

std::unique_ptr<Plugin> make_agent_identity(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<AgentIdentity>();
  const auto add = [&](std::string_view header) {
    plugin->sources.push_back({.header = plugins.reads_header(header)});
  };
  if (const auto* more = parameters.get("additionalSessionHeaders"); more && more->is_array()) {
    for (const auto& header : more->get_array())
      header.is_string() && !header.get_string().empty()
          ? add(header.get_string())
          : parameters.fail("additionalSessionHeaders", "must be a list of names");
  } else if (more) {
    parameters.fail("additionalSessionHeaders", "must be a list of names");
  }
  for (const std::string_view header : kAgents) add(header);
  return plugin;
}

}  // namespace octavo::fleet
