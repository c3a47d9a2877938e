// Simulates a fleet in virtual time. Schedulers, KV caches and the router's policy are the production code;
// only the device's time is a formula. Events are processed in the order of their times; events at the same
// time have a fixed order. So equal options and traffic give equal results.
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

// Sets the number of replicas that accept requests, from a time on.
struct FleetSize {
  std::int64_t time_us = 0;  // time in the trace
  int replicas = 0;          // at least 1
};

// Decides the number of replicas during the simulation, from the metrics of the replicas that accept
// requests. A new replica accepts requests after startup_us.
struct ScalingLoop {
  std::int64_t interval_us = 5'000'000;  // time between two readings
  double share = 0.99;                   // fraction of requests that do not exceed the reported latencies
  // returns the number, at least 1
  std::function<int(std::int64_t now_us, std::span<const ReplicaReading>)> replicas = {};
};

// Replicas that compute prompts and send their KV to decode replicas.
struct PrefillPool {
  int replicas = 0;                 // 0: the other replicas also compute prompts
  SchedulerOptions scheduler = {};  // options of each replica
  StepTiming timing = {};
  std::string policy = "cache_aware";
  // If a decode replica has to compute at most this number of prompt tokens, it computes them itself.
  int local_tokens_max = 0;
  // A decode replica fetches prompts one after another, and only the missing blocks.
  double kv_bytes_per_token = 0;
  double link_bytes_per_second = 1;
  std::int64_t link_latency_us = 0;
};

struct SimulationOptions {
  int replicas = 8;  // number at the beginning
  // Factors of the step times of the first replicas. Replicas without a factor, and those that only prefill,
  // have 1.
  std::vector<double> slowdowns = {};
  // Changes of the number, sorted by time. New replicas have empty caches. The newest replicas are removed
  // first: they get no new requests and finish their running ones.
  std::vector<FleetSize> sizes = {};
  ScalingLoop scaling = {};         // replaces `sizes`; if empty, the number does not change
  std::int64_t startup_us = 0;      // time from adding a replica to its first requests
  SchedulerOptions scheduler = {};  // options of each replica
  StepTiming timing = {};
  PrefillPool prefill = {};  // additional replicas for prefill, whose number is fixed
  std::string policy = "cache_aware";
  PolicyOptions policy_options = {};
  std::optional<PipelineConfig> pipeline = {};  // used instead of the named policy
  // Replicas report cache events to the router at the end of each step.
  bool kv_events = false;
  std::int64_t metrics_interval_us = 1'000'000;  // interval at which the router reads the replicas' gauges
  std::uint64_t seed = 0;                        // seed for random numbers of policies
};

struct FleetSample {
  std::int64_t time_us = 0;
  int replicas = 0;  // number of replicas that accept requests
  int running = 0;
  int waiting = 0;
  std::int64_t prompt_tokens = 0;  // of all requests that have begun so far
  std::int64_t cached_tokens = 0;  // number of those tokens that were cached
};

struct ReplicaUse {
  bool prefills = false;      // the replica computes prompts for others
  std::int64_t there_us = 0;  // time from its start to its removal
  std::int64_t busy_us = 0;   // time in steps
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  int requests = 0;  // number of completed requests
};

struct SimulationResult {
  std::int64_t duration_us = 0;  // time from the first arrival to the last token
  // One entry for each request, in the trace's order. An incomplete answer was refused: the prompt is too
  // long, or too many requests wait.
  std::vector<traffic::AnswerTimes> answers = {};
  traffic::GapCounts gaps = {};           // times between tokens
  std::vector<FleetSample> samples = {};  // one for each reading of the gauges, and one at the end
  std::vector<ReplicaUse> replicas = {};  // all replicas, in the order of their removal
};

// Errors: options that the scheduler refuses, an unknown policy, or a prefill pool without prefix caching.
// progress: called from time to time with the numbers of finished and all requests.
Result<SimulationResult> simulate(
    const SimulationOptions& options, const Trace& trace,
    const std::function<void(std::size_t, std::size_t)>& progress = [](std::size_t, std::size_t) {});

}  // namespace octavo::fleet
