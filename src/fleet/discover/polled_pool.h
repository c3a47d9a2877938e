// Endpoints from a source that is read at intervals: a file, or a DNS name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleet/discover/follower.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct PolledOptions {
  std::string source = {};  // name in the log, such as "workers.yaml" or "DNS, name:8000"
  int interval_ms = 1'000;
  std::function<Result<std::vector<Endpoint>>()> read = {};
};

// Reads a file with read_endpoints_file() every second. Errors: the file is invalid at the start.
Result<PolledOptions> poll_file(const std::string& path);

// Resolves the addresses (A and AAAA) of "host:port" every interval_ms, such as a headless service. Errors:
// invalid_argument, the text is invalid.
Result<PolledOptions> poll_dns(const std::string& host_and_port, int interval_ms);

class PolledPool {
 public:
  // Calls `endpoints` on a separate thread after each reading. While readings fail, the known endpoints stay.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  PolledPool(const PolledOptions& options, const Endpoints& endpoints);

 private:
  Follower follower_;
};

}  // namespace octavo::fleet
