// Unknown fields of requests: ignored, with a line in the log.
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>

namespace octavo {

// Thread-safe.
class UnknownFields {
 public:
  // Warns once for each new name, up to a limit, so that clients cannot fill the log.
  void warn(std::span<const std::string> names);

 private:
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace octavo
