// Holds requests until the endpoints have room for them: flow control, with a clock and a thread.
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
  std::function<double()> saturation = {};  // replaces the detector unless empty
  bool evicts = false;                      // running requests may be ended for waiting ones
  std::string_view program = "pick";        // in the names of metrics that llm-d does not have
};

// For /metrics.
struct FlowGateCounts {
  FlowGateCounts();
  std::int64_t evictions = 0;
  std::map<std::string, std::int64_t> outcomes;
  HistogramFamily waits;                // seconds, by priority and outcome
  Histogram enqueues, dispatch_cycles;  // seconds of work
};

class FlowGate {
 public:
  using Then = std::function<void(FlowOutcome)>;

  // `balancer` outlives the gate.
  FlowGate(Balancer& balancer, FlowGateOptions options);
  ~FlowGate();

  std::uint64_t new_id();  // for FlowItem::id
  // Calls `then` once with the outcome: on this thread, the gate's, or cancel()'s.
  void enqueue(FlowItem item, Then then);
  // Has no effect on a request that no longer waits.
  void cancel(std::uint64_t id);
  bool evicts() const { return reclamation_.has_value(); }
  // A dispatched request runs: the gate's thread may call `evict`. Only where the gate evicts.
  void runs(std::uint64_t id, int priority, std::function<void()> evict);
  void stopped(std::uint64_t id);
  // A dispatched request has ended.
  void ended(const std::string& fairness_id, std::int64_t input_tokens, std::int64_t output_tokens);
  // Ends all waiting requests; later ones end at once.
  void stop();

  // llm_d_epp_flow_control_* in Prometheus' text format. pool: the InferencePool; "": none.
  std::string metrics(const std::string& pool = {}) const;

 private:
  using Told = std::vector<std::pair<Then, FlowOutcome>>;

  void run();
  void step(std::unique_lock<std::mutex>& lock);
  std::vector<std::function<void()>> victims(double saturation);
  double saturation() const;
  void settle(const FlowItem& item, FlowOutcome outcome, Told& told);
  static void tell(Told& told);

  Balancer& balancer_;
  const SaturationDetector detector_;
  const std::function<double()> own_saturation_;
  const std::string_view program_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable arrived_;
  FlowControl flow_;
  std::optional<Reclamation> reclamation_;
  std::unordered_map<std::uint64_t, std::function<void()>> running_;  // ends each of them
  std::unordered_map<std::uint64_t, Then> waiting_;
  std::uint64_t last_id_ = 0;
  bool stopping_ = false;
  FlowGateCounts counts_;
  std::thread thread_;
};

}  // namespace octavo::fleet
