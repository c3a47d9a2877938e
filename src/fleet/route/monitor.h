// Reads health, metrics and models of all endpoints at intervals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/route/router_options.h"
#include "http/async_client.h"

namespace octavo::fleet {

// The object must outlive the AsyncClient of its loop.
class Monitor {
 public:
  Monitor(Balancer& balancer, const RouterOptions& options, http::ClientLoop& loop)
      : balancer_(balancer), options_(options), loop_(loop) {}
  void start();

  // Returns the models of all endpoints as an answer to GET /v1/models. From several cards with the same id,
  // returns the first one.
  std::string models_json() const;

  // Requests the models of all available endpoints, unless this was done less than a second ago. Calls `done`
  // once, on any thread, when all have answered or after a second. Thread-safe.
  void refresh_models(std::function<void()> done);

 private:
  struct Known {  // times are those of the last requests
    std::int64_t probed_us = 0;
    std::int64_t metrics_us = 0;
    std::int64_t models_us = 0;
    bool has_no_page = false;  // GET /metrics was answered with 404
    std::string failure = {};  // reason of the last failed probe; "": it succeeded
  };

  void tick();
  void visit(const Member& member, std::int64_t now_us);
  void probe(const Member& member);
  void note_failure(const Member& member, Known& known, std::string failure);
  void read_metrics(const Member& asked, const http::Response& answer);
  void ask_models(const Member& member, std::function<void()> then);
  void models_refreshed();
  void ask(const Member& member, std::string_view target, std::function<void(Result<http::Response>)> then);
  void learn_models(const Member& asked, const std::string& page);

  Balancer& balancer_;
  const RouterOptions& options_;
  http::ClientLoop& loop_;
  std::unordered_map<std::string, Known> known_;   // by endpoint name
  std::vector<std::function<void()>> refreshing_;  // callbacks of refresh_models()
  int models_open_ = 0;                            // running requests of the refresh
  std::int64_t refreshed_us_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::map<std::string, std::string>> cards_;  // by endpoint, then by model
};

}  // namespace octavo::fleet
