// A fleet in virtual time: each replica's scheduler and KV cache and the router's policy are those of
// production; only the device is a formula. Events are handled in the order of their times, equal ones in a
// fixed order, so equal options and traffic give equal results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "fleet/decide/policies.h"
#include "fleet/simulate/trace.h"
#include "fleet/view/replica_reading.h"
#include "schedule/options.h"
#include "timing/step_timing.h"
#include "traffic/figures.h"

namespace octavo::fleet {

// The number of replicas that take requests, beginning at a time.
struct FleetSize {
  std::int64_t time_us = 0;  // of the trace
  int replicas = 0;          // 1 or more
};

// Decides the number of replicas during the simulation, from the metrics of replicas that take requests. An
// added replica takes requests after startup_us.
struct ScalingLoop {
  std::int64_t interval_us = 5'000'000;  // from one reading to the next
  double share = 0.99;                   // fraction of requests within the reported latencies
  std::function<int(std::int64_t now_us, std::span<const ReplicaReading>)> replicas = {};  // 1 or more
};

// Replicas that compute prompts and send their KV to decode replicas.
struct PrefillPool {
  int replicas = 0;                 // 0 if the other replicas do both
  SchedulerOptions scheduler = {};  // of each
  StepTiming timing = {};
  std::string policy = "cache_aware";
  // A prompt stays at the decode replica if that has to compute at most this number of tokens.
  int local_tokens_max = 0;
  // A decode replica fetches one prompt after the other, only the missing blocks.
  double kv_bytes_per_token = 0;
  double link_bytes_per_second = 1;
  std::int64_t link_latency_us = 0;
};

struct SimulationOptions {
  int replicas = 8;  // at the beginning
  // Later sizes, by time. Added replicas have empty caches. The newest are removed first: they get no new
  // requests and finish their running ones.
  std::vector<FleetSize> sizes = {};
  ScalingLoop scaling = {};         // replaces `sizes`; if empty, the number is not scaled
  std::int64_t startup_us = 0;      // from the addition of a replica to its first requests
  SchedulerOptions scheduler = {};  // of each
  StepTiming timing = {};
  PrefillPool prefill = {};  // in addition to the replicas above, whose number is fixed then
  std::string policy = "cache_aware";
  PolicyOptions policy_options = {};
  std::optional<PipelineConfig> pipeline = {};  // instead of the policy of this name
  // Replicas report changes of their caches to the router at the end of each step.
  bool kv_events = false;
  std::int64_t metrics_interval_us = 1'000'000;  // how often the router reads the replicas' gauges
  std::uint64_t seed = 0;                        // random draws of policies
};

// The fleet at one moment.
struct FleetSample {
  std::int64_t time_us = 0;
  int replicas = 0;  // that take requests
  int running = 0;
  int waiting = 0;
  std::int64_t prompt_tokens = 0;  // of requests begun so far
  std::int64_t cached_tokens = 0;  // of those, found in caches
};

struct ReplicaUse {
  bool prefills = false;      // of the pool that computes prompts
  std::int64_t there_us = 0;  // from its start to its removal
  std::int64_t busy_us = 0;   // time in steps
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  int requests = 0;  // completed
};

struct SimulationResult {
  std::int64_t duration_us = 0;  // from the first arrival to the last token
  // In the trace's order. An incomplete answer is a refusal: the prompt is too long, or too many requests
  // wait.
  std::vector<traffic::AnswerTimes> answers = {};
  traffic::GapCounts gaps = {};           // between tokens
  std::vector<FleetSample> samples = {};  // one at each reading of the gauges, and one at the end
  std::vector<ReplicaUse> replicas = {};  // all replicas that ever existed, in the order of their removal
};

// Errors: options that the scheduler refuses, an unknown policy, or a prefill pool without prefix caching.
// progress: finished requests and all requests; called from time to time.
Result<SimulationResult> simulate(
    const SimulationOptions& options, const Trace& trace,
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t, std::size_t) {});

}  // namespace octavo::fleet
