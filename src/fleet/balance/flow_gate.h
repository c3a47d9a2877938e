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
#include "request/histogram.h"

namespace octavo::fleet {

struct FlowGateOptions {
  FlowOptions flow = {};
  SaturationDetector detector = UtilizationDetector{};
  std::function<double()> saturation = {};  // in place of the detector; empty: the detector's
  bool evicts = false;  // requests that run may end for those that wait
};

class FlowGate {
 public:
  using Then = std::function<void(FlowOutcome)>;

  // `balancer` outlives the gate.
  FlowGate(Balancer& balancer, FlowGateOptions options);
  ~FlowGate();

  std::uint64_t new_id();  // for FlowItem::id
  // `then` is called once, with what has become of the request: on this thread or the gate's, or on
  // cancel()'s.
  void enqueue(FlowItem item, Then then);
  // Of one that still waits; of others nothing happens.
  void cancel(std::uint64_t id);
  bool evicts() const { return reclamation_.has_value(); }
  // One that was let go runs: `evict` is called, on the gate's thread, when it is to end. Only where the gate
  // evicts.
  void runs(std::uint64_t id, int priority, std::function<void()> evict);
  void stopped(std::uint64_t id);  // of one that does not run nothing happens
  // One that was let go has ended, with so many tokens of prompt and answer.
  void ended(const std::string& fairness_id, std::int64_t input_tokens, std::int64_t output_tokens);
  // All that wait are told; nobody waits from now on.
  void stop();

  // llm_d_epp_flow_control_* in Prometheus' text format.
  std::string metrics() const;

 private:
  using Told = std::vector<std::pair<Then, FlowOutcome>>;

  void run();
  void step(std::unique_lock<std::mutex>& lock);
  std::vector<std::function<void()>> victims(double saturation);
  double saturation() const;
  void settle(std::uint64_t id, std::int64_t arrived_us, FlowOutcome outcome, Told& told);
  static void tell(Told& told);

  Balancer& balancer_;
  const SaturationDetector detector_;
  const std::function<double()> own_saturation_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable arrived_;
  FlowControl flow_;
  std::optional<Reclamation> reclamation_;
  std::unordered_map<std::uint64_t, std::function<void()>> running_;  // how each is told to end
  std::int64_t evictions_ = 0;
  std::unordered_map<std::uint64_t, Then> waiting_;
  std::uint64_t last_id_ = 0;
  bool stopping_ = false;
  std::map<std::string, std::int64_t> outcomes_;
  Histogram seconds_;
  std::thread thread_;
};

}  // namespace octavo::fleet
