// Simulates a fleet in virtual time. Schedulers, KV caches and the router's policy are the code that runs
// in production. Only the step times of the device come from a formula. Events are processed in the order
// of their times, and in a fixed order at equal times, so equal options and traffic give equal results.
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

// The number of replicas that accept requests from time_us on.
struct FleetSize {
  std::int64_t time_us = 0;  // time since the start of the trace
  int replicas = 0;          // at least 1
};

// Decides the number of replicas during the simulation, from the metrics of the replicas that accept
// requests. A new replica accepts requests after startup_us.
struct ScalingLoop {
  std::int64_t interval_us = 5'000'000;
  double share = 0.99;  // fraction of requests within the reported latencies
  std::function<int(std::int64_t now_us, std::span<const ReplicaReading>)> replicas = {};
};

// Replicas that compute prompts. Decode replicas fetch the KV blocks from them.
struct PrefillPool {
  int replicas = 0;                 // 0: decode replicas also compute prompts
  SchedulerOptions scheduler = {};
  StepTiming timing = {};
  std::string policy = "cache_aware";
  // a decode replica computes prompts with at most this number of uncached tokens
  int local_tokens_max = 0;
  // A decode replica fetches the KV blocks of one prompt at a time, and only the blocks that it lacks.
  double kv_bytes_per_token = 0;
  double link_bytes_per_second = 1;
  std::int64_t link_latency_us = 0;
};

struct SimulationOptions {
  int replicas = 8;
  // [replica] factor of the step times. Missing entries and replicas of the prefill pool have the factor 1.
  std::vector<double> slowdowns = {};
  // Changes of the number of replicas, sorted by time. A new replica has an empty cache. The newest replica
  // is removed first, and finishes its running requests.
  std::vector<FleetSize> sizes = {};
  ScalingLoop scaling = {};  // used instead of `sizes` if set
  std::int64_t startup_us = 0;
  SchedulerOptions scheduler{{.max_num_seqs = 256}};
  StepTiming timing = {};
  PrefillPool prefill = {};  // additional replicas for prefill, of constant number
  std::string policy = "cache_aware";
  PolicyOptions policy_options = {};
  std::optional<PipelineConfig> pipeline = {};  // used instead of `policy`
  // replicas report KV cache events at the end of each step
  bool kv_events = false;
  // interval at which the router reads the replicas' metrics
  std::int64_t metrics_interval_us = 1'000'000;
  std::uint64_t seed = 0;
};

struct FleetSample {
  std::int64_t time_us = 0;
  int replicas = 0;
  int running = 0;
  int waiting = 0;
  std::int64_t prompt_tokens = 0;  // sum over all requests that have begun
  std::int64_t cached_tokens = 0;
};

struct ReplicaUse {
  bool prefills = false;      // the replica belongs to the prefill pool
  std::int64_t lifetime_us = 0;  // time from the start to the removal
  std::int64_t busy_us = 0;
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  int requests = 0;
};

struct SimulationResult {
  std::int64_t duration_us = 0;  // time from the first arrival to the last token
  // [request of the trace] The answer is incomplete if the request was refused: its prompt was too long, or
  // too many requests were waiting.
  std::vector<traffic::AnswerTimes> answers = {};
  traffic::GapCounts gaps = {};
  std::vector<FleetSample> samples = {};  // one sample for each reading of metrics, and one at the end
  std::vector<ReplicaUse> replicas = {};  // in the order of removal
};

// `progress` is called regularly with the numbers of finished and of all requests. Returns an error if the
// scheduler refuses the options, the policy is unknown, or a prefill pool has no prefix caching.
Result<SimulationResult> simulate(
    const SimulationOptions& options, const Trace& trace,
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t, std::size_t) {});

}  // namespace octavo::fleet
