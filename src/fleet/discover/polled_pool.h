// Endpoints from a file or a DNS name, which is read at regular intervals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleet/discover/follower.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct PolledOptions {
  std::string source = {};  // name in log messages, such as "workers.yaml" or "DNS, name:8000"
  int interval_ms = 1'000;
  std::function<Result<std::vector<Endpoint>>()> read = {};
};

// Reads a file with read_endpoints_file() every second. Returns an error if the file is invalid at the
// first reading.
Result<PolledOptions> poll_file(const std::string& path);

// Resolves the addresses (A and AAAA records) of "host:port", such as a headless service, every
// interval_ms. Returns invalid_argument if the text is not "host:port".
Result<PolledOptions> poll_dns(const std::string& host_and_port, int interval_ms);

class PolledPool {
 public:
  // Calls `endpoints` on a separate thread after each reading. While readings fail, the known endpoints
  // stay.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  PolledPool(const PolledOptions& options, const Endpoints& endpoints);

 private:
  Follower follower_;
};

}  // namespace octavo::fleet
