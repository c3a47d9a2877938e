// A copy of all etcd keys with a common prefix, kept current by range and watch requests. The class parses
// the responses of etcd's JSON gateway (v3). EtcdPool owns the connection and the clock.
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

  // [key in etcd]
  const std::map<std::string, std::string>& values() const { return values_; }

  // range() returns the request body of POST /v3/kv/range. watch() returns that of POST /v3/watch, which the
  // caller sends after the range request.
  std::string range() const;
  std::string watch() const;

  // Replaces all values by the response to range(). Returns an error if the response is invalid.
  Result<> listed(std::string_view body);
  // Applies one line of the watch. Returns whether a value has changed. Returns an error if the line is
  // invalid or the watch has ended. After an error, the owner must send range() again.
  Result<bool> line(std::string_view text);

 private:
  const std::string prefix_;
  std::map<std::string, std::string> values_;
  std::int64_t revision_ = 0;
};

}  // namespace octavo::fleet
