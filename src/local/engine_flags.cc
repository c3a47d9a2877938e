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

// Returns nullopt for "auto" and "-1".
Result<std::optional<int>> model_length(const std::string& text) {
  constexpr int kMost = 1 << 28;
  if (text == "auto" || text == "-1") return std::nullopt;
  const std::string digits = expand_suffix(text);
  int length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length < 1 || length > kMost)
    return invalid("", "must be auto or a number from 1 to {}, got {}", kMost, text);
  return length;
}

// Returns -1 for "auto".
Result<int> layers_on_host(const std::string& text) {
  constexpr int kMost = 1024;
  if (text == "auto") return -1;
  int layers = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layers);
  if (error != std::errc{} || end != text.data() + text.size() || layers < 0 || layers > kMost)
    return invalid("", "must be auto or a number from 0 to {}, got {}", kMost, text);
  return layers;
}

// Reads the limit of one modality: {"image": 4} or {"image": {"count": 4}}.
Result<> read_media_limit(const boost::json::object& limits, std::string_view kind, int& most) {
  const boost::json::value* limit = limits.if_contains(kind);
  if (limit && limit->is_object()) limit = limit->get_object().if_contains("count");
  if (!limit) return {};
  constexpr std::int64_t kMost = 4096;
  if (!limit->is_int64() || limit->get_int64() < 0 || limit->get_int64() > kMost)
    return invalid("", "the limit of {} must be a number from 0 to {}", kind, kMost);
  most = static_cast<int>(limit->get_int64());
  return {};
}

Result<> read_media_limits(const boost::json::object& limits, MediaLimits& media) {
  TRY_VOID(read_media_limit(limits, "image", media.images));
  TRY_VOID(read_media_limit(limits, "video", media.videos));
  return read_media_limit(limits, "audio", media.sounds);
}

void drop_mmproj(EngineOptions& o) { o.model.mmproj = kNoMmproj; }

void drop_media(EngineOptions& o) { o.media = {.images = 0, .videos = 0, .sounds = 0}; }

Result<> read_media_adapters(const boost::json::object& folders, LoraOptions& lora) {
  for (const auto& [kind, folder] : folders) {
    const std::string_view name = kind;
    if (name != "image" && name != "video" && name != "audio")
      return invalid("", "{} is not a type of media: must be image, video or audio", name);
    if (!folder.is_string() || folder.get_string().empty())
      return invalid("", "{} must be the path of a folder", name);
    lora.by_media[std::string(name)] = std::string(folder.get_string());
  }
  return {};
}

using E = EngineOptions;
using EngineFlag = FlagRow<EngineOptions>;

constexpr EngineFlag kModelArgument[] = {
    {"model,--model", flag::to<&E::model, &ModelOptions::dir>,
     "Folder of a checkpoint, a GGUF file (the first part if the file is split), or a model of the Hugging "
     "Face Hub: org/name[@revision] or org/name:Q4_K_M. Without this argument, the demo model is served"},
};

constexpr EngineFlag kModel[] = {
    {"--mmproj", flag::to<&E::model, &ModelOptions::mmproj>,
     "File with the image encoder of a GGUF model (llama.cpp's mmproj file). By default, the file in the "
     "model's folder whose name has \"mmproj\" and ends with .gguf, if it fits the model"},
    {"--no-mmproj", flag::calls<&drop_mmproj>,
     "Serve a GGUF model without its image encoder; prompts can contain only text"},
    {"--quantization", flag::to<&E::model, &ModelOptions::quantization>,
     "Quantise weights while loading them: int8 (one scale per row) or int4 (one scale per group of up to "
     "128 columns). The name of the checkpoint's own method (gptq, awq ..) is accepted and changes nothing"},
    {"--fp8-activations", flag::to<&E::model, &ModelOptions::fp8_activations>,
     "On GPUs, round activations to fp8 in products with fp8 weights, as the checkpoint's "
     "quantization_config "
     "says. vLLM does this by default. Answers change slightly"},
    {"--load-format", flag::to<&E::model, &ModelOptions::load_format>,
     "Source of the weights. auto: safetensors files, or else PyTorch files or a GGUF file. dummy: random "
     "weights with the dimensions in config.json, for measurements. The other values mean auto",
     OneOf{"auto|dummy|fastsafetensors|hf|instanttensor|mistral|npcache|pt|runai_streamer|safetensors"}},
    {"--weight-cache-dir", flag::to<&E::model, &ModelOptions::weight_cache_dir>,
     "CPUs: folder for converted weights. After the first load of a model, the server writes them there. "
     "Later loads map this file, so they are fast. The files use at most half of the free disk space"},
    {"--runner", flag::to<&E::model, &ModelOptions::runner>,
     "Task of the model. generate: it generates text; pooling: it computes vectors or scores; auto: the "
     "model's files decide",
     OneOf{"auto|generate|pooling"}},
    {"--convert", flag::to<&E::model, &ModelOptions::convert>,
     "Convert a generating model. embed: into an embedding model; classify: into a classifier with the "
     "matrix \"score\" or the tokens of classifier_from_token; none: do not convert; auto: the model's "
     "files and --runner decide",
     OneOf{"auto|none|embed|classify"}},
    {"--hf-overrides", flag::to<&E::model, &ModelOptions::hf_overrides>,
     "Values that replace fields of config.json, as a JSON object: {\"rope_theta\": 1000000}"},
    {"--enable-prompt-embeds", flag::to<&E::model, &ModelOptions::prompt_embeds>,
     "Accept embeddings instead of text as a prompt: the field prompt_embeds of /v1/completions, a "
     "safetensors file in base64"},
    {"--dtype",
     flag::to<&E::model, &ModelOptions::dtype>,
     "Number format of weights and activations; auto: the checkpoint's format",
     OneOf{"auto|bfloat16|float16|float32|half|float"},
     {.no_default = true}},
    {"--max-model-len", flag::parsed<&model_length, &E::model, &ModelOptions::max_model_len>,
     "Maximum number of tokens of a prompt and its answer together. Default, auto and -1: the model's limit, "
     "or fewer if the KV cache cannot hold that many tokens"},
    {"--seed", flag::to<&E::seed>, "Base seed; each request without a seed gets a derived one"},
};

constexpr EngineFlag kDevice[] = {
    {"--device", flag::to<&E::device, &DeviceOptions::type>,
     "Device that computes: auto (cuda if available, else cpu), cpu, cuda, or reference (slow and simple "
     "code, for tests)",
     OneOf{"auto|cpu|cuda|reference"}},
    {"--executor", flag::to<&E::device, &DeviceOptions::executor>,
     "local computes on this machine. simulated loads no weights and only waits for the estimated time of "
     "each step: on an H100, on the named device (simulated=a100-80g), or with coefficients from a file "
     "(simulated=timing.json)"},
    {"--cpu-offload-gb", flag::to<&E::device, &DeviceOptions::weights_on_host_gb>,
     "On GPUs, GiB of weights that stay in host memory, where the GPU reads them: experts first, then other "
     "matrices. With ranks, each rank keeps this size",
     flag::range(0.0, 100'000.0)},
    {"--n-cpu-moe", flag::parsed<&layers_on_host, &E::device, &DeviceOptions::expert_layers_on_host>,
     "On GPUs, number of layers, from the first one, whose experts stay in host memory, where the CPU "
     "computes them (--cpu-threads). auto: as many as needed, so that the other weights take at most 80% of "
     "the GPU's free memory. With --cpu-offload-gb instead, the GPU reads experts over PCIe"},
    {"--enforce-eager", flag::to<&E::device, &DeviceOptions::enforce_eager>,
     "Do not use CUDA graphs to decode on GPUs"},
    {"--async-scheduling", flag::to<&E::device, &DeviceOptions::async_scheduling>,
     "On GPUs, start each step before the tokens of the previous step are known (default: on; off with "
     "--speculative-config)"},
    {"--cpu-threads", flag::to<&E::device, &DeviceOptions::threads>,
     "Number of compute threads; 0: one for each processor that this process may use, and one fewer if the "
     "CPU computes experts for a GPU",
     flag::range(0, 1024)},
    {"--nnodes", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::count>,
     "Number of hosts for one engine; each host runs the same number of ranks", flag::range(1, 64)},
    {"--node-rank", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::rank>,
     "Index of this host. Host 0 runs the server; the other hosts must have the same model and flags",
     flag::range(0, 63)},
    {"--master-addr", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::master_addr>,
     "Address of host 0, to which the other hosts connect"},
    {"--master-port", flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::master_port>,
     "Port on host 0, to which the other hosts connect", flag::range(1, 65'535)},
    {"--distributed-timeout-seconds",
     flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::timeout_s>,
     "Number of seconds after which a rank that makes no progress counts as hung. 0: 10 s, or 120 s with "
     "pipeline parallelism, with experts divided among engines, or for a whole step if ranks use NCCL",
     flag::range(0, 86'400)},
    {"--pipeline-parallel-size", flag::to<&E::parallel, &ParallelOptions::pipeline_parallel_size>,
     "Number of pipeline stages; each stage runs --tensor-parallel-size processes", flag::range(1, 64)},
    {"--enable-expert-parallel", flag::to<&E::parallel, &ParallelOptions::enable_expert_parallel>,
     "Give each process whole experts instead of a part of every expert. With --data-parallel-size, the "
     "processes of all engines share the experts and run their steps at the same time"},
    {"--enable-eplb", flag::to<&E::parallel, &ParallelOptions::expert_balancing, &ExpertBalancing::enabled>,
     "Move experts between processes while the server runs, to balance the load; needs "
     "--enable-expert-parallel"},
    {"--eplb-config", flag::parsed<&read_eplb_config, &E::parallel, &ParallelOptions::expert_balancing>,
     "Options of --enable-eplb: number of recent steps whose tokens are counted, number of steps between "
     R"(two plans, number of additional slots for copies of experts. As JSON: {"window_size": 1000, )"
     R"("step_interval": 3000, "num_redundant_experts": 0})"},
    {"--tensor-parallel-size", flag::to<&E::parallel, &ParallelOptions::tensor_parallel_size>,
     "Number of processes that each compute a part of every layer. The processes share the "
     "compute threads",
     flag::range(1, 64)},
    {"--data-parallel-size", flag::to<&E::parallel, &ParallelOptions::data_parallel_size>,
     "Number of engines of this server. Each engine has the whole model, except experts with "
     "--enable-expert-parallel. The engines share the compute threads",
     flag::range(1, 64)},
};

constexpr EngineFlag kHidden[] = {
    {kEngineIndexFlag, flag::to<&E::index>},
    {kExpertPortFlag, flag::to<&E::parallel, &ParallelOptions::nodes, &NodeOptions::expert_port>},
    {kWeightsFlag, flag::to<&E::model, &ModelOptions::weights_dir>},
    {kLateFlag, flag::to<&E::model, &ModelOptions::late>},
};

constexpr EngineFlag kCache[] = {
    {"--kv-cache-dtype", flag::to<&E::cache, &KvCacheOptions::dtype>,
     "Number format of the KV cache. auto: the format of the activations; fp8: e4m3 with scale 1",
     OneOf{"auto|float16|bfloat16|fp8|fp8_e4m3|int8_per_token_head|int4_per_token_head"}},
    {"--block-size", flag::to<&E::cache, &KvCacheOptions::block_size>,
     "Number of tokens in a KV block; must be a multiple of 16", flag::range(16, 256)},
    {"--kv-cache-memory-bytes",
     flag::to<&E::cache, &KvCacheOptions::memory_bytes>,
     "Size of the KV cache in bytes. 0: the server chooses a size from the free memory",
     NotNegative{.suffix = true},
     {.no_default = true}},
    {"--gpu-memory-utilization,--device-memory-utilization",
     flag::to<&E::device, &DeviceOptions::gpu_memory_utilization>,
     "Maximum fraction of the GPU's memory that the server uses, for weights, workspaces and KV cache "
     "together",
     flag::range(0.01, 1.0)},
    {"--num-gpu-blocks-override", flag::to<&E::cache, &KvCacheOptions::num_blocks>,
     "Number of KV blocks; replaces --kv-cache-memory-bytes", flag::count(1, 1 << 30)},
    {"--enable-prefix-caching", flag::to<&E::cache, &KvCacheOptions::enable_prefix_caching>,
     "Reuse the KV of common prefixes (default: on)"},
    {"--kv-survives-engine", flag::to<&E::cache, &KvCacheOptions::survives_engine>,
     "CPUs: keep the KV cache in memory of the server's process, so that an engine that is killed loses no "
     "prefix (default: on)"},
    {"--kv-memory-file", flag::to<&E::cache, &KvCacheOptions::memory_file>,
     "CPUs: path in /dev/shm for the KV cache. A later server with the same path, model and cache size "
     "starts with the cached prefixes. The file contains prompts"},
    {"--prefix-caching-hash-algo",
     flag::chosen<kHashes, &E::cache, &KvCacheOptions::prefix_hash>,
     "Hash function of cached blocks: xxhash (fast, with a secret key) or sha256. builtin means xxhash; the "
     "suffix _cbor changes nothing",
     {},
     {.no_default = true}},
    {"--mamba-block-size", flag::to<&E::cache, &KvCacheOptions::mamba_block_size>,
     "Number of tokens between two states of recurrent layers that the prefix cache saves; must be a "
     "multiple of --block-size (default: 256)",
     flag::count(1, 1 << 28)},
    {"!--disable-hybrid-kv-cache-manager", flag::to<&E::cache, &KvCacheOptions::sliding_window_groups>,
     "Keep the KV of all tokens in sliding-window layers, also of tokens before the window"},
    {"--kv-events-config", flag::parsed<&parse_kv_events_config, &E::kv_events>,
     "Publish an event over ZeroMQ for each KV block that the prefix cache stores or removes, for routers. "
     R"(As JSON: {"enable_kv_cache_events": true, "endpoint": "tcp://*:5557", "replay_endpoint": )"
     R"("tcp://*:5558"})"},
    {kKvTransferFlag, flag::parsed<&parse_kv_transfer_config, &E::kv_transfer>,
     "Connector that sends KV blocks to a place outside of the KV cache and loads them from it: another "
     "engine (NixlConnector, for separate prefill and decode), host memory (OffloadingConnector), a disk "
     "(OffloadingConnector, SharedStorageConnector), or several of these (MultiConnector). As JSON: "
     R"({"kv_connector": "NixlConnector", "kv_role": "kv_both"})"},
};

constexpr EngineFlag kSessions[] = {
    {"--session-fraction", flag::to<&E::sessions, &SessionLimits::held_fraction>,
     "Maximum fraction of the KV blocks that sessions hold while no request needs them; 0: no sessions",
     flag::range(0.0, 1.0)},
    {"--session-pin-fraction", flag::to<&E::sessions, &SessionLimits::pinned_fraction>,
     "Maximum fraction of the KV blocks that are pinned; one tenant can pin at most half of that",
     flag::range(0.0, 0.9)},
    {"--session-ttl", flag::to<&E::sessions, &SessionLimits::ttl_s>,
     "Seconds without a request after which a session ends, if its requests set no other time",
     flag::range(1, 86'400)},
    {"--max-sessions", flag::to<&E::sessions, &SessionLimits::sessions_max>,
     "Maximum number of sessions of an engine; above this limit, the session that has paused longest ends",
     flag::range(1, 65'535)},
};

constexpr EngineFlag kScheduling[] = {
    {"--max-num-batched-tokens", flag::to<&E::schedule, &ScheduleOptions::max_num_batched_tokens>,
     "Maximum number of tokens in one step", flag::count(1, 1 << 20)},
    {"--max-num-seqs", flag::to<&E::schedule, &ScheduleOptions::max_num_seqs>,
     "Maximum number of sequences in one step", flag::count(1, 1 << 16)},
    {"--enable-chunked-prefill", flag::to<&E::schedule, &ScheduleOptions::enable_chunked_prefill>,
     "Split long prompts over several steps (default: on)"},
    {"--long-prefill-token-threshold", flag::to<&E::schedule, &ScheduleOptions::long_prefill_token_threshold>,
     "Maximum number of tokens of one prompt in a step; 0: no limit", flag::count(0, 1 << 20)},
    {"--watermark", flag::to<&E::schedule, &ScheduleOptions::watermark>,
     "Fraction of the KV blocks that must stay free when a request is admitted", flag::range(0.0, 0.5)},
    {"--scheduling-policy",
     flag::chosen<kPolicies, &E::schedule, &ScheduleOptions::policy>,
     "Order of waiting requests: fcfs (first come, first served), priority, or lpm (longest cached prefix "
     "first)",
     {},
     {.no_default = true}},
    {"--speculative-config", flag::parsed<&parse_speculative_config, &E::speculation>,
     "Propose draft tokens and check several of them in one step; answers do not change. As JSON: "
     R"({"model": "path/of/a/draft-model", "num_speculative_tokens": 4}, {"method": "suffix"} or )"
     R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2})"},
    {"--max-num-queued-reqs", flag::to<&E::max_queued>,
     "Maximum number of waiting requests; a request above this limit gets status 429",
     flag::count(0, 1 << 23)},
};

constexpr EngineFlag kLora[] = {
    {"--enable-lora", flag::to<&E::lora, &LoraOptions::enabled>,
     "Serve LoRA adapters; a request selects an adapter with its field `model`"},
    {"--max-loras", flag::to<&E::lora, &LoraOptions::max_loras>,
     "Maximum number of adapters in memory; one batch can use all of them", flag::range(1, 1024)},
    {"--max-cpu-loras", flag::to<&E::lora, &LoraOptions::max_cpu_loras>,
     "Maximum number of adapters in CPU memory, at least --max-loras. The server reads other adapters from "
     "disk again when a request needs them",
     flag::range(1, 1024)},
    {"--default-mm-loras", flag::parsed<&read_media_adapters, &E::lora>,
     R"(Adapters that chats with images, videos or sound use by default, as JSON: {"image": "folder"}; )"
     "needs --enable-lora. A request can also set its model to image, video or audio"},
    {"--max-lora-rank", flag::to<&E::lora, &LoraOptions::max_lora_rank>,
     "Maximum rank of an adapter. Every adapter takes the memory of one with this rank", flag::range(1, 512)},
};

constexpr EngineFlag kMultimodal[] = {
    {"--limit-mm-per-prompt", flag::parsed<&read_media_limits, &E::media>,
     R"(Maximum number of images, videos and sounds in one prompt, as JSON: {"image": 4, "video": 1, )"
     R"("audio": 1}. With 0, the server does not load the encoder)"},
    {"--language-model-only", flag::calls<&drop_media>,
     "Do not load the encoders of images, videos and sound; prompts can contain only text"},
};

constexpr EngineFlag kSampling[] = {
    {"--max-logprobs", flag::to<&E::logprobs, &LogprobOptions::max>,
     "Maximum number of log-probabilities per token that a request can ask for; -1: no limit",
     flag::range(-1, 1 << 20)},
    {"--logprobs-mode",
     flag::chosen<kLogprobsModes, &E::logprobs, &LogprobOptions::processed>,
     "Which log-probabilities to return: raw_logprobs (before temperature, penalties and filters) or "
     "processed_logprobs (after them)",
     {},
     {.no_default = true}},
};

constexpr EngineFlag kMetrics[] = {
    {"--kv-cache-metrics", flag::to<&E::metrics, &MetricsOptions::kv_cache>,
     "Measure how long KV blocks stay in the cache: vllm:kv_block_lifetime_seconds, "
     "vllm:kv_block_idle_before_evict_seconds, vllm:kv_block_reuse_gap_seconds"},
    {"--kv-cache-metrics-sample", flag::to<&E::metrics, &MetricsOptions::kv_cache_sample>,
     "Fraction of the KV blocks that --kv-cache-metrics measures", flag::range(1e-6, 1.0)},
    {"--enable-mfu-metrics", flag::to<&E::metrics, &MetricsOptions::work>,
     "Estimate the number of operations and bytes of all steps: vllm:estimated_flops_per_gpu_total, "
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
  add_flags(command, options, "Sessions", kSessions);
}

namespace {

namespace fs = std::filesystem;

// Returns the folders of the program and of the library that contains this function, and all their parents.
std::vector<fs::path> folders_of_code() {
  std::error_code ignored;
  std::vector<fs::path> folders;
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&demo_model_dir), &here);
  // Looks in the library's folder first: the program may be a Python interpreter, whose folder may contain
  // another version of Octavo.
  for (const fs::path& code : {fs::canonical(here.dli_fname ? here.dli_fname : "", ignored),
                               fs::read_symlink("/proc/self/exe", ignored)})
    for (fs::path p = code.parent_path(); p.has_relative_path(); p = p.parent_path()) folders.push_back(p);
  return folders;
}

}  // namespace

Result<std::string> demo_model_dir() {
  std::error_code ignored;
  std::vector<fs::path> roots = {fs::current_path(ignored)};
  for (const fs::path& folder : folders_of_code()) {
    roots.push_back(folder);
    roots.push_back(folder / "share" / "octavo");
  }
#ifdef OCTAVO_SOURCE_DIR
  roots.emplace_back(OCTAVO_SOURCE_DIR);
#endif
  for (const fs::path& root : roots) {
    const fs::path dir = root / "models" / "demo";
    if (fs::exists(dir / "config.json", ignored)) return dir.string();
  }
  return field_failure(
      "model", ErrorCode::not_found,
      "no model was given, and the folder of the demo model (models/demo) was not found: name a model");
}

Result<std::string> octavo_program() {
  std::error_code ignored;
  for (const fs::path& folder : folders_of_code())
    for (const fs::path& program : {folder / "octavo", folder / "bin" / "octavo"})
      if (fs::is_regular_file(program, ignored)) return program.string();
  return failure(ErrorCode::not_found,
                 "engines in separate processes need the program octavo, but it is neither in the folder of "
                 "liboctavo nor in ../bin: install it there");
}

}  // namespace octavo
