// Format of log lines. app/ sets it once.
#pragma once

#include <cstdint>

namespace octavo {

enum class LogFormat : std::uint8_t {
  text,
  json,  // one object per line: "time", "level", "message"
};

void set_log_format(LogFormat format);

}  // namespace octavo
