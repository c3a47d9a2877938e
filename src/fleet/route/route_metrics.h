// The router's metrics, under SGLang's smg_* names where they exist. Safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "request/histogram.h"

namespace octavo::fleet {

class RouteMetrics {
 public:
  RouteMetrics();

  void selected(const std::string& worker);
  void worker_failed(const std::string& worker);
  void cache_changed(const std::string& worker, std::size_t events);
  void restored(const std::string& worker, std::size_t blocks);  // copied from another router
  void retried();
  void retries_exhausted();
  void rate_limited();
  void prefilled(std::string_view outcome);  // "handed_over", "local", "busy", "failed" or "refused"
  void forget(const std::string& worker);    // the worker has left
  void migrated(bool goes_on);               // a stream of events has broken
  void hedged(bool won);                     // a second replica got the request
  void peer_told(bool understood);           // sent the load in flight to another router
  void peers(int now);                       // number of other routers that report their load
  // A prompt whose tokens are known, at a replica that reports them.
  void prompt_reported(std::int64_t predicted_cached, std::int64_t reported_cached, bool same_length);
  void answered(int status, double seconds);
  void first_byte(double seconds);
  void decided(double seconds);

  // Prometheus' text format, without the gauges of workers.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> selections_;
  std::map<std::string, std::int64_t> failures_;
  std::map<std::string, std::int64_t> cache_events_;
  std::map<std::string, std::int64_t> restored_;
  std::map<int, std::int64_t> responses_;
  std::map<std::string, std::int64_t> prefills_;
  std::map<std::string, std::int64_t> migrations_;
  std::map<std::string, std::int64_t> hedges_;
  std::map<std::string, std::int64_t> peer_messages_;
  int peers_ = 0;
  std::int64_t predicted_cached_ = 0, reported_cached_ = 0, mismatches_ = 0;
  std::int64_t retries_ = 0, retries_exhausted_ = 0, rate_limited_ = 0;
  Histogram duration_, first_byte_, decision_;
};

}  // namespace octavo::fleet
