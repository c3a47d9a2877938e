// Format of log lines, which app/ sets once.
#pragma once

#include <cstdint>

namespace octavo {

enum class LogFormat : std::uint8_t {
  text,
  json,  // one object for each line: "time", "level", "message"
};

void set_log_format(LogFormat format);

}  // namespace octavo
