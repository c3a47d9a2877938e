// The keys below a prefix of an etcd, kept up to date by range and watch: what the answers of its JSON
// gateway (v3) mean. No socket, no clock.
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

  // Values by full key.
  const std::map<std::string, std::string>& values() const { return values_; }

  // The bodies of the next requests: of POST /v3/kv/range, then of POST /v3/watch.
  std::string range() const;
  std::string watch() const;

  // The answer to the first: it replaces all that was known. Errors: it is none.
  Result<> listed(std::string_view body);
  // A line of the second's answer. Whether anything has changed. Errors: it says nothing that can be
  // understood, or that the watch has ended; list again then.
  Result<bool> line(std::string_view text);

 private:
  const std::string prefix_;
  std::map<std::string, std::string> values_;
  std::int64_t revision_ = 0;  // up to which `values_` tells
};

}  // namespace octavo::fleet
