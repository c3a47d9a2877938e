// The picker's metrics, under llm-d's llm_d_epp_* names. Safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "fleet/view/fleet_view.h"
#include "request/histogram.h"

namespace octavo::fleet {

// One request, as far as it got.
struct PickedRequest {
  std::string model = {};          // as the client named it
  std::string target_model = {};   // as it was sent
  int status = 200;                // what the client got; 0: the gateway went away before
  double seconds = 0;              // from its headers to the answer's end
  double first_byte_seconds = -1;  // -1: there was none
  std::int64_t input_tokens = -1;  // as the answer's usage says; -1: it does not
  std::int64_t output_tokens = -1;
};

class PickMetrics {
 public:
  PickMetrics();

  void stream_opened();
  void stream_closed();
  void decided(double seconds);
  void rendered(bool succeeded);  // a prompt, for its tokens
  void told(std::size_t events);  // of a prefix cache
  void ended(const PickedRequest& request);

  // Metrics in Prometheus text format, including the state of the endpoints in `view`.
  std::string text(const FleetView& view) const;

 private:
  mutable std::mutex mutex_;
  std::int64_t streams_ = 0, open_streams_ = 0, cache_events_ = 0;
  struct Models {
    std::string asked, target;
    auto operator<=>(const Models&) const = default;
  };
  using Counts = std::map<Models, std::int64_t>;
  static void write(std::string& out, std::string_view name, std::string_view help, const Counts& counts);

  Counts requests_, errors_;
  std::map<std::string, std::int64_t> renderings_;
  Histogram duration_, first_byte_, decision_, input_tokens_, output_tokens_;
};

}  // namespace octavo::fleet
