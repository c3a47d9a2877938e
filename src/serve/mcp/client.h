// A client of Model Context Protocol servers (https://modelcontextprotocol.io), over streamable HTTP: lists
// and calls tools. It blocks.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
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
  bool failed = false;  // the tool reports an error, which `text` describes
};

// Errors of all functions: unavailable (the server cannot be reached, is too slow, or its answer is
// malformed), with a message that names the server.
class Client {
 public:
  Client(http::Url url, http::Headers headers, int timeout_ms)
      : url_(std::move(url)), headers_(std::move(headers)), timeout_ms_(timeout_ms) {}

  // Call it before the other functions.
  Result<> initialize();
  Result<std::vector<Tool>> list_tools();
  Result<CallResult> call(std::string_view tool, boost::json::object arguments);

 private:
  std::unexpected<Error> fails(std::string_view method, std::string_view why) const;
  Result<boost::json::object> request(std::string_view method, boost::json::object params);
  // id 0: a notification, which has no answer.
  Result<boost::json::object> send(const boost::json::object& message, std::int64_t id);

  const http::Url url_;
  const http::Headers headers_;  // of the request, such as Authorization
  const int timeout_ms_;
  std::string session_{};  // value of Mcp-Session-Id; "": the server has no sessions
  std::string version_{};  // of the protocol, as the server has chosen; "": not known yet
  std::int64_t last_id_ = 0;
};

}  // namespace octavo::mcp
