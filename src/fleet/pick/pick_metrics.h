// The picker's metrics, with llm-d's names llm_d_epp_*. Thread-safe.
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

struct PickedRequest {
  std::string model = {};         // model name in the client's request
  std::string target_model = {};  // as sent to the endpoint
  int status = 200;               // HTTP status for the client; 0: the gateway disconnected before the end
  std::uint64_t request_bytes = 0, response_bytes = 0;
  std::string_view split = {};  // llm-d's name for how the work is divided; "": no endpoint was picked
  bool counted = false;
  bool streamed = false;
  // latency limits from the request's headers; 0: no limit
  double ttft_slo_seconds = 0, tpot_slo_seconds = 0;
  double seconds = 0;              // time from the request's headers to the end of the response
  double first_byte_seconds = -1;  // -1: no byte has arrived
  std::int64_t input_tokens = -1;  // prompt tokens in the response's usage; -1: not reported
  std::int64_t output_tokens = -1;
  std::int64_t cached_tokens = -1;
};

struct Attempt {
  std::string target_model = {};
  std::string endpoint = {};  // "ip:port"; "": no endpoint
  std::int64_t prompt_tokens = 0;
  std::int64_t known_tokens = 0;  // prompt tokens that the endpoint has cached, as far as the picker knows
  double seconds = 0;
};

class PickMetrics {
 public:
  PickMetrics();

  void stream_opened();
  void stream_closed();
  void began(const std::string& model);  // must be followed by ended()
  void decided(const Attempt& attempt);
  void rendered(bool succeeded);  // counts a request to the tokenising server
  void counted_events(std::size_t events);  // counts KV cache events
  void ended(const PickedRequest& request);

  StepTimer& plugin_times() { return plugin_times_; }

  // Returns all metrics as Prometheus text, including the state of the endpoints in `view`. `pool` is the
  // name of the InferencePool; "" omits the label.
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
  std::set<std::string> models_;  // models that have a separate label
  Requests requests_;
  Decisions decisions_;
  std::map<std::string, std::int64_t> renderings_;
  PluginTimes plugin_times_;
};

}  // namespace octavo::fleet
