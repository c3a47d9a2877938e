// Settings of MCP tools.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace octavo::mcp {

struct Options {
  // Servers that requests may use: HOST, or HOST:PORT. Empty: MCP tools are off.
  std::vector<std::string> allowed{};
  int timeout_ms = 30'000;  // for each message to a server and its answer

  static constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;  // maximum size of a server's answer
  // maximum size of a call's output; the rest is cut off
  static constexpr std::size_t kResultBytesMax = std::size_t{64} << 10;
  static constexpr int kPagesMax = 16;  // maximum number of pages of a server's list of tools
};

}  // namespace octavo::mcp
