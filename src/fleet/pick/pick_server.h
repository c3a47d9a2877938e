// `octavo pick`: picks the endpoint of each request for an Envoy gateway.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/discover/endpoint_source.h"
#include "fleet/pick/endpoint_picker_config.h"
#include "fleet/pick/ext_proc_server.h"
#include "fleet/view/endpoint.h"
#include "http/server.h"

namespace octavo::fleet {

struct PickOptions {
  EndpointPickerConfig config = {};
  std::vector<Endpoint> endpoints = {};             // used if there is no other source
  std::optional<KubePoolOptions> kubernetes = {};   // until the pods are known, the server is not ready
  std::vector<EndpointSourceOptions> sources = {};  // further sources
  // name of a Kubernetes Lease, whose holder is the only ready picker; "": all pickers are ready
  std::string lease = {};
  ProcessorOptions processor = {};
  GrpcOptions grpc = {};
  http::ServerOptions metrics = {};  // server of GET /metrics and /health
  int scrape_interval_ms = 50;
  int scrape_timeout_ms = 2000;
};

class PickServer {
 public:
  // Errors name the field: an invalid configuration or file, or an address that is not available.
  static Result<std::unique_ptr<PickServer>> start(PickOptions options);
  ~PickServer();

  std::uint16_t grpc_port() const;
  std::uint16_t health_port() const;
  std::uint16_t metrics_port() const;
  void stop(int grace_ms);

 private:
  struct State;
  explicit PickServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace octavo::fleet
