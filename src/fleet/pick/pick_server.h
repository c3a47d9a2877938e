// `octavo pick`: picks the endpoint for each request of an Envoy gateway.
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
  std::vector<Endpoint> endpoints = {};             // used if no source below is set
  std::optional<KubePoolOptions> kubernetes = {};   // the server is not ready before the pods are known
  std::vector<EndpointSourceOptions> sources = {};  // additional sources
  std::string lease = {};                           // name of a Kubernetes Lease: only its holder is ready;
                                                    // "": all servers are ready
  ProcessorOptions processor = {};
  GrpcOptions grpc = {};
  http::ServerOptions metrics = {};  // for GET /metrics and /health
  int scrape_interval_ms = 50;
  int scrape_timeout_ms = 2000;
};

class PickServer {
 public:
  // Errors: an invalid configuration or file, or it cannot listen at an address; the error names the field.
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
