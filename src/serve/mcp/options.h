// Settings of the tools on MCP servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo::mcp {

struct Options {
  // MCP servers that requests may use, as HOST or HOST:PORT. Empty: MCP tools are disabled.
  std::vector<std::string> allowed{};
  // time limit for one message, including the wait for a free thread and for the answer
  int timeout_ms = 30'000;
  std::int64_t response_ms = 300'000;  // time limit for all messages of one response together

  static constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;  // maximum bytes of an MCP server's
                                                                        // answer
  // Maximum size of a tool's output. Longer outputs are truncated.
  static constexpr std::size_t kResultBytesMax = std::size_t{64} << 10;
  // maximum size of the tool lists of all servers of a request
  static constexpr std::size_t kListsBytesMax = std::size_t{4} << 20;
  static constexpr int kThreads = 4;  // threads for each entry of `allowed`
  // maximum number of messages that wait for a thread of the server
  static constexpr std::size_t kWaitingMax = 64;
  static constexpr int kPagesMax = 16;
};

}  // namespace octavo::mcp
