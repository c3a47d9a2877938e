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
  std::vector<Endpoint> endpoints = {};             // used if no source below is set:
  std::optional<KubePoolOptions> kubernetes = {};   // not ready before its pods are known
  std::vector<EndpointSourceOptions> sources = {};  // further sources
  std::string lease = {};                           // a Lease there: only its holder is ready; "" if all are
  ProcessorOptions processor = {};
  GrpcOptions grpc = {};
  http::ServerOptions metrics = {};  // GET /metrics, /health
  int scrape_interval_ms = 50;
  int scrape_timeout_ms = 2000;
};

class PickServer {
 public:
  // Errors: a configuration, file or address that cannot be used; the field says which.
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
