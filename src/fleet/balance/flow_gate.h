// FlowGate holds requests until endpoints have capacity. It adds a clock and a thread to FlowControl. The
// router's queue and the picker use it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fleet/balance/balancer.h"
#include "fleet/flow/flow_control.h"
#include "fleet/observe/metric_family.h"
#include "request/histogram.h"

namespace octavo::fleet {

struct FlowGateOptions {
  FlowOptions flow = {};
  SaturationDetector detector = UtilizationDetector{};
  std::function<double()> saturation = {};  // used instead of `detector` if set
  bool evicts = false;  // end running requests so that waiting requests of higher priority can run
  std::string_view program = "pick";  // used in the names of metrics that llm-d does not have
};

struct FlowGateCounts {
  FlowGateCounts();
  std::int64_t evictions = 0;
  std::map<std::string, std::int64_t> outcomes;
  HistogramFamily waits;                // waiting times in seconds, by priority and outcome
  Histogram enqueues, dispatch_cycles;  // durations in seconds of enqueue() and of a dispatch cycle
};

class FlowGate {
 public:
  using Then = std::function<void(FlowOutcome)>;

  FlowGate(Balancer& balancer, FlowGateOptions options);
  ~FlowGate();

  std::uint64_t new_id();  // for FlowItem::id
  // Adds a request. Calls `then` once with the outcome: on the calling thread, on the gate's thread, or
  // during cancel().
  void enqueue(FlowItem item, Then then);
  void cancel(std::uint64_t id);
  bool evicts() const { return reclamation_.has_value(); }
  // Reports that a dispatched request is running. The gate's thread may call `evict` until stopped().
  // Requires evicts().
  void runs(std::uint64_t id, int priority, std::function<void()> evict);
  void stopped(std::uint64_t id);
  void ended(const std::string& fairness_id, std::int64_t input_tokens, std::int64_t output_tokens);
  // Ends all waiting requests. Later requests end at once.
  void stop();

  // Returns the metrics llm_d_epp_flow_control_* as Prometheus text. `pool` is the name of the
  // InferencePool; "" omits the label.
  std::string metrics(const std::string& pool = {}) const;

 private:
  using Outcomes = std::vector<std::pair<Then, FlowOutcome>>;

  void run();
  void step(std::unique_lock<std::mutex>& lock);
  std::vector<std::function<void()>> victims(double saturation);
  double saturation() const;
  // Returns the number of endpoints that count as full only because their metrics are missing or old.
  int blind_endpoints() const;
  void warn_if_blind();
  void settle(const FlowItem& item, FlowOutcome outcome, Outcomes& outcomes);
  static void notify(Outcomes& outcomes);

  Balancer& balancer_;
  const SaturationDetector detector_;
  const std::function<double()> own_saturation_;
  const std::string_view program_;
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable arrived_;
  FlowControl flow_;
  std::optional<Reclamation> reclamation_;
  std::unordered_map<std::uint64_t, std::function<void()>> running_;
  std::unordered_map<std::uint64_t, Then> waiting_;
  std::uint64_t last_id_ = 0;
  bool stopping_ = false;
  FlowGateCounts counts_;
  std::int64_t warned_us_ = 0;  // time of the last warning about old metrics; 0: none
  std::thread thread_;
};

}  // namespace octavo::fleet
