// Reads the MCP servers of a request to /v1/responses. Their tools become functions of a chat.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/mcp/client.h"

namespace octavo::mcp {

// An MCP server as a tool of the request: {"type": "mcp", "server_label", "server_url", "headers",
// "authorization", "allowed_tools", "require_approval"}.
struct Server {
  std::string field;  // name for errors, such as "tools[0]"
  std::string label;
  std::size_t entry;  // index in Options::allowed
  std::shared_ptr<Client> client;
  std::optional<std::vector<std::string>>
      allowed{};                          // names of the tools that the model may see; nullopt: all
  std::vector<std::string> approved{};    // names of the tools that run without the client's approval
  std::vector<std::string> unapproved{};  // names of the tools that need the client's approval
  bool needs_approval = true;             // whether tools in neither list need approval

  bool offers(std::string_view tool) const;
  bool requires_approval(std::string_view tool) const;
};

// The MCP tool that a function of the chat calls.
struct ServerTool {
  std::size_t server = 0;  // index of the MCP server in Servers::all
  std::string name;
};

struct Call {
  boost::json::object item;  // "mcp_call" or "mcp_approval_request"
  ServerTool tool;
  bool requires_approval = false;
};

struct Servers {
  std::vector<Server> all{};
  // tools of the request that are not MCP servers, then the tools of the MCP servers
  boost::json::array functions{};
  std::map<std::string, ServerTool, std::less<>> tools{};  // by function name

  // Adds those tools of an mcp_list_tools item that the model may see.
  void add_functions(std::size_t server, const boost::json::object& item);
};

bool names_servers(const boost::json::object& body);

// Returns an error with the field's name if a tool is invalid or the server's host is not in
// `options.allowed`.
Result<Servers> read_servers(const boost::json::object& body, const Options& options);

// Returns the calls that the client has approved or refused in `input`. A refused call is a failed call.
// known: all items of the conversation, including `input`. Returns invalid_argument if an answer names an
// unknown approval request.
Result<std::deque<Call>> answered_calls(const boost::json::array& known, const boost::json::array& input,
                                        const Servers& servers);

void fail_call(boost::json::object& item, std::string_view why);

// Returns "" if the member is missing or not a string.
std::string text_at(const boost::json::object& object, std::string_view name);
std::string new_item_id(std::string_view prefix);

// Returns an mcp_list_tools item with the server's tools.
boost::json::object tools_item(std::string_view label, const std::vector<Tool>& tools);

}  // namespace octavo::mcp
