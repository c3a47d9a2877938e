// A blocking client of Model Context Protocol servers (https://modelcontextprotocol.io) over streamable
// HTTP. It lists and calls tools.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/client.h"
#include "http/message.h"
#include "http/url.h"
#include "serve/mcp/options.h"

namespace octavo::mcp {

struct Tool {
  std::string name;
  std::string description{};
  boost::json::object schema{};
};

struct CallResult {
  std::string text;
  bool failed = false;  // whether the tool reported an error, which `text` describes
};

// What remains of the time and bytes that all MCP servers of one response together may use.
struct Budget {
  std::int64_t us;                                   // remaining microseconds for messages
  std::size_t list_bytes = Options::kListsBytesMax;  // remaining bytes for tool lists
};

// All functions return `unavailable`, with the server's name, if the server cannot be reached, is too slow or
// sends an invalid answer. Only one thread at a time may use a client.
class Client {
 public:
  // `budget` is shared by the clients of all MCP servers of a response.
  Client(http::Url url, http::Headers headers, int timeout_ms, std::shared_ptr<Budget> budget)
      : url_(std::move(url)),
        headers_(std::move(headers)),
        timeout_ms_(timeout_ms),
        budget_(std::move(budget)) {}

  // Starts the protocol's session. Must be called before the other functions.
  Result<> initialize();
  // Also returns invalid_argument if the tool lists of all servers of the response together are too large.
  Result<std::vector<Tool>> list_tools();
  Result<CallResult> call(std::string_view tool, boost::json::object arguments);
  // Ends the server's session, if it has one. Failures are ignored, because servers end old sessions
  // anyway.
  void end();

 private:
  std::unexpected<Error> fails(std::string_view method, std::string_view why) const;
  Result<boost::json::object> request(std::string_view method, boost::json::object params);
  // `id` 0 sends a notification, which has no answer.
  Result<boost::json::object> send(const boost::json::object& message, std::int64_t id);
  Result<boost::json::object> send_until(std::int64_t deadline_us, const boost::json::object& message,
                                         std::int64_t id);
  http::ClientOptions connection(std::int64_t deadline_us) const;
  http::Headers session_headers() const;
  Result<> count(const Tool& tool);

  const http::Url url_;
  const http::Headers headers_;  // headers from the client's request, such as Authorization
  const int timeout_ms_;
  const std::shared_ptr<Budget> budget_;
  std::string session_{};  // value of Mcp-Session-Id; "": the server has no sessions
  std::string version_{};  // protocol version that the server has chosen; "": not known yet
  std::int64_t last_id_ = 0;
};

}  // namespace octavo::mcp
