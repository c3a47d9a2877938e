// Reads what every endpoint says of itself: its metrics, the LoRA adapters that it serves, how busy its GPUs
// are.
#pragma once

#include <optional>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/pick/page_poller.h"

namespace octavo::fleet {

// Must outlive the client whose loop it runs on.
class Scraper {
 public:
  struct Pages {
    std::optional<PollOptions> metrics = {};  // nothing: nobody reads them
    EngineKinds engines;                     // how to read them
    std::optional<PollOptions> models = {};  // the list of models; nothing: nobody asks for it
    std::optional<PollOptions> gpus = {};    // dcgm-exporter's, as well
  };

  Scraper(Balancer& balancer, http::ClientLoop& loop, Pages pages);
  void start();

 private:
  void metrics_read(const Member& asked, const Result<http::Response>& page);
  void models_read(const Member& asked, const Result<http::Response>& page);
  void gpus_read(const Member& asked, const Result<http::Response>& page);
  void hand_over(Scrape scrape);

  Balancer& balancer_;
  http::ClientLoop& loop_;
  const EngineKinds engines_;
  std::optional<PagePoller> metrics_, models_, gpus_;
  std::vector<Scrape> scrapes_;  // handed over together
};

}  // namespace octavo::fleet
