// Fields of requests that nobody knows: they have no effect, and the log says so.
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>

namespace octavo {

// Thread-safe.
class UnknownFields {
 public:
  // Warns of those that no request had before; of the first ones only, so that clients do not fill the log.
  void warn(std::span<const std::string> names);

 private:
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace octavo
