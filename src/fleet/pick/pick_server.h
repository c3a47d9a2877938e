// `octavo pick`: an endpoint picker for gateways such as Envoy. It picks the endpoint of each request.
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
  std::vector<Endpoint> endpoints = {};            // used if there is no other source of endpoints
  std::optional<KubePoolOptions> kubernetes = {};  // the server is not ready until the pods are known
  std::vector<EndpointSourceOptions> sources = {};
  // name of a Kubernetes Lease; only the picker that holds it is ready; "": all pickers are ready
  std::string lease = {};
  ProcessorOptions processor = {};
  GrpcOptions grpc = {};
  http::ServerOptions metrics = {};  // server of GET /metrics and GET /health
  int scrape_interval_ms = 50;
  int scrape_timeout_ms = 2000;
};

class PickServer {
 public:
  // Returns an error on the field if the configuration or a file is invalid, or if an address is not
  // available.
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
