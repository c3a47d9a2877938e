#include "local/engine_flags.h"

#include <dlfcn.h>

#include <boost/json/object.hpp>
#include <charconv>
#include <filesystem>

#include "engine/draft/speculative_config.h"
#include "local/flag_table.h"
#include "local/numbers.h"

namespace octavo {
namespace {

constexpr Choice<Policy> kPolicies[] = {
    {"fcfs", Policy::fcfs}, {"lpm", Policy::longest_prefix}, {"priority", Policy::priority}};
constexpr Choice<HashAlgorithm> kHashes[] = {{"sha256", HashAlgorithm::sha256},
                                             {"sha256_cbor", HashAlgorithm::sha256},
                                             {"sha256_cbor_64bit", HashAlgorithm::sha256},
                                             {"builtin", HashAlgorithm::xxh3_128},
                                             {"xxhash", HashAlgorithm::xxh3_128},
                                             {"xxhash_cbor", HashAlgorithm::xxh3_128}};
constexpr Choice<bool> kLogprobsModes[] = {{"raw_logprobs", false}, {"processed_logprobs", true}};

// Reads max_model_len. "auto" and "-1" give nullopt.
Result<std::optional<int>> model_length(const std::string& text) {
  constexpr int kMost = 1 << 28;
  if (text == "auto" || text == "-1") return std::nullopt;
  const std::string digits = expand_suffix(text);
  int length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length < 1 || length > kMost)
    return invalid("", "must be auto or 1 to {}, got {}", kMost, text);
  return length;
}

// Reads the limit of one media type: {"image": 4} or {"image": {"count": 4}}.
Result<> read_media_limit(const boost::json::object& limits, std::string_view kind, int& most) {
  const boost::json::value* limit = limits.if_contains(kind);
  if (limit && limit->is_object()) limit = limit->get_object().if_contains("count");
  if (!limit) return {};
  constexpr std::int64_t kMost = 4096;
  if (!limit->is_int64() || limit->get_int64() < 0 || limit->get_int64() > kMost)
    return invalid("", "{} must be a number from 0 to {}", kind, kMost);
  most = static_cast<int>(limit->get_int64());
  return {};
}

Result<> read_media_limits(const boost::json::object& limits, MediaLimits& media) {
  TRY_VOID(read_media_limit(limits, "image", media.images));
  TRY_VOID(read_media_limit(limits, "video", media.videos));
  return read_media_limit(limits, "audio", media.sounds);
}

void drop_media(EngineOptions& o) { o.media = {.images = 0, .videos = 0, .sounds = 0}; }

Result<> read_media_adapters(const boost::json::object& folders, LoraOptions& lora) {
  for (const auto& [kind, folder] : folders) {
    const std::string_view name = kind;
    if (name != "image" && name != "video" && name != "audio")
      return invalid("", "{}: must be image, video or audio", name);
    if (!folder.is_string() || folder.get_string().empty()) return invalid("", "{} must be the path of a folder", name);
    lora.by_media[std::string(name)] = std::string(folder.get_string());
  }
  return {};
}

using E = EngineOptions;
using EngineFlag = FlagRow<EngineOptions>;

constexpr EngineFlag kModelArgument[] = {
    {"model,--model", flag::to<&E::model, &ModelOptions::dir>,
     "Folder of the checkpoint, a GGUF file (of a split file the first part), or a name of the Hugging Face "
     "hub: "
     "org/name[@revision], org/name:Q4_K_M; the demo model when left out"},
};

constexpr EngineFlag kModel[] = {
    {"--quantization", flag::to<&E::model, &ModelOptions::quantization>,
     "Quantise unquantised weights while loading: int8 (one scale per row) or int4 (groups of up to 128). "
     "The checkpoint's own method (gptq, awq ..) is accepted and changes nothing"},
    {"--load-format", flag::to<&E::model, &ModelOptions::load_format>,
     "auto: safetensors, else PyTorch files or GGUF (hf, safetensors and pt are the same); dummy: random "
     "weights from config.json only, for measurements",
     OneOf{"auto|hf|safetensors|pt|dummy"}},
    {"--runner", flag::to<&E::model, &ModelOptions::runner>,
     "generate: the model generates text; pooling: the model computes vectors or scores; auto: by the "
     "model's files",
     OneOf{"auto|generate|pooling"}},
    {"--convert", flag::to<&E::model, &ModelOptions::convert>,
     "Use a generating model as: embed (vectors of texts), classify (scores of labels, by its matrix "
     "\"score\" or the tokens of classifier_from_token), or none; auto: by its files and --runner",
     OneOf{"auto|none|embed|classify"}},
    {"--hf-overrides", flag::to<&E::model, &ModelOptions::hf_overrides>,
     "JSON: fields of config.json that have other values, as {\"rope_theta\": 1000000}"},
    {"--enable-prompt-embeds", flag::to<&E::model, &ModelOptions::prompt_embeds>,
     "Accept prompts as embeddings: prompt_embeds in /v1/completions, a safetensors file in base64"},
    {"--dtype",
     flag::to<&E::model, &ModelOptions::dtype>,
     "auto, bfloat16, float16 or float32",
     OneOf{"auto|bfloat16|float16|float32|half|float"},
     {.no_default = true}},
    {"--max-model-len", flag::parsed<&model_length, &E::model, &ModelOptions::max_model_len>,
     "Maximum number of tokens of prompt and answer together. Default, auto and -1: the model's limit, or "
     "less if the KV cache is smaller"},
    {"--seed", flag::to<&E::seed>, "Default seed, for requests that have no seed"},
};

constexpr EngineFlag kDevice[] = {
    {"--device", flag::to<&E::device, &DeviceOptions::type>,
     "auto (cuda if available, else cpu), cpu, cuda, or reference (simple loops, for tests)",
     OneOf{"auto|cpu|cuda|reference"}},
    {"--executor", flag::to<&E::device, &DeviceOptions::executor>,
     "local, or simulated: no weights, and steps take the time that the model needs on an H100, on another "
     "device (simulated=a100-80g) or by a file of coefficients (simulated=timing.json)"},
    {"--enforce-eager", flag::to<&E::device, &DeviceOptions::enforce_eager>,
     "GPUs: no CUDA graphs for decoding"},
    {"--async-scheduling", flag::to<&E::device, &DeviceOptions::async_scheduling>,
     "GPUs: start a step before the tokens of the previous step are known (default: on; off with "
     "--speculative-config)"},
    {"--cpu-threads", flag::to<&E::device, &DeviceOptions::threads>,
     "Compute threads; 0: all that this process may use", flag::range(0, 1024)},
    {"--nnodes", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::count>,
     "Number of hosts; each has the same number of the engine's ranks", flag::range(1, 64)},
    {"--node-rank", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::rank>,
     "Index of this host; host 0 has the server, the others need the same model and flags",
     flag::range(0, 63)},
    {"--master-addr", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::master_addr>,
     "Address of host 0"},
    {"--master-port", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::master_port>,
     "Port of host 0", flag::range(1, 65'535)},
    {"--distributed-timeout-seconds",
     flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::timeout_s>,
     "Seconds without progress after which a rank counts as hung; 0: 10 s, or 120 s with pipeline "
     "parallelism or with experts divided among engines",
     flag::range(0, 86'400)},
    {"--pipeline-parallel-size", flag::to<&E::parallel, &ParallelOptions::pipeline_parallel_size>,
     "Number of pipeline stages, on CPUs; each has --tensor-parallel-size processes", flag::range(1, 64)},
    {"--enable-expert-parallel", flag::to<&E::parallel, &ParallelOptions::enable_expert_parallel>,
     "Give each process whole experts instead of a part of every expert. With --data-parallel-size, the "
     "processes of all engines share the experts and run in lock step"},
    {"--enable-eplb", flag::to<&E::parallel, &ParallelOptions::expert_balancing, &ExpertBalancing::enabled>,
     "With --enable-expert-parallel: move experts between the processes while they serve, to balance the "
     "load"},
    {"--eplb-config", flag::parsed<&read_eplb_config, &E::parallel, &ParallelOptions::expert_balancing>,
     "Options of --enable-eplb, as JSON: number of steps whose tokens count, steps between two plans, "
     "additional slots for copies of experts: "
     R"({"window_size": 1000, "step_interval": 3000, "num_redundant_experts": 0})"},
    {"--tensor-parallel-size", flag::to<&E::parallel, &ParallelOptions::tensor_parallel_size>,
     "Number of processes that each hold a part of every layer, on CPUs; they share the compute threads",
     flag::range(1, 64)},
    {"--data-parallel-size", flag::to<&E::parallel, &ParallelOptions::data_parallel_size>,
     "Number of engines that each have the whole model (except experts, see --enable-expert-parallel), "
     "behind "
     "one server, on CPUs; they share the compute threads",
     flag::range(1, 64)},
};

constexpr EngineFlag kHidden[] = {
    {kEngineIndexFlag, flag::to<&E::index>},
    {kExpertPortFlag, flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::expert_port>},
    {kWeightsFlag, flag::to<&E::model, &ModelOptions::weights_dir>},
};

constexpr EngineFlag kCache[] = {
    {"--kv-cache-dtype", flag::to<&E::cache, &KvCacheOptions::dtype>,
     "auto (as the activations), float16, bfloat16, fp8 (e4m3, scale 1) or int8_per_token_head",
     OneOf{"auto|float16|bfloat16|fp8|fp8_e4m3|int8_per_token_head"}},
    {"--block-size", flag::to<&E::cache, &KvCacheOptions::block_size>,
     "Tokens in a KV block, a multiple of 16", flag::range(16, 256)},
    {"--kv-cache-memory-bytes",
     flag::to<&E::cache, &KvCacheOptions::memory_bytes>,
     "Size of the KV cache; 0: chosen from the available memory",
     NotNegative{.suffix = true},
     {.no_default = true}},
    {"--gpu-memory-utilization,--device-memory-utilization",
     flag::to<&E::device, &DeviceOptions::gpu_memory_utilization>,
     "Share of a GPU's memory to use, weights and workspaces included", flag::range(0.05, 1.0)},
    {"--num-gpu-blocks-override", flag::to<&E::cache, &KvCacheOptions::num_blocks>,
     "Number of KV blocks, instead of a size in bytes", flag::count(1, 1 << 30)},
    {"--enable-prefix-caching", flag::to<&E::cache, &KvCacheOptions::enable_prefix_caching>,
     "Reuse the KV of common prefixes (default: on)"},
    {"--kv-survives-engine", flag::to<&E::cache, &KvCacheOptions::survives_engine>,
     "CPUs: keep the KV cache in memory of the server's process, so that an engine that is killed loses no "
     "prefix (default: on)"},
    {"--kv-memory-file", flag::to<&E::cache, &KvCacheOptions::memory_file>,
     "CPUs: path in /dev/shm for the KV cache. The next server with this path, model and size of the cache "
     "has "
     "its prefixes at once. The file contains prompts"},
    {"--prefix-caching-hash-algo",
     flag::chosen<kHashes, &E::cache, &KvCacheOptions::prefix_hash>,
     "xxhash (keyed, fast; builtin is the same) or sha256; the forms with _cbor are the same",
     {},
     {.no_default = true}},
    {"--mamba-block-size", flag::to<&E::cache, &KvCacheOptions::mamba_block_size>,
     "Tokens between the states of recurrent layers that the prefix cache keeps, a multiple of "
     "--block-size (default: 256)",
     flag::count(1, 1 << 28)},
    {"!--disable-hybrid-kv-cache-manager", flag::to<&E::cache, &KvCacheOptions::sliding_window_groups>,
     "Keep the whole context of sliding-window layers"},
    {"--kv-events-config", flag::parsed<&parse_kv_events_config, &E::kv_events>,
     "Publish what the prefix cache gains and loses over ZeroMQ, for routers. As JSON: "
     R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558"})"},
    {kKvTransferFlag, flag::parsed<&parse_kv_transfer_config, &E::kv_transfer>,
     "Where KV blocks are sent to and loaded from, besides the KV cache: other engines (NixlConnector: "
     "separate prefill and decode), host memory (OffloadingConnector), a disk (OffloadingConnector, "
     "SharedStorageConnector), "
     "several of "
     "them (MultiConnector). As JSON: "
     R"({"kv_connector": "NixlConnector", "kv_role": "kv_both"})"},
};

constexpr EngineFlag kScheduling[] = {
    {"--max-num-batched-tokens", flag::to<&E::schedule, &ScheduleOptions::max_num_batched_tokens>,
     "Token budget of one step", flag::count(1, 1 << 20)},
    {"--max-num-seqs", flag::to<&E::schedule, &ScheduleOptions::max_num_seqs>, "Sequences in one step",
     flag::count(1, 1 << 16)},
    {"--enable-chunked-prefill", flag::to<&E::schedule, &ScheduleOptions::enable_chunked_prefill>,
     "Compute long prompts over several steps (default: on)"},
    {"--long-prefill-token-threshold", flag::to<&E::schedule, &ScheduleOptions::long_prefill_token_threshold>,
     "Largest chunk of one prompt in a step; 0: no limit", flag::count(0, 1 << 20)},
    {"--watermark", flag::to<&E::schedule, &ScheduleOptions::watermark>,
     "Share of the KV blocks to keep free when a request is "
     "admitted",
     flag::range(0.0, 0.5)},
    {"--scheduling-policy",
     flag::chosen<kPolicies, &E::schedule, &ScheduleOptions::policy>,
     "fcfs, priority, or lpm (longest cached prefix first)",
     {},
     {.no_default = true}},
    {"--speculative-config", flag::parsed<&parse_speculative_config, &E::speculation>,
     "Propose tokens and check several in a step; answers stay the same. As JSON: "
     R"({"model": "path/of/a/draft-model", "num_speculative_tokens": 4}, {"method": "suffix"} or )"
     R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2})"},
    {"--max-num-queued-reqs", flag::to<&E::schedule, &ScheduleOptions::max_queued>,
     "Maximum number of waiting answers; more get 429", flag::count(0, 1 << 23)},
};

constexpr EngineFlag kLora[] = {
    {"--enable-lora", flag::to<&E::lora, &LoraOptions::enabled>,
     "Enable LoRA adapters; requests name them as their model"},
    {"--max-loras", flag::to<&E::lora, &LoraOptions::max_loras>,
     "Adapters in memory at a time; all of them can be in one batch", flag::range(1, 1024)},
    {"--max-cpu-loras", flag::to<&E::lora, &LoraOptions::max_cpu_loras>,
     "Maximum number of adapters in CPU memory, at least --max-loras; others are read again when a request "
     "needs them",
     flag::range(1, 1024)},
    {"--default-mm-loras", flag::parsed<&read_media_adapters, &E::lora>,
     R"(Default adapters of chats with images, videos or sound, as JSON: {"image": "folder"}; needs )"
     R"(--enable-lora. Requests can also name them as image, video or audio)"},
    {"--max-lora-rank", flag::to<&E::lora, &LoraOptions::max_lora_rank>,
     "Maximum rank of an adapter; all adapters are padded to it", flag::range(1, 512)},
};

constexpr EngineFlag kMultimodal[] = {
    {"--limit-mm-per-prompt", flag::parsed<&read_media_limits, &E::media>,
     R"(Images, videos and sounds that one prompt may have, as JSON: {"image": 4, "video": 1, "audio": 1}; )"
     "with 0 the encoder is not loaded"},
    {"--language-model-only", flag::calls<&drop_media>,
     "Do not load the encoders of images, videos and sound: prompts are only text"},
};

constexpr EngineFlag kSampling[] = {
    {"--max-logprobs", flag::to<&E::logprobs, &LogprobOptions::max>,
     "Maximum number of log-probabilities that a request may have; -1: no limit", flag::range(-1, 1 << 20)},
    {"--logprobs-mode",
     flag::chosen<kLogprobsModes, &E::logprobs, &LogprobOptions::processed>,
     "raw_logprobs (the model's own) or processed_logprobs (after sampling parameters)",
     {},
     {.no_default = true}},
};

constexpr EngineFlag kMetrics[] = {
    {"--kv-cache-metrics", flag::to<&E::metrics, &MetricsOptions::kv_cache>,
     "Measure how long KV blocks stay in the cache: vllm:kv_block_lifetime_seconds, "
     "vllm:kv_block_idle_before_evict_seconds, vllm:kv_block_reuse_gap_seconds"},
    {"--kv-cache-metrics-sample", flag::to<&E::metrics, &MetricsOptions::kv_cache_sample>,
     "Share of the KV blocks that --kv-cache-metrics measures", flag::range(1e-6, 1.0)},
    {"--enable-mfu-metrics", flag::to<&E::metrics, &MetricsOptions::work>,
     "Estimate the operations and bytes of all steps: vllm:estimated_flops_per_gpu_total, "
     "vllm:estimated_read_bytes_per_gpu_total, vllm:estimated_write_bytes_per_gpu_total"},
};

}  // namespace

void add_engine_flags(CLI::App& command, EngineOptions& options) {
  add_flags(command, options, "Options", kModelArgument);
  add_flags(command, options, "Model", kModel);
  add_flags(command, options, "Device", kDevice);
  add_flags(command, options, "", kHidden);
  add_flags(command, options, "KV cache", kCache);
  add_flags(command, options, "Scheduling", kScheduling);
  add_flags(command, options, "LoRA", kLora);
  add_flags(command, options, "Multimodal", kMultimodal);
  add_flags(command, options, "Sampling", kSampling);
  add_flags(command, options, "Metrics", kMetrics);
}

namespace {

namespace fs = std::filesystem;

// Returns the folders of this program and of the library that contains this function, with their parent
// folders.
std::vector<fs::path> folders_of_code() {
  std::error_code ignored;
  std::vector<fs::path> folders;
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&demo_model_dir), &here);
  // The library is first, because the program may be a Python interpreter, whose folder may have another
  // version of octavo.
  for (const fs::path& code : {fs::canonical(here.dli_fname ? here.dli_fname : "", ignored),
                               fs::read_symlink("/proc/self/exe", ignored)})
    for (fs::path p = code.parent_path(); p.has_relative_path(); p = p.parent_path()) folders.push_back(p);
  return folders;
}

}  // namespace

Result<std::string> demo_model_dir() {
  std::error_code ignored;
  std::vector<fs::path> places = {fs::current_path(ignored)};
  for (const fs::path& folder : folders_of_code()) {
    places.push_back(folder);
    places.push_back(folder / "share" / "octavo");
  }
#ifdef OCTAVO_SOURCE_DIR
  places.emplace_back(OCTAVO_SOURCE_DIR);
#endif
  for (const fs::path& place : places) {
    const fs::path dir = place / "models" / "demo";
    if (fs::exists(dir / "config.json", ignored)) return dir.string();
  }
  return field_failure("model", ErrorCode::not_found,
                       "no model was given, and the demo model (models/demo) was not found: name a model");
}

Result<std::string> octavo_program() {
  std::error_code ignored;
  for (const fs::path& folder : folders_of_code())
    for (const fs::path& program : {folder / "octavo", folder / "bin" / "octavo"})
      if (fs::is_regular_file(program, ignored)) return program.string();
  return failure(ErrorCode::not_found,
                 "engines in several processes need the program octavo, which is neither beside liboctavo "
                 "nor in ../bin");
}

}  // namespace octavo
