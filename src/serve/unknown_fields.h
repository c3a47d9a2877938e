// Fields of requests that are unknown or without effect: they are ignored and logged.
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>

namespace octavo {

// Thread-safe.
class UnknownFields {
 public:
  // Logs each new name once. The number of names is limited, so that clients cannot fill the log.
  void warn(std::span<const std::string> names);

 private:
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace octavo
