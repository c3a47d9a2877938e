// A copy of all keys with a prefix in etcd, kept current by range and watch requests. Parses the answers of
// etcd's JSON gateway (v3); has no socket and no clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::fleet {

class EtcdMirror {
 public:
  explicit EtcdMirror(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns the values by full key.
  const std::map<std::string, std::string>& values() const { return values_; }

  // Return the bodies of the next requests: POST /v3/kv/range, then POST /v3/watch.
  std::string range() const;
  std::string watch() const;

  // Replaces all values by the answer to range(). Errors: the answer is invalid.
  Result<> listed(std::string_view body);
  // Applies one line of the watch. Returns whether a value has changed. Errors: the line is invalid, or the
  // watch has ended; then request range() again.
  Result<bool> line(std::string_view text);

 private:
  const std::string prefix_;
  std::map<std::string, std::string> values_;
  std::int64_t revision_ = 0;  // revision of values_
};

}  // namespace octavo::fleet
