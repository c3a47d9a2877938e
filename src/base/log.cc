#include "base/log.h"
#include "base/log_format.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <string>

namespace octavo {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";
std::atomic<bool> json_lines = false;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made =
        std::make_shared<spdlog::logger>("octavo", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern(kTextPattern);
    return made;
  }();
  return *instance;
}

// Text from clients must not start a new line or control a terminal.
std::string without_controls(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += fmt::format("\\x{:02x}", byte);
  }
  return out;
}

// The text must have no control characters.
std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }
bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }
void log_line(LogLevel level, std::string_view text) {
  std::string line = without_controls(text);
  if (json_lines) line = json_quoted(line);
  logger().log(to_spdlog(level), line);
}
void set_log_format(LogFormat format) {
  json_lines = format == LogFormat::json;
  logger().set_pattern(json_lines ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%v})"
                                  : kTextPattern);
}

}  // namespace octavo
