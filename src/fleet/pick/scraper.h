// Reads the pages of all endpoints (metrics, models with LoRA adapters, GPU utilization), and reports them
// to the balancer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/pick/page_poller.h"

namespace octavo::fleet {

// Must outlive the AsyncClient of its loop.
class Scraper {
 public:
  struct Pages {
    std::optional<PollOptions> metrics = {};  // nullopt: not read
    EngineKinds engines;
    std::optional<PollOptions> models = {};
    std::optional<PollOptions> gpus = {};
  };

  Scraper(Balancer& balancer, http::ClientLoop& loop, Pages pages);
  void start();

 private:
  void metrics_read(const Member& polled, const Result<http::Response>& page);
  void models_read(const Member& polled, const Result<http::Response>& page);
  void gpus_read(const Member& polled, const Result<http::Response>& page);
  void note_failure(const Member& polled, const Result<http::Response>& page);
  void hand_over(Scrape scrape);

  Balancer& balancer_;
  http::ClientLoop& loop_;
  const std::string& metrics_query(const Endpoint& endpoint);

  const EngineKinds engines_;
  std::optional<PagePoller> metrics_, models_, gpus_;
  std::map<const EngineMetrics*, std::string> queries_;  // query for the metrics page, by engine type
  std::map<std::string, std::string>
      failures_;                 // endpoint name -> last logged reason why no metrics were read
  std::vector<Scrape> scrapes_;  // readings that are applied together
};

}  // namespace octavo::fleet
