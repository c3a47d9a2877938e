// A copy of the keys below a prefix in etcd, kept up to date by range and watch requests. Interprets the
// answers of the JSON gateway (v3); has no socket and no clock.
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

  // Values, by full key.
  const std::map<std::string, std::string>& values() const { return values_; }

  // Bodies of the next requests: POST /v3/kv/range, then POST /v3/watch.
  std::string range() const;
  std::string watch() const;

  // Applies the answer to range(), which replaces all values. Errors: the answer is invalid.
  Result<> listed(std::string_view body);
  // Applies one line of the watch's answer, and returns whether a value has changed. Errors: the line is
  // invalid, or the watch has ended; then request range() again.
  Result<bool> line(std::string_view text);

 private:
  const std::string prefix_;
  std::map<std::string, std::string> values_;
  std::int64_t revision_ = 0;  // revision of values_
};

}  // namespace octavo::fleet
