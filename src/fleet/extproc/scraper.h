// Reads every endpoint's metrics page on a fixed tick.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "fleet/extproc/endpoint_picker.h"
#include "http/async_client.h"

namespace octavo::fleet {

struct ScrapeOptions {
  std::string path = "/metrics";
  int interval_ms = 50;
  int timeout_ms = 2000;  // an endpoint that has not answered by then has not answered
};

// Must outlive the client whose loop it runs on.
class Scraper {
 public:
  Scraper(EndpointPicker& picker, http::ClientLoop& loop, ScrapeOptions options)
      : picker_(picker), loop_(loop), options_(std::move(options)) {}
  void start();

 private:
  void tick();
  void ask(const Member& member);
  void answered(EndpointId id, const http::Response& page);
  void report(EndpointPicker::Scrape scrape);

  EndpointPicker& picker_;
  http::ClientLoop& loop_;
  const ScrapeOptions options_;
  std::unordered_set<EndpointId> asked_;         // who has not answered yet is not asked again
  std::vector<EndpointPicker::Scrape> scrapes_;  // handed to the picker together
};

}  // namespace octavo::fleet
