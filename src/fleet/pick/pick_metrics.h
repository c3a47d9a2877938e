// The picker's metrics, under llm-d's llm_d_epp_* names. Safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "fleet/observe/metric_family.h"
#include "fleet/pick/plugin_times.h"
#include "fleet/view/fleet_view.h"
#include "request/histogram.h"

namespace octavo::fleet {

// One request, as far as it got.
struct PickedRequest {
  std::string model = {};          // as the client named it
  std::string target_model = {};   // as it was sent
  int status = 200;                // the client's; 0 if the gateway disconnected before
  std::uint64_t request_bytes = 0, response_bytes = 0;  // of the bodies
  std::string_view split = {};  // disaggregation, as llm-d names it; "": no endpoint was picked
  bool counted = false;         // PickMetrics::began() was called
  bool streamed = false;        // the answer came as events
  double ttft_slo_seconds = 0, tpot_slo_seconds = 0;  // from the request's headers; 0 if missing
  double seconds = 0;              // from its headers to the answer's end
  double first_byte_seconds = -1;  // -1: there was none
  std::int64_t input_tokens = -1;  // as the answer's usage says; -1: it does not
  std::int64_t output_tokens = -1;
  std::int64_t cached_tokens = -1;
};

// One decision.
struct Attempt {
  std::string target_model = {};
  std::string endpoint = {};       // "ip:port"; "": none was found
  std::int64_t prompt_tokens = 0;  // of which
  std::int64_t known_tokens = 0;   // the endpoint holds these, as far as the picker knows
  double seconds = 0;
};

class PickMetrics {
 public:
  PickMetrics();

  void stream_opened();
  void stream_closed();
  void began(const std::string& model);  // ended() follows
  void decided(const Attempt& attempt);
  void rendered(bool succeeded);  // a prompt, for its tokens
  void told(std::size_t events);  // of a prefix cache
  void ended(const PickedRequest& request);

  StepTimer& plugin_times() { return plugin_times_; }

  // Metrics in Prometheus text format, including the state of the endpoints in `view`. pool: the
  // InferencePool;
  // "": none.
  std::string text(const FleetView& view, const std::string& pool = {}) const;

 private:
  struct Requests {
    Requests();
    CounterFamily ended, errors, running, slo_violations, splits;
    HistogramFamily duration;
    Histogram first_byte, input_tokens, output_tokens, cached_tokens, request_bytes, response_bytes,
        token_seconds;
  };
  struct Decisions {
    Decisions();
    CounterFamily attempts;
    Histogram seconds, hit_ratio, hit_bytes;
  };
  const std::string& known(const std::string& model);
  void count_slo(const PickedRequest& request, const std::string& models);
  void write_requests(std::string& out) const;
  void write_decisions(std::string& out) const;

  mutable std::mutex mutex_;
  std::int64_t streams_ = 0, open_streams_ = 0, cache_events_ = 0;
  std::set<std::string> models_;  // with separate labels
  Requests requests_;
  Decisions decisions_;
  std::map<std::string, std::int64_t> renderings_;
  PluginTimes plugin_times_;
};

}  // namespace octavo::fleet
