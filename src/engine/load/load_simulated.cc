#include "engine/load/load_simulated.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "engine/execute/timed_executor.h"
#include "engine/load/engine_plan.h"
#include "engine/load/model_figures.h"
#include "engine/option_values.h"
#include "kernels/backends.h"
#include "model/support.h"
#include "timing/read_timing.h"

namespace octavo {

namespace {

WorkFigures work_of_model(const ModelFigures& figures) {
  return {.operations_per_token = figures.operations_per_token,
          .operations_per_pair = figures.operations_per_pair,
          .weight_bytes = figures.weight_bytes,
          .kv_bytes_per_token = figures.kv_bytes_per_token};
}

}  // namespace

Result<std::unique_ptr<Engine>> load_simulated(const EngineOptions& options, const LoadHooks& hooks) {
  constexpr std::string_view kPrefix = "simulated=";
  const bool named = options.device.executor.starts_with(kPrefix);
  if (!named && options.device.executor != "simulated")
    return invalid("executor", "must be local, simulated or simulated=.., got {}", options.device.executor);
  const std::string by = named ? options.device.executor.substr(kPrefix.size()) : "h100";
  if (options.speculation)
    return field_failure("speculative_config", ErrorCode::unsupported,
                         "is not supported with a simulated executor, whose output tokens are random");

  if (options.model.prompt_embeds)
    return field_failure("enable_prompt_embeds", ErrorCode::unsupported,
                         "is not supported with a simulated executor, which computes nothing");

  if (options.device.expert_layers_on_host != 0 || options.device.weights_on_host_gb > 0)
    log_warning("cpu_offload_gb and n_cpu_moe have no effect: a simulated executor has no weights");
  TRY(const Reading reading, reading_of(options));
  TRY(const ModelSpec spec, load_spec(options.model.dir, reading));
  const ModelFigures figures = model_figures(spec);
  StepTiming timing;
  MemoryPlan memory{.requested = options.cache.memory_bytes};
  if (const auto device = std::ranges::find(known_devices(), by, &Named<DeviceFigures>::name);
      device != known_devices().end()) {
    timing = roofline(figures, device->figures, 1);
    memory.all = static_cast<std::int64_t>(device->figures.memory_bytes);
    memory.available = memory.all - static_cast<std::int64_t>(figures.weight_bytes);
    memory.shared_with_host = false;
    memory.utilization = options.device.gpu_memory_utilization;
  } else {
    TRY(timing, read_step_timing(by));
  }
  const Backend reference = make_reference_backend();
  TRY(const std::optional<DType> chosen_dtype, kv_cache_dtype(options.cache.dtype));
  const DType cache_dtype = chosen_dtype.value_or(DType::bf16);
  const CacheLayout layout =
      cache_layout(spec, {options.cache.block_size, cache_dtype, options.cache.sliding_window_groups});
  TRY_VOID(check_support(spec, {options.cache.block_size, cache_dtype}, reference));
  const ModelPlanFigures loaded{.layout = layout,
                                .max_model_len = options.model.max_model_len.value_or(spec.max_positions),
                                .block_bytes = layout.block_bytes(reference.ops),
                                .state_bytes = layout.state_bytes(),
                                .hash_seed = secret_seed()};
  TRY(SchedulerOptions scheduler, plan_engine(loaded, {.memory = memory}, options));

  EngineInfo info;
  info.index = options.first_index + options.index;
  info.architecture = spec.architecture;
  info.device = "simulated " + by;
  info.cache.bytes = scheduler.num_blocks * loaded.block_bytes;
  info.vocab_size = spec.vocab;
  info.max_queued = options.max_queued;
  info.max_logprobs = options.logprobs.max;
  // Prefill and decode servers transfer blocks with the real protocol, but each block has only 8 bytes.
  std::optional<BlockFormat> exchanged;
  if (layout.groups.size() == 1 && layout.state_bytes() == 0)
    exchanged = BlockFormat{.fingerprint = "simulated " + spec.architecture,
                            .dtype = std::string(name(cache_dtype)),
                            .block_size = layout.block_size,
                            .bytes = 8};
  log_info("simulated: {} blocks of {} tokens", scheduler.num_blocks, scheduler.block_size);
  return Engine::start(std::move(scheduler), std::move(info),
                       {.executor = std::make_unique<TimedExecutor>(timing, spec.vocab, std::move(exchanged)),
                        .vocabulary = hooks.make_vocabulary(info.vocab_size),
                        .seed = options.seed,
                        .after_step = hooks.after_step,
                        .kv_events = options.kv_events,
                        .work_figures = work_of_model(figures),
                        .kv_transfer = options.kv_transfer,
                        .sessions = options.sessions});
}

}  // namespace octavo
