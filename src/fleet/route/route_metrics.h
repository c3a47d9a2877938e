// The router's metrics. Their names are those of SGLang's router (smg_*) where it has the metric.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "accounts/accounts.h"
#include "request/histogram.h"

namespace octavo::fleet {

class RouteMetrics {
 public:
  explicit RouteMetrics(AccountOptions account_options = {});

  void selected(const std::string& worker);
  void worker_failed(const std::string& worker);
  void cache_changed(const std::string& worker, std::size_t events);
  // counts blocks that were copied from a peer router's index
  void restored(const std::string& worker, std::size_t blocks);
  void retried();
  void retries_exhausted();
  void rate_limited();
  void prefilled(std::string_view outcome);  // outcome: "handed_over", "local", "busy", "failed" or "refused"
  // counts a session whose turn went to another worker; `moved`: its blocks were copied there
  void session_moved(bool moved);
  void forget(const std::string& worker);
  void migrated(bool goes_on);  // counts a broken stream; `goes_on`: another worker continues the stream
  void hedged(bool won);        // counts a request with a hedge; `won`: the hedge's response began first
  // counts a message from a peer router; understood: the message was valid
  void peer_reported(bool understood);
  void peers(int now);
  // Compares predicted with reported cached tokens, for a prompt whose tokens the router knows.
  void prompt_reported(std::int64_t predicted_cached, std::int64_t reported_cached, bool same_length);
  void answered(int status, double seconds);
  void first_byte(double seconds);
  void decided(double seconds);

  // Returns all metrics except the workers' gauges, as Prometheus text.
  std::string text() const;

  Accounts accounts;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> selections_;
  std::map<std::string, std::int64_t> failures_;
  std::map<std::string, std::int64_t> cache_events_;
  std::map<std::string, std::int64_t> restored_;
  std::map<int, std::int64_t> responses_;
  std::map<std::string, std::int64_t> prefills_;
  std::map<std::string, std::int64_t> migrations_;
  std::map<std::string, std::int64_t> session_moves_;
  std::map<std::string, std::int64_t> hedges_;
  std::map<std::string, std::int64_t> peer_messages_;
  int peers_ = 0;
  std::int64_t predicted_cached_ = 0, reported_cached_ = 0, mismatches_ = 0;
  std::int64_t retries_ = 0, retries_exhausted_ = 0, rate_limited_ = 0;
  struct {
    Histogram whole, first_byte, decision;
  } seconds_;
};

}  // namespace octavo::fleet
