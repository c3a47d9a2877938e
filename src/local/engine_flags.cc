#include "local/engine_flags.h"

#include <dlfcn.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <filesystem>
#include <map>

#include "local/numbers.h"
#include "local/speculative_config.h"

namespace octavo {
namespace {

const std::map<std::string, Policy> kPolicies = {
    {"fcfs", Policy::fcfs},
    {"priority", Policy::priority},
    {"lpm", Policy::longest_prefix},
};
const std::map<std::string, HashAlgorithm> kHashes = {
    {"xxhash", HashAlgorithm::xxh3_128},
    {"sha256", HashAlgorithm::sha256},
    {"xxhash_cbor", HashAlgorithm::xxh3_128},
    {"sha256_cbor", HashAlgorithm::sha256},
};

// "auto" and "-1" are no limit.
std::optional<int> model_length(const std::string& text) {
  constexpr int kMost = 1 << 28;
  if (text == "auto" || text == "-1") return std::nullopt;
  const std::string digits = expand_suffix(text);
  int length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc{} || end != digits.data() + digits.size() || length < 1 || length > kMost)
    throw CLI::ValidationError("--max-model-len",
                               fmt::format("must be auto or 1 to {}, got {}", kMost, text));
  return length;
}

// A flag whose values have names.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, Value& value,
                        const std::map<std::string, Value>& choices, const std::string& help) {
  return command
      .add_option_function<std::string>(
          flag, [&value, &choices](const std::string& name) { value = choices.at(name); }, help)
      ->check(CLI::IsMember(choices));
}

// A limit per media type: {"image": 4} or {"image": {"count": 4}}.
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

Result<> read_media_limits(const std::string& text, EngineOptions& o) {
  boost::system::error_code not_json;
  const boost::json::value value = boost::json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("", "must be a JSON object");
  TRY_VOID(read_media_limit(value.get_object(), "image", o.images_max));
  TRY_VOID(read_media_limit(value.get_object(), "video", o.videos_max));
  return read_media_limit(value.get_object(), "audio", o.sounds_max);
}

Result<> read_media_adapters(const std::string& text, LoraOptions& lora) {
  boost::system::error_code not_json;
  const boost::json::value value = boost::json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("", "must be a JSON object");
  for (const auto& [kind, folder] : value.get_object()) {
    const std::string_view name = kind;
    if (name != "image" && name != "video" && name != "audio")
      return invalid("", "{}: must be image, video or audio", name);
    if (!folder.is_string() || folder.get_string().empty()) return invalid("", "{} must be the path of a folder", name);
    lora.by_media[std::string(name)] = std::string(folder.get_string());
  }
  return {};
}

}  // namespace

void add_engine_flags(CLI::App& command, EngineOptions& o) {
  const CLI::Validator suffix(
      [](std::string& text) {
        text = expand_suffix(text);
        return std::string();  // nothing to object to; the range check follows
      },
      "");
  command.add_option(
      "model,--model", o.model_dir,
      "Folder of the checkpoint, a GGUF file (of several the first), or a name of the Hugging Face hub: "
      "org/name[@revision], org/name:Q4_K_M; the demo model when left out");
  command
      .add_option("--quantization", o.quantization,
                  "Quantise matrices of plain numbers while loading: int8 (a scale a row) or int4 (groups of "
                  "up to 128); the checkpoint's own method (gptq, awq ..) may be named and changes nothing")
      ->capture_default_str()
      ->group("Model");
  command
      .add_option("--load-format", o.load_format,
                  "auto: safetensors, else PyTorch's files (hf, safetensors and pt say the same), or a GGUF file; dummy: "
                  "config.json alone is read and the weights are made up, to measure with")
      ->check(CLI::IsMember({"auto", "hf", "safetensors", "pt", "dummy"}))
      ->capture_default_str()
      ->group("Model");
  command
      .add_option(
          "--runner", o.runner,
          "generate: the model continues texts; pooling: it makes vectors or scores of them; auto: as "
          "its files say")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "generate", "pooling"}))
      ->group("Model");
  command
      .add_option(
          "--convert", o.convert,
          "What a model that generates becomes: embed (vectors of texts), classify (scores of labels, by its "
          "matrix \"score\" or the tokens of classifier_from_token), none; auto: as its files and --runner "
          "say")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "none", "embed", "classify"}))
      ->group("Model");
  command
      .add_option("--hf-overrides", o.hf_overrides,
                  "JSON: fields of config.json that have other values, as {\"rope_theta\": 1000000}")
      ->group("Model");
  command.add_option("--dtype", o.dtype, "auto, bfloat16, float16 or float32")
      ->check(CLI::IsMember({"auto", "bfloat16", "float16", "float32", "half", "float"}))
      ->group("Model");
  command
      .add_option_function<std::string>(
          "--max-model-len", [&o](const std::string& text) { o.max_model_len = model_length(text); },
          "Tokens of prompt and answer together; auto, -1 or left out: the model's own limit, or less where "
          "the KV cache is smaller")
      ->group("Model");
  command.add_option("--seed", o.seed, "Seed for requests that bring none")
      ->capture_default_str()
      ->group("Model");

  command
      .add_option(
          "--device", o.device,
          "auto (cuda where there is one, else cpu), cpu, cuda, or reference (plain loops, for checking)")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "reference"}))
      ->capture_default_str()
      ->group("Device");
  command
      .add_option("--executor", o.executor,
                  "local, or simulated: no weights, steps take as long as the model's would on an H100, on "
                  "another device (simulated=a100-80g) or by a file of coefficients (simulated=timing.json)")
      ->capture_default_str()
      ->group("Device");
  command.add_flag("--enforce-eager", o.enforce_eager, "GPUs: no CUDA graphs for decoding")->group("Device");
  command
      .add_flag("--async-scheduling", o.async_scheduling,
                "GPUs: begin a step before the tokens of the last are known (default: on; off with "
                "--speculative-config)")
      ->group("Device");
  command.add_option("--cpu-threads", o.threads, "Compute threads; as many as this process may use when 0")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group("Device");

  command.add_option("--nnodes", o.nodes.count, "Hosts that have the ranks of the engine, equally many each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Device");
  command
      .add_option("--node-rank", o.nodes.rank,
                  "Which of them this is; 0 has the server, the others need the same model and flags")
      ->check(CLI::Range(0, 63))
      ->capture_default_str()
      ->group("Device");
  command.add_option("--master-addr", o.nodes.master_addr, "Where the others find host 0")
      ->capture_default_str()
      ->group("Device");
  command.add_option("--master-port", o.nodes.master_port, "And at which port")
      ->check(CLI::Range(1, 65'535))
      ->capture_default_str()
      ->group("Device");
  command
      .add_option("--distributed-timeout-seconds", o.distributed_timeout_s,
                  "A rank that others wait for longer is taken for hung; 10, or 120 with several stages, when 0")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str()
      ->group("Device");
  command
      .add_option("--pipeline-parallel-size", o.pipeline_parallel_size,
                  "Stages that have some layers each, on CPUs; of --tensor-parallel-size processes each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Device");
  command
      .add_flag("--enable-expert-parallel", o.enable_expert_parallel,
                "The processes that share a layer have some of its experts each, not a part of each expert")
      ->group("Device");
  command
      .add_flag("--enable-eplb", o.expert_balancing.enabled,
                "With --enable-expert-parallel: experts move between these processes while they serve, so "
                "that all have "
                "as much to do")
      ->group("Device");
  command
      .add_option_function<std::string>(
          "--eplb-config",
          [&o](const std::string& json) {
            if (const auto read = read_eplb_config(json, o.expert_balancing); !read)
              throw CLI::ValidationError("--eplb-config", read.error().field + " " + read.error().message);
          },
          "How. As JSON: the steps whose tokens count, those between two plans, places beside one for each "
          "expert: "
          R"({"window_size": 1000, "step_interval": 3000, "num_redundant_experts": 0})")
      ->group("Device");
  command
      .add_option("--tensor-parallel-size", o.tensor_parallel_size,
                  "Processes that hold a part of every layer each, on CPUs; they share the compute threads")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Device");

  command
      .add_option(
          "--data-parallel-size", o.data_parallel_size,
          "Engines with the whole model each behind one server, on CPUs; they share the compute threads")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->group("Device");
  command.add_option(kEngineIndexFlag, o.index)->group("");
  command.add_option(kWeightsFlag, o.weights_dir)->group("");

  command
      .add_option("--kv-cache-dtype", o.kv_cache_dtype,
                  "auto (as the activations), float16, bfloat16, fp8 (e4m3, scale 1) or int8_per_token_head")
      ->check(CLI::IsMember({"auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "int8_per_token_head"}))
      ->capture_default_str()
      ->group("KV cache");
  command.add_option("--block-size", o.block_size, "Tokens in a KV block, a multiple of 16")
      ->check(CLI::Range(16, 256))
      ->capture_default_str()
      ->group("KV cache");
  command
      .add_option("--kv-cache-memory-bytes", o.kv_cache_memory_bytes,
                  "Size of the KV cache; 0: chosen from the available memory")
      ->transform(suffix)
      ->check(CLI::NonNegativeNumber)
      ->group("KV cache");
  command
      .add_option("--gpu-memory-utilization,--device-memory-utilization", o.gpu_memory_utilization,
                  "Share of a GPU's memory to use, weights and workspaces included")
      ->check(CLI::Range(0.05, 1.0))
      ->capture_default_str()
      ->group("KV cache");
  command
      .add_option("--num-gpu-blocks-override", o.num_blocks,
                  "Number of KV blocks, instead of a size in bytes")
      ->transform(suffix)
      ->check(CLI::Range(1, 1 << 30))
      ->group("KV cache");
  command
      .add_flag("--enable-prefix-caching", o.enable_prefix_caching,
                "Reuse the KV of common prefixes (default: on)")
      ->group("KV cache");
  add_choice(command, "--prefix-caching-hash-algo", o.prefix_hash, kHashes,
             "xxhash (keyed, fast) or sha256; the forms with _cbor are the same")
      ->group("KV cache");
  command
      .add_option("--mamba-block-size", o.mamba_block_size,
                  "Tokens between the states of recurrent layers that the prefix cache keeps, a multiple of "
                  "--block-size (default: 256)")
      ->transform(suffix)
      ->check(CLI::Range(1, 1 << 28))
      ->group("KV cache");
  command
      .add_flag("!--disable-hybrid-kv-cache-manager", o.sliding_window_groups,
                "Keep the whole context of sliding-window layers")
      ->group("KV cache");

  command.add_option("--max-num-batched-tokens", o.max_num_batched_tokens, "Token budget of one step")
      ->transform(suffix)
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group("Scheduling");
  command.add_option("--max-num-seqs", o.max_num_seqs, "Sequences in one step")
      ->transform(suffix)
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str()
      ->group("Scheduling");
  command
      .add_flag("--enable-chunked-prefill", o.enable_chunked_prefill,
                "Long prompts are computed over several steps (default: on)")
      ->group("Scheduling");
  command
      .add_option("--long-prefill-token-threshold", o.long_prefill_token_threshold,
                  "Largest chunk of one prompt in a step; 0: no limit")
      ->transform(suffix)
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->group("Scheduling");
  command
      .add_option("--watermark", o.watermark, "Share of the KV blocks kept free when a new request is let in")
      ->check(CLI::Range(0.0, 0.5))
      ->capture_default_str()
      ->group("Scheduling");
  add_choice(command, "--scheduling-policy", o.policy, kPolicies,
             "fcfs, priority, or lpm (longest cached prefix first)")
      ->group("Scheduling");
  command
      .add_option_function<std::string>(
          "--speculative-config",
          [&o](const std::string& json) {
            const auto options = parse_speculative_config(json);
            if (!options)
              throw CLI::ValidationError("--speculative-config",
                                         options.error().field + " " + options.error().message);
            o.speculation = *options;
          },
          "Propose tokens and check several in a step; answers stay the same. As JSON: "
          R"({"model": "path/of/a/draft-model", "num_speculative_tokens": 4}, {"method": "suffix"} or )"
          R"({"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2})")
      ->group("Scheduling");
  command
      .add_option_function<std::string>(
          "--kv-events-config",
          [&o](const std::string& json) {
            const auto options = parse_kv_events_config(json);
            if (!options)
              throw CLI::ValidationError("--kv-events-config",
                                         options.error().field + " " + options.error().message);
            o.kv_events = *options;
          },
          "Publish what the prefix cache gains and loses over ZeroMQ, for routers. As JSON: "
          R"({"enable_kv_cache_events": true, "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558"})")
      ->group("KV cache");
  command
      .add_option_function<std::string>(
          "--kv-transfer-config",
          [&o](const std::string& json) {
            const auto options = parse_kv_transfer_config(json);
            if (!options)
              throw CLI::ValidationError("--kv-transfer-config",
                                         options.error().field + " " + options.error().message);
            o.kv_transfer = *options;
          },
          "Where KV blocks go to and come from, beside the cache: other engines (NixlConnector: prefill and decode "
          "apart), host memory (OffloadingConnector), a disk (OffloadingConnector, SharedStorageConnector), several of "
          "them (MultiConnector). As JSON: "
          R"({"kv_connector": "NixlConnector", "kv_role": "kv_both"})")
      ->group("KV cache");
  command
      .add_option("--max-num-queued-reqs", o.max_queued,
                  "Answers that may wait beyond those that run; more are refused with 429")
      ->transform(suffix)
      ->check(CLI::Range(0, 1 << 23))
      ->capture_default_str()
      ->group("Scheduling");

  command.add_flag("--enable-lora", o.lora.enabled, "Take LoRA adapters, which requests name as their model")
      ->group("LoRA");
  command
      .add_option("--max-loras", o.lora.max_loras,
                  "Adapters in memory at a time; all of them can be in one batch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group("LoRA");
  command
      .add_option("--max-cpu-loras", o.lora.max_cpu_loras,
                  "The same, where it is more; an adapter beyond that is read again when a request wants it")
      ->check(CLI::Range(1, 1024))
      ->group("LoRA");
  command
      .add_option_function<std::string>(
          "--default-mm-loras",
          [&o](const std::string& json) {
            if (const auto read = read_media_adapters(json, o.lora); !read)
              throw CLI::ValidationError("--default-mm-loras", read.error().message);
          },
          R"(Adapters that chats with images, videos or sound have when they name none, as JSON: {"image": "folder"}; needs )"
          R"(--enable-lora. Each is there by its kind's name, too)")
      ->group("LoRA");
  command
      .add_option("--max-lora-rank", o.lora.max_lora_rank,
                  "Greatest rank of an adapter; all are computed as of this one")
      ->check(CLI::Range(1, 512))
      ->capture_default_str()
      ->group("LoRA");

  command
      .add_option_function<std::string>(
          "--limit-mm-per-prompt",
          [&o](const std::string& json) {
            if (const auto read = read_media_limits(json, o); !read)
              throw CLI::ValidationError("--limit-mm-per-prompt", read.error().message);
          },
          R"(Images, videos and sounds that one prompt may have, as JSON: {"image": 4, "video": 1, "audio": 1}; with 0 what encodes them is not loaded)")
      ->group("Multimodal");
  command
      .add_flag_callback(
          "--language-model-only", [&o] { o.images_max = o.videos_max = o.sounds_max = 0; },
          "Do not load what encodes images, videos and sound: prompts are text alone")
      ->group("Multimodal");
  command
      .add_option("--max-logprobs", o.max_logprobs,
                  "Most log-probabilities a request may ask for; -1: no limit")
      ->check(CLI::Range(-1, 1 << 20))
      ->capture_default_str()
      ->group("Sampling");
  command
      .add_option_function<std::string>(
          "--logprobs-mode",
          [&o](const std::string& mode) { o.processed_logprobs = mode == "processed_logprobs"; },
          "raw_logprobs (the model's own) or processed_logprobs (after sampling parameters)")
      ->check(CLI::IsMember({"raw_logprobs", "processed_logprobs"}))
      ->group("Sampling");
}

Result<std::string> demo_model_dir() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> places = {fs::current_path(ignored)};
  Dl_info here{};  // this program, or the shared library that a program has loaded
  dladdr(reinterpret_cast<const void*>(&demo_model_dir), &here);
  for (const fs::path& code : {fs::read_symlink("/proc/self/exe", ignored),
                               fs::canonical(here.dli_fname ? here.dli_fname : "", ignored)})
    for (fs::path p = code.parent_path(); p.has_relative_path(); p = p.parent_path()) {
      places.push_back(p);
      places.push_back(p / "share" / "octavo");
    }
#ifdef OCTAVO_SOURCE_DIR
  places.emplace_back(OCTAVO_SOURCE_DIR);
#endif
  for (const fs::path& place : places) {
    const fs::path dir = place / "models" / "demo";
    if (fs::exists(dir / "config.json", ignored)) return dir.string();
  }
  return field_failure("model", ErrorCode::not_found,
                       "no model named, and the demo model (models/demo) was not found");
}

}  // namespace octavo
