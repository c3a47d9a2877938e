#include "engine/load.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/local_executor.h"
#include "engine/memory_plan.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

Result<ModelDType> model_dtype(const std::string& text) {
  if (text == "auto") return ModelDType::automatic;
  if (text == "bfloat16") return ModelDType::bfloat16;
  if (text == "float16" || text == "half") return ModelDType::float16;
  if (text == "float32" || text == "float") return ModelDType::float32;
  return invalid("dtype", "must be auto, bfloat16, float16 or float32, got {}", text);
}

Result<DType> kv_cache_dtype(const std::string& text, DType activation) {
  if (text == "auto") return activation;
  if (text == "float16") return DType::f16;
  if (text == "bfloat16") return DType::bf16;
  if (text == "fp8" || text == "fp8_e4m3") return DType::f8_e4m3;
  if (text == "int8_per_token_head") return DType::i8;
  return invalid("kv_cache_dtype",
                 "must be auto, float16, bfloat16, fp8, fp8_e4m3 or int8_per_token_head, got {}", text);
}

// What to make of plain matrices. A method of vLLM's (its "_marlin" names a kernel) must be the checkpoint's
// own.
Result<Encoding> quantization(const std::string& text, const std::string& model_dir) {
  if (text == "none") return Encoding::plain;
  if (text == "int8") return Encoding::int8;
  if (text == "int4") return Encoding::int4;
  TRY(const std::string_view method, quantization_method(model_dir));
  if (text == method || text == fmt::format("{}_marlin", method)) return Encoding::plain;
  return invalid("quantization", "must be none, int8, int4 or what the checkpoint is packed as ({}), got {}",
                 method, text);
}

// The longest sequence that the pool holds when it has all of it.
int longest_sequence(const SchedulerOptions& options) {
  const KvCache shape(1, options.block_size, options.groups);
  int fits = 0;
  for (int low = 1, high = options.max_model_len; low <= high;) {
    const int middle = low + (high - low) / 2;
    if (shape.peak_blocks(middle - 1, options.max_num_batched_tokens) <= options.num_blocks) {
      fits = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return fits;
}

SchedulerOptions scheduler_options(const EngineOptions& options, const CacheLayout& layout,
                                   int max_model_len) {
  SchedulerOptions s;
  s.block_size = options.block_size;
  s.groups.clear();
  for (const LayerGroup& group : layout.groups) s.groups.push_back({group.window});
  s.enable_prefix_caching = options.enable_prefix_caching;
  s.prefix_hash = {options.prefix_hash, secret_seed()};
  s.max_num_batched_tokens = options.max_num_batched_tokens;
  s.max_num_seqs = std::min(options.max_num_seqs, options.max_num_batched_tokens);
  s.long_prefill_token_threshold = options.long_prefill_token_threshold;
  s.enable_chunked_prefill = options.enable_chunked_prefill;
  s.policy = options.policy;
  s.max_model_len = max_model_len;
  s.watermark = options.watermark;
  if (options.speculation) s.max_draft_tokens = options.speculation->num_speculative_tokens;
  return s;
}

// Settles the number of blocks, and with it the longest sequence: one that was asked for must fit, the
// model's own limit gives way.
Result<> plan_cache(const EngineOptions& options, MemoryPlan memory, std::int64_t block_bytes,
                    SchedulerOptions& s) {
  const KvCache shape(1, s.block_size, s.groups);
  const std::int64_t useful =
      std::int64_t{shape.peak_blocks(s.max_model_len, s.max_num_batched_tokens)} * s.max_num_seqs;
  memory.useful = useful * block_bytes;
  const std::int64_t blocks = options.num_blocks ? *options.num_blocks : cache_bytes(memory) / block_bytes;
  s.num_blocks = static_cast<int>(std::min<std::int64_t>(blocks, 1 << 30));
  const int longest = longest_sequence(s);
  if (longest < 2 || (options.max_model_len && longest < s.max_model_len))
    return invalid("kv_cache_memory_bytes",
                   "{} KV blocks of {} bytes hold sequences of {} tokens, max_model_len is {}", s.num_blocks,
                   block_bytes, longest, s.max_model_len);
  if (longest < s.max_model_len)
    log_warning("the KV cache ({} blocks) holds sequences of {} tokens: max_model_len lowered from {}",
                s.num_blocks, longest, s.max_model_len);
  s.max_model_len = longest;
  return {};
}

// The device that the options ask for.
Result<Backend> make_backend(const EngineOptions& options) {
  if (options.device == "reference") return make_reference_backend();
  if (options.device == "cuda") return make_cuda_backend();
  if (options.device == "auto")
    if (auto cuda = make_cuda_backend()) return cuda;
  if (options.device == "cpu" || options.device == "auto")
    return make_cpu_backend({.threads = options.threads, .isa = {}});
  return invalid("device", "must be auto, cpu, cuda or reference, got {}", options.device);
}

Result<LoadedEngine> load_on(Backend backend, const EngineOptions& options,
                             const std::function<void(std::size_t, std::size_t)>& progress) {
  TRY(const ModelDType dtype, model_dtype(options.dtype));
  TRY(const Encoding encoding, quantization(options.quantization, options.model_dir));
  if (options.speculation) TRY_VOID(validate(*options.speculation));
  TRY(auto model, Model::load(options.model_dir, backend,
                              {dtype, encoding, options.max_model_len, options.threads, progress}));
  TRY(const DType cache_dtype, kv_cache_dtype(options.kv_cache_dtype, model->activation));
  const CacheLayout layout =
      cache_layout(model->spec, {options.block_size, cache_dtype, options.sliding_window_groups});
  TRY_VOID(backend.ops.supports(layout.kv, model->spec.layers[0].attention.q_heads));
  SchedulerOptions scheduler = scheduler_options(options, layout, model->max_model_len);
  const std::int64_t block_bytes = layout.block_bytes(backend.ops);

  // Weights and workspaces first: what is left then is measured, not guessed.
  TRY(auto executor, LocalExecutor::create(std::move(backend), std::move(model), layout,
                                           {.max_tokens = scheduler.max_num_batched_tokens,
                                            .max_sequences = scheduler.max_num_seqs,
                                            .sampler = {options.processed_logprobs},
                                            // Guesses are made of tokens that the host has seen.
                                            .asynchronous = options.async_scheduling && !options.speculation,
                                            .recorded = !options.enforce_eager}));
  const Device& device = executor->device();
  const MemoryPlan memory = {.asked = options.kv_cache_memory_bytes,
                             .all = static_cast<std::int64_t>(device.memory_bytes()),
                             .available = static_cast<std::int64_t>(device.available_bytes()),
                             .reserved = executor->later_bytes(),
                             .shared_with_host = device.shares_host_memory(),
                             .utilization = options.gpu_memory_utilization};
  TRY_VOID(plan_cache(options, memory, block_bytes, scheduler));
  TRY_VOID(executor->allocate_cache(scheduler.num_blocks));

  LoadedEngine loaded;
  loaded.spec = executor->model().spec;
  loaded.max_model_len = scheduler.max_model_len;
  loaded.num_blocks = scheduler.num_blocks;
  loaded.weight_bytes = static_cast<std::int64_t>(executor->model().weight_bytes());
  loaded.cache_bytes = scheduler.num_blocks * block_bytes;
  const EngineLimits limits = {options.max_unfinished, loaded.spec.vocab, options.seed};
  std::unique_ptr<Proposer> proposer;
  if (options.speculation) proposer = std::make_unique<NgramProposer>(*options.speculation);
  TRY(loaded.engine, Engine::start(std::move(scheduler), limits, std::move(executor), std::move(proposer)));
  return loaded;
}

}  // namespace

Result<LoadedEngine> load_engine(const EngineOptions& options,
                                 std::function<void(std::size_t, std::size_t)> progress,
                                 const std::function<Backend(Backend)>& dress) {
  const auto dressed = [&](Backend backend) {
    return dress ? dress(std::move(backend)) : std::move(backend);
  };
  TRY(Backend backend, make_backend(options));
  const bool may_fall_back = options.device == "auto" && backend.name == "cuda";
  auto loaded = load_on(dressed(std::move(backend)), options, progress);
  if (loaded || !may_fall_back || loaded.error().code != ErrorCode::unsupported) return loaded;
  log_warning("not on the GPU but on the CPU: {}", loaded.error().message);
  EngineOptions on_cpu = options;
  on_cpu.device = "cpu";
  TRY(Backend cpu, make_backend(on_cpu));
  return load_on(dressed(std::move(cpu)), on_cpu, progress);
}

}  // namespace octavo
