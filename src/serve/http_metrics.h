// Metrics of HTTP requests, with the names, labels and buckets of prometheus-fastapi-instrumentator, which
// vLLM's server uses.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "http/exchange.h"
#include "request/histogram.h"

namespace octavo {

// Any thread may call the functions.
class HttpMetrics {
 public:
  // handler: path of the route, with {names} for its variable segments, or "none" if no route matches.
  void count(std::string_view handler, const http::Answered& answered);

  std::string text() const;

 private:
  struct Sizes {
    std::int64_t count = 0;
    double bytes = 0;
  };
  struct Handler {
    Sizes requests, responses;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Handler, std::less<>> handlers_;
  std::map<std::pair<std::string, std::string>, Histogram> seconds_;  // duration by handler and method
  std::map<std::string, std::int64_t> requests_;                      // number of requests by label text
  Histogram all_seconds_{
      {.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}};
};

}  // namespace octavo
