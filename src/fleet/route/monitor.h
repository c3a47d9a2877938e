// Reads health, metrics and models of all endpoints at regular intervals, and reports them to the balancer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/route/left_workers.h"
#include "fleet/route/router_options.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Must outlive the AsyncClient that owns `loop`.
class Monitor {
 public:
  // forget: called with the name of a worker that left the fleet a while ago (LeftWorkers), on the loop's
  // thread
  Monitor(Balancer& balancer, const RouterOptions& options, http::ClientLoop& loop,
          std::function<void(const std::string& worker)> forget)
      : balancer_(balancer), options_(options), loop_(loop), forget_(std::move(forget)) {}
  void start();

  // Returns the models of all endpoints as a response to GET /v1/models. If several endpoints have a model
  // of the same id, the first endpoint's model card is returned.
  std::string models_json() const;

  // Requests the models of all available endpoints after this call, at most once a second. Calls `done` once,
  // on any thread, when all endpoints have responded, or a second after the requests. Thread-safe.
  void refresh_models(std::function<void()> done);

 private:
  struct Known {  // times of the last requests
    std::int64_t probed_us = 0;
    std::int64_t metrics_us = 0;
    std::int64_t models_us = 0;
    bool has_no_page = false;  // GET /metrics was answered with 404
    // pages that the worker refuses with 401 or 403
    std::set<std::string_view> refused_pages = {};
    std::string failure = {};  // reason why the last probe failed; "": it succeeded
  };

  void tick();
  void visit(const Member& member, std::int64_t now_us);
  void probe(const Member& member);
  void note_failure(const Member& member, Known& known, std::string failure, std::string_view details);
  void note_key(const Member& member, std::string_view page, const Result<http::Response>& answer);
  void read_metrics(const Member& polled, const http::Response& answer);
  void request_models(const Member& member, std::function<void()> then);
  void begin_refresh();
  void end_refresh();
  void fetch(const Member& member, std::string_view target, std::function<void(Result<http::Response>)> then);
  void learn_models(const Member& polled, const std::string& page);

  Balancer& balancer_;
  const RouterOptions& options_;
  http::ClientLoop& loop_;
  const std::function<void(const std::string& worker)> forget_;
  LeftWorkers left_;
  std::unordered_map<std::string, Known> known_;   // by endpoint name
  // callbacks of refresh_models(), for the next refresh and for the running one
  std::vector<std::function<void()>> next_refresh_, refreshing_;
  std::int64_t refreshes_ = 0;  // number of refreshes that have begun
  bool refresh_runs_ = false;
  bool refresh_is_due_ = false;  // begin_refresh() will be called
  std::int64_t refreshed_us_ = 0;
  mutable std::mutex mutex_;
  // endpoint name -> model -> model card
  std::unordered_map<std::string, std::map<std::string, std::string>> cards_;
};

}  // namespace octavo::fleet
