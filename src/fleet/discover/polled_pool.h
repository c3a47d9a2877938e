// Endpoints from a source without change events: a file, or a DNS name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fleet/discover/follower.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct PolledOptions {
  std::string source = {};  // name for the log: "workers.yaml", "DNS, name:8000"
  int interval_ms = 1'000;
  std::function<Result<std::vector<Endpoint>>()> read = {};
};

// Reads a file for read_endpoints_file() every second. Errors: the file is invalid now.
Result<PolledOptions> poll_file(const std::string& path);

// Resolves the addresses (A and AAAA) of "host:port", such as a headless service, every interval_ms. Errors:
// invalid_argument, an invalid text.
Result<PolledOptions> poll_dns(const std::string& host_and_port, int interval_ms);

class PolledPool {
 public:
  // Called on a separate thread after each reading. While readings fail, the known endpoints stay.
  using Endpoints = std::function<void(std::vector<Endpoint>)>;
  PolledPool(const PolledOptions& options, const Endpoints& endpoints);

 private:
  Follower follower_;
};

}  // namespace octavo::fleet
