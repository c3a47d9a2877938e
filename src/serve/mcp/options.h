// Settings of MCP tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo::mcp {

struct Options {
  // Servers that requests may use: HOST, or HOST:PORT. Empty: MCP tools are off.
  std::vector<std::string> allowed{};
  int timeout_ms = 30'000;  // for each message to a server and its answer, and for the wait for a free thread
  std::int64_t response_ms = 300'000;  // for all messages of a response

  static constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;  // maximum size of a server's answer
  // maximum size of a call's output; the rest is cut off
  static constexpr std::size_t kResultBytesMax = std::size_t{64} << 10;
  // maximum size of the lists of tools of all servers of a request
  static constexpr std::size_t kListsBytesMax = std::size_t{4} << 20;
  static constexpr int kThreads = 4;              // number of threads for each entry of `allowed`
  static constexpr std::size_t kWaitingMax = 64;  // maximum number of messages that wait for such a thread
  static constexpr int kPagesMax = 16;  // maximum number of pages of a server's list of tools
};

}  // namespace octavo::mcp
