#include "app/simulation_flags.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "app/policy_flags.h"
#include "engine/load/model_figures.h"
#include "fleet/simulate/traffic_shape.h"
#include "local/numbers.h"
#include "model/model.h"
#include "timing/read_timing.h"

namespace octavo {
namespace {

Result<ModelFigures> figures_of(const std::string& model) {
  if (!std::filesystem::is_directory(model)) return read_model_figures(model);
  TRY(const ModelSpec spec, load_spec(model));
  return model_figures(spec);
}

// Number of blocks that fit beside the weights.
Result<int> cache_blocks(const ModelFigures& model, const DeviceFigures& device, int devices,
                         const SimulationFlags& c) {
  TRY(const std::int64_t tokens, cache_tokens(model, device, devices, c.memory_share));
  const std::int64_t blocks = tokens / c.options.scheduler.block_size;
  if (blocks < 1 || blocks > 1 << 28)
    return invalid("num-gpu-blocks-override", "{} blocks would fit in the memory, give a number", blocks);
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
                     "must be that of the others where --timing gives the times");
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
    return invalid("trace", "either --trace, a file of recorded requests, or --traffic must be given");
  c.changes.seed = c.options.seed;
  fleet::Trace trace;
  if (c.traffic.empty()) {
    TRY(trace, fleet::read_mooncake_trace(c.trace, c.trace_block_size));
  } else {
    TRY(const fleet::TrafficShape shape, fleet::read_traffic_shape(c.traffic));
    TRY(trace, fleet::generate_traffic(shape, c.trace_block_size, c.options.seed));
  }
  TRY_VOID(change_trace(trace, c.changes));
  return trace;
}

Result<> write_result(std::string_view field, const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) return field_failure(field, ErrorCode::io, "cannot write {}", path);
  return {};
}

void add_traffic_flags(CLI::App& command, SimulationFlags& c) {
  const char* group = "Traffic";
  command.add_option("--trace", c.trace, "Recorded requests in Mooncake's format, a JSON object a line")
      ->group(group);
  command.add_option("--traffic", c.traffic, "Made-up sessions instead: a JSON file with their rate, lengths and turns")
      ->group(group);
  command
      .add_option("--trace-block-size", c.trace_block_size,
                  "Tokens per entry of the trace's hash_ids; prompts share whole blocks of them")
      ->check(CLI::Range(16, 65536))
      ->capture_default_str()
      ->group(group);
  command.add_option("--num-prompts", c.changes.requests_max, "Number of requests to take from the beginning of the trace; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str()
      ->group(group);
  command.add_option("--speedup-ratio", c.changes.speedup, "Factor of the request rate")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--copies", c.changes.copies,
          "Number of copies of the traffic; each has different prompts and starts up to a minute later")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str()
      ->group(group);
  command.add_option("--seed", c.options.seed, "Seed of all random draws; runs with the same seed are identical")
      ->capture_default_str()
      ->group(group);
}

void add_prefill_flags(CLI::App& command, const std::string& group, SimulationFlags& c) {
  fleet::PrefillPool& prefill = c.options.prefill;
  prefill.link_bytes_per_second = 50e9;  // 400 Gb/s
  prefill.link_latency_us = 1000;
  command.add_option("--prefill-policy", prefill.policy, "The policy among replicas that compute prompts")
      ->check(CLI::IsMember(policy_names()))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--prefill-tensor-parallel-size", c.prefill_tensor_parallel_size,
                  "Devices of a replica that computes prompts; 0: as many as of the others")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--local-prefill-tokens", prefill.local_tokens_max,
                  "A prompt stays where it is decoded when no more of its tokens are to be computed there")
      ->check(CLI::Range(0, 1 << 28))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--kv-link-bandwidth", prefill.link_bytes_per_second,
                  "Bytes a second of KV that a replica takes over")
      ->check(CLI::Range(1.0, 1e15))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--kv-link-latency", prefill.link_latency_us,
                  "Microseconds that a transfer takes, whatever its size")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str()
      ->group(group);
}

void add_replica_flags(CLI::App& command, SimulationFlags& c) {
  const char* group = "Replica";
  SchedulerOptions& s = c.options.scheduler;
  s.max_num_batched_tokens = 8192;
  s.max_num_seqs = 256;
  s.max_model_len = 131'072;
  const CLI::Validator suffix(
      [](std::string& text) {
        text = expand_suffix(text);
        return std::string();
      },
      "");
  const auto names = [](const auto& known) {
    std::string text;
    for (const auto& one : known) text += fmt::format("{}, ", one.name);
    return text + "or a JSON file";
  };
  command
      .add_option("--model", c.model,
                  "Figures of the model: " + names(known_models()) + ", or a folder with config.json")
      ->capture_default_str()
      ->group(group);
  command.add_option("--device", c.device, "Figures of one device: " + names(known_devices()))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--timing", c.timing, "JSON file with the coefficients of a step, instead of the roofline")
      ->group(group);
  command.add_option("-t,--tensor-parallel-size", c.tensor_parallel_size, "Devices of a replica")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--gpu-memory-utilization", c.memory_share, "Share of the memory for weights and KV cache")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str()
      ->group(group);
  const auto whole = [&](const char* name, int& value, const char* help, int min, int max) {
    command.add_option(name, value, help)
        ->transform(suffix)
        ->check(CLI::Range(min, max))
        ->capture_default_str()
        ->group(group);
  };
  whole("--num-gpu-blocks-override", s.num_blocks, "KV blocks; as many as fit beside the weights when 0", 0,
        1 << 28);
  whole("--block-size", s.block_size, "Tokens in a KV block", 1, 1024);
  command
      .add_flag("--enable-prefix-caching", s.enable_prefix_caching,
                "Reuse the KV of common prefixes (default: on)")
      ->group(group);
  whole("--max-model-len", s.max_model_len, "Tokens of prompt and answer together", 2, 1 << 28);
  whole("--max-num-batched-tokens", s.max_num_batched_tokens, "Token budget of one step", 1, 1 << 20);
  whole("--max-num-seqs", s.max_num_seqs, "Sequences in one step", 1, 1 << 16);
  whole("--long-prefill-token-threshold", s.long_prefill_token_threshold,
        "Largest chunk of one prompt in a step; 0: no limit", 0, 1 << 20);
  whole("--max-num-queued-reqs", c.max_queued,
        "Requests that may wait beyond those that run; more are refused", 0, 1 << 23);
}

}  // namespace octavo
