#include "app/simulation_flags.h"

#include <fmt/format.h>

#include <filesystem>

#include "app/policy_flags.h"
#include "app/recorded_traffic.h"
#include "engine/load/model_figures.h"
#include "fleet/simulate/traffic_shape.h"
#include "local/flag_table.h"
#include "model/model.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

Result<ModelFigures> figures_of(const std::string& model) {
  if (!std::filesystem::is_directory(model)) return read_model_figures(model);
  TRY(const ModelSpec spec, load_spec(model));
  return model_figures(spec);
}

// Returns the number of KV blocks that fit beside the weights.
Result<int> cache_blocks(const ModelFigures& model, const DeviceFigures& device, int devices,
                         const SimulationFlags& c) {
  TRY(const std::int64_t tokens, cache_tokens(model, device, devices, c.memory_share));
  const std::int64_t blocks = tokens / c.options.scheduler.block_size;
  if (blocks < 1 || blocks > 1 << 28)
    return invalid(
        "num-gpu-blocks-override",
        "must be given, because the device's memory would hold {} blocks: set --num-gpu-blocks-override",
        blocks);
  return static_cast<int>(blocks);
}

}  // namespace

Result<> describe_replica(SimulationFlags& c) {
  SchedulerOptions& scheduler = c.options.scheduler;
  fleet::PrefillPool& prefill = c.options.prefill;
  scheduler.max_steps_in_flight = 1;
  scheduler.max_sequences = scheduler.max_num_seqs + c.max_queued;
  const int devices = c.tensor_parallel_size;
  const int prefill_devices = c.prefill_tensor_parallel_size > 0 ? c.prefill_tensor_parallel_size : devices;
  if (!c.timing.empty()) {
    TRY(c.options.timing, read_step_timing(c.timing));
    prefill.timing = c.options.timing;
    if (prefill_devices != devices)
      return invalid("prefill-tensor-parallel-size",
                     "must equal the number of devices of other replicas if a timing is given");
  }
  prefill.scheduler = scheduler;
  if (!c.timing.empty() && scheduler.num_blocks > 0 && prefill.replicas == 0) return {};
  TRY(const ModelFigures model, figures_of(c.model));
  TRY(const DeviceFigures device, read_device_figures(c.device));
  prefill.kv_bytes_per_token = model.kv_bytes_per_token;
  if (c.timing.empty()) {
    c.options.timing = roofline(model, device, devices);
    prefill.timing = roofline(model, device, prefill_devices);
  }
  if (scheduler.num_blocks > 0) return {};
  TRY(scheduler.num_blocks, cache_blocks(model, device, devices, c));
  TRY(prefill.scheduler.num_blocks, cache_blocks(model, device, prefill_devices, c));
  return {};
}

Result<fleet::Trace> read_traffic(SimulationFlags& c) {
  if (c.trace.empty() == c.traffic.empty())
    return invalid("trace", "give either --trace (a file of recorded requests) or --traffic, not both");
  c.changes.seed = c.options.seed;
  fleet::Trace trace;
  if (c.traffic.empty()) {
    TRY(trace, is_recorded_traffic(c.trace) ? read_recorded_traffic(c.trace, c.trace_block_size)
                                            : fleet::read_mooncake_trace(c.trace, c.trace_block_size));
  } else {
    TRY(const fleet::TrafficShape shape, fleet::read_traffic_shape(c.traffic));
    TRY(trace, fleet::generate_traffic(shape, c.trace_block_size, c.options.seed));
  }
  TRY_VOID(change_trace(trace, c.changes));
  return trace;
}

namespace {

using fleet::PrefillPool;
using fleet::TraceChanges;

// Returns "a, b, or a JSON file", for errors.
template <class Known>
std::string names_of(const Known& known) {
  std::string text;
  for (const auto& one : known) text += fmt::format("{}, ", one.name);
  return text + "or a JSON file";
}

std::string models_text() {
  return "Model to simulate: " + names_of(known_models()) + ", or a folder with config.json";
}
std::string devices_text() { return "Device to simulate: " + names_of(known_devices()); }

using SimulationFlag = FlagRow<SimulationFlags>;
SchedulerOptions& scheduler_of(SimulationFlags& c) { return c.options.scheduler; }

constexpr SimulationFlag kTrafficFlags[] = {
    {"--trace", flag::to<&SimulationFlags::trace>,
     "Recorded requests: a file in Mooncake's format (one JSON object per line), or a folder of `octavo "
     "serve --record`"},
    {"--traffic", flag::to<&SimulationFlags::traffic>,
     "JSON file with rate, lengths and number of turns of sessions to generate, instead of a trace"},
    {"--trace-block-size", flag::to<&SimulationFlags::trace_block_size>,
     "Number of tokens per entry of hash_ids in the trace", flag::range(16, 65536)},
    {"--num-prompts", flag::to<&SimulationFlags::changes, &TraceChanges::requests_max>,
     "Number of requests to read from the trace, from its beginning; 0: all", flag::range(0, 1 << 30)},
    {"--speedup-ratio", flag::to<&SimulationFlags::changes, &TraceChanges::speedup>,
     "Factor by which the request rate is multiplied", flag::range(0.001, 1000.0)},
    {"--copies", flag::to<&SimulationFlags::changes, &TraceChanges::copies>,
     "Number of copies of the traffic. Each copy has different prompts and begins up to a minute later",
     flag::range(1, 100'000)},
    {"--seed", flag::to<&SimulationFlags::options, &fleet::SimulationOptions::seed>,
     "Seed of the random numbers; two runs with the same seed are identical"},
};

constexpr FlagRow<PrefillPool> kPrefillPolicyFlag[] = {
    {"--prefill-policy", flag::to<&PrefillPool::policy>, "Policy for the replicas that compute prompts",
     OneOfList{policy_names}},
};

constexpr SimulationFlag kPrefillSizeFlag[] = {
    {"--prefill-tensor-parallel-size", flag::to<&SimulationFlags::prefill_tensor_parallel_size>,
     "Number of devices of a prefill replica; 0: the number for the other replicas", flag::range(0, 1024)},
};

constexpr FlagRow<PrefillPool> kLinkFlags[] = {
    {"--local-prefill-tokens", flag::to<&PrefillPool::local_tokens_max>,
     "Maximum number of uncached prompt tokens that a decode replica computes itself",
     flag::range(0, 1 << 28)},
    {"--kv-link-bandwidth", flag::to<&PrefillPool::link_bytes_per_second>,
     "Bandwidth of KV transfers in bytes per second", flag::range(1.0, 1e15)},
    {"--kv-link-latency", flag::to<&PrefillPool::link_latency_us>, "Latency of a KV transfer in microseconds",
     flag::range(std::int64_t{0}, std::int64_t{1} << 40)},
};

constexpr SimulationFlag kReplicaFlags[] = {
    {"--model", flag::to<&SimulationFlags::model>, models_text},
    {"--device", flag::to<&SimulationFlags::device>, devices_text},
    {"--timing", flag::to<&SimulationFlags::timing>,
     "JSON file with coefficients for the time of a step, instead of the roofline"},
    {"-t,--tensor-parallel-size", flag::to<&SimulationFlags::tensor_parallel_size>,
     "Number of devices of a replica", flag::range(1, 1024)},
    {"--gpu-memory-utilization", flag::to<&SimulationFlags::memory_share>,
     "Fraction of the device's memory for weights and KV cache", flag::range(0.05, 1.0)},
    {"--num-gpu-blocks-override", flag::to<scheduler_of, &SchedulerOptions::num_blocks>,
     "Number of KV blocks; 0: the number that fits into the memory", flag::count(0, 1 << 28)},
    {"--block-size", flag::to<scheduler_of, &SchedulerOptions::block_size>, "Number of tokens in a KV block",
     flag::count(1, 1024)},
    {"--enable-prefix-caching", flag::to<scheduler_of, &SchedulerOptions::enable_prefix_caching>,
     "Reuse the KV blocks of a prompt for later prompts that begin with the same tokens (default: on)"},
    {"--max-model-len", flag::to<scheduler_of, &SchedulerOptions::max_model_len>,
     "Maximum number of tokens of a prompt and its answer together", flag::count(2, 1 << 28)},
    {"--max-num-batched-tokens", flag::to<scheduler_of, &SchedulerOptions::max_num_batched_tokens>,
     "Maximum number of tokens in one step", flag::count(1, 1 << 20)},
    {"--max-num-seqs", flag::to<scheduler_of, &SchedulerOptions::max_num_seqs>,
     "Maximum number of sequences in one step", flag::count(1, 1 << 16)},
    {"--long-prefill-token-threshold",
     flag::to<scheduler_of, &SchedulerOptions::long_prefill_token_threshold>,
     "Maximum number of tokens of one prompt in a step; 0: no limit", flag::count(0, 1 << 20)},
    {"--max-num-queued-reqs", flag::to<&SimulationFlags::max_queued>,
     "Maximum number of waiting requests; above it, requests are refused", flag::count(0, 1 << 23)},
};

}  // namespace

void add_traffic_flags(CLI::App& command, SimulationFlags& c) {
  add_flags(command, c, "Traffic", kTrafficFlags);
}

void add_prefill_flags(CLI::App& command, const std::string& group, SimulationFlags& c) {
  PrefillPool& prefill = c.options.prefill;
  prefill.link_bytes_per_second = 50e9;  // 400 Gb/s
  prefill.link_latency_us = 1000;
  add_flags(command, prefill, group, kPrefillPolicyFlag);
  add_flags(command, c, group, kPrefillSizeFlag);
  add_flags(command, prefill, group, kLinkFlags);
}

void add_replica_flags(CLI::App& command, SimulationFlags& c) {
  SchedulerOptions& s = c.options.scheduler;
  s.max_num_batched_tokens = 8192;
  s.max_num_seqs = 256;
  s.max_model_len = 131'072;
  add_flags(command, c, "Replica", kReplicaFlags);
}

}  // namespace octavo
