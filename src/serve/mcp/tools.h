// The MCP servers of a request to /v1/responses, and their tools as functions.
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

// {"type": "mcp", "server_label", "server_url", "headers", "authorization", "allowed_tools",
// "require_approval"}.
struct Server {
  std::string field;  // "tools[0]"
  std::string label;
  std::size_t entry;  // index in Options::allowed
  std::shared_ptr<Client> client;
  std::optional<std::vector<std::string>>
      allowed{};                          // names of the tools that the model may see; nullopt: all
  std::vector<std::string> approved{};    // names of tools that run without the client's approval
  std::vector<std::string> unapproved{};  // names of tools that need it
  bool needs_approval = true;             // for tools in neither list

  bool offers(std::string_view tool) const;
  bool must_ask(std::string_view tool) const;
};

// A tool as the model calls it.
struct ServerTool {
  std::size_t server = 0;  // index in Servers::all
  std::string name;
};

struct Call {
  boost::json::object item;  // "mcp_call", or "mcp_approval_request"
  ServerTool tool;
  bool asks = false;  // the item is an approval request
};

struct Servers {
  std::vector<Server> all{};
  // The request's tools that are no MCP servers, then those of the servers.
  boost::json::array functions{};
  std::map<std::string, ServerTool, std::less<>> tools{};  // by the function's name

  // Adds the tools of an mcp_list_tools item that the server offers.
  void add_functions(std::size_t server, const boost::json::object& item);
};

// Whether the request names an MCP server.
bool names_servers(const boost::json::object& body);

// Errors name the field; a server whose host is not in `options.allowed` is refused.
Result<Servers> read_servers(const boost::json::object& body, const Options& options);

// The calls that the client has approved or refused in `input`. A refused call has failed. known: all items,
// with those of `input`. Errors: invalid_argument.
Result<std::deque<Call>> answered_calls(const boost::json::array& known, const boost::json::array& input,
                                        const Servers& servers);

// Gives the call a result that reports an error.
void fail_call(boost::json::object& item, std::string_view why);

// "" if the member is missing or no text.
std::string text_at(const boost::json::object& object, std::string_view name);
std::string new_item_id(std::string_view prefix);

// {"type": "mcp_list_tools"} with the server's tools.
boost::json::object tools_item(std::string_view label, const std::vector<Tool>& tools);

}  // namespace octavo::mcp
