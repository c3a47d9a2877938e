// The picker's metrics, with llm-d's names llm_d_epp_*. Safe from any thread.
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

// Data of one request, as far as known.
struct PickedRequest {
  std::string model = {};         // name from the client
  std::string target_model = {};  // name that was sent to the endpoint
  int status = 200;               // status for the client; 0: the gateway disconnected earlier
  std::uint64_t request_bytes = 0, response_bytes = 0;  // bytes of the bodies
  std::string_view split = {};  // division of the work in llm-d's terms; "": no endpoint was picked
  bool counted = false;         // PickMetrics::began() was called
  bool streamed = false;        // the answer was sent as events
  double ttft_slo_seconds = 0, tpot_slo_seconds = 0;  // from the request's headers; 0 if missing
  double seconds = 0;                                 // time from its headers to the end of the answer
  double first_byte_seconds = -1;                     // -1: no byte arrived
  std::int64_t input_tokens = -1;                     // from the answer's usage; -1: not reported
  std::int64_t output_tokens = -1;
  std::int64_t cached_tokens = -1;
};

struct Attempt {
  std::string target_model = {};
  std::string endpoint = {};  // "ip:port"; "": no endpoint was found
  std::int64_t prompt_tokens = 0;
  std::int64_t known_tokens = 0;  // number of prompt tokens that the endpoint has cached, as far as the
                                  // picker knows
  double seconds = 0;
};

class PickMetrics {
 public:
  PickMetrics();

  void stream_opened();
  void stream_closed();
  void began(const std::string& model);  // call ended() later
  void decided(const Attempt& attempt);
  void rendered(bool succeeded);  // counts a request for a prompt's tokens
  void told(std::size_t events);  // counts events of prefix caches
  void ended(const PickedRequest& request);

  StepTimer& plugin_times() { return plugin_times_; }

  // All metrics in Prometheus' text format, including the state of the endpoints in `view`. pool: name of the
  // InferencePool; "": none.
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
  std::set<std::string> models_;  // models with separate labels
  Requests requests_;
  Decisions decisions_;
  std::map<std::string, std::int64_t> renderings_;
  PluginTimes plugin_times_;
};

}  // namespace octavo::fleet
