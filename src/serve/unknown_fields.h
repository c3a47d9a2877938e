// Logs request fields that are unknown or have no effect. The server otherwise ignores these fields.
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>

namespace octavo {

// Any thread may call the functions.
class UnknownFields {
 public:
  // Logs each new name once. The number of names is limited, so that clients cannot fill the log.
  void warn(std::span<const std::string> names);

 private:
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace octavo
