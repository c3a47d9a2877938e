// Options of an engine. src/app sets them from command-line flags, and src/engine/load reads them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/hash.h"
#include "dist/rank_layout.h"
#include "engine/cache/session_limits.h"
#include "engine/draft/options.h"
#include "engine/expert_balancing.h"
#include "events/kv_event_options.h"
#include "schedule/options.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

struct LoraOptions {
  bool enabled = false;
  int max_loras = 1;
  int max_lora_rank = 16;
  std::optional<int> max_cpu_loras;  // maximum number of adapters in host memory; nullopt: max_loras
  // Adapter that a prompt with media uses: folder of the adapter by type of media.
  std::map<std::string, std::string> by_media{};

  // Returns the number of adapters for which there is memory. All of them can be in one batch.
  int in_memory() const { return enabled ? std::max(max_loras, max_cpu_loras.value_or(0)) : 0; }
};

// The hosts on which the engine's ranks run. Each host runs the same number of ranks.
struct NodeOptions {
  int count = 1;
  int rank = 0;                           // index of this host; host 0 runs the server
  std::string master_addr = "127.0.0.1";  // address at which the other hosts reach host 0
  int master_port = 29'501;
  // Seconds after which a rank that does not respond counts as hung. 0: chosen automatically.
  int timeout_s = 0;
  // Number of engines that share experts, over all servers.
  int expert_engines = 1;
  // The ranks of all engines that share experts connect to engine 0 at this address.
  std::string expert_address = "127.0.0.1";
  int expert_port = 0;
};

// Set if mpirun has started this process.
struct MpiProcess {
  int rank = 0;
  int of_host = 1;  // processes that mpirun started on this host
};

struct LogprobOptions {
  int max = 20;            // maximum number of logprobs per request; -1: the whole vocabulary
  bool processed = false;  // true: logprobs after temperature, penalties and other sampling parameters
};

// Optional statistics. Each of them makes every step slightly slower.
struct MetricsOptions {
  bool kv_cache = false;
  double kv_cache_sample = 0.01;  // fraction of the blocks that are measured, in (0, 1]
  bool work = false;
};

inline constexpr const char* kNoMmproj = "none";  // a value of ModelOptions::mmproj

struct ModelOptions {
  std::string dir;
  std::string weights_dir;  // folder of the weights; empty: the same as dir
  // File with the image encoder of a GGUF model. kNoMmproj: no file. Empty: the program may look for one.
  std::string mmproj;
  // auto, hf, safetensors or pt: reads the files of the folder. dummy: generates weights (weights/dummy.h).
  std::string load_format = "auto";
  std::string dtype = "auto";  // data type of the weights; auto: the data type of the checkpoint
  // int8 or int4: quantises unquantised matrices while loading. none: keeps them unquantised. Another
  // method's name is accepted if the checkpoint uses that method.
  std::string quantization = "none";
  bool fp8_activations = false;  // LoadOptions::fp8_activations
  std::string hf_overrides;      // JSON object whose fields replace fields of config.json
  // maximum number of tokens of a sequence; nullopt: the limit of the model
  std::optional<int> max_model_len;
  std::string runner = "auto";  // auto, generate or pooling; auto depends on the model
  // converts a generating model to a pooling model: auto, none, embed or classify
  std::string convert = "auto";
  bool prompt_embeds = false;
  std::string weight_cache_dir;  // CPUs: folder for converted weights; empty: none
  bool late = false;             // the engine may start before all matrices are converted (LoadOptions::late)
  std::string pooling_type;      // CLS, LAST, MEAN or ALL, for pooling models; empty: from the model's files

  // Returns the path of the mmproj file, or "".
  std::string mmproj_file() const { return mmproj == kNoMmproj ? "" : mmproj; }
};

struct DeviceOptions {
  std::string type = "auto";  // auto (cuda if available, else cpu), cpu, cuda or reference
  // local, simulated, simulated=NAME or simulated=FILE. A simulated engine loads no weights and computes
  // nothing. Its steps take as long as on the device NAME (timing/roofline.h), or as long as the
  // coefficients in FILE predict.
  std::string executor = "local";
  bool enforce_eager = false;    // GPUs: no CUDA graphs
  bool async_scheduling = true;  // GPUs: launch a step before the tokens of the previous step are known
  // Fraction of the device memory for weights, workspaces and KV cache. Ignored on devices without separate
  // memory.
  double gpu_memory_utilization = 0.9;
  // GPUs: weights in host memory (HostWeights). Number of layers with their experts there, or -1 (auto), and
  // GiB of further weights.
  int expert_layers_on_host = 0;
  double weights_on_host_gb = 0;
  // Number of CPU compute threads of all engines and ranks together. 0: one for each processor that this
  // process may use.
  int threads = 0;
  // Processors for each engine process on this host, as lists such as "0-3|4-7", ordered by engine, then by
  // rank. Empty: any processors.
  std::string processors;
};

// Parallelism: how engines and ranks divide the model.
struct ParallelOptions {
  int data_parallel_size = 1;  // engines in this server; they share its processors and memory
  // Each rank is a separate process. With tensor parallelism, each rank has a part of every layer. With
  // pipeline parallelism, each stage has complete layers.
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  // true: each rank has complete experts. false: each rank has a part of every expert.
  bool enable_expert_parallel = false;
  ExpertBalancing expert_balancing;
  NodeOptions nodes;
  std::optional<MpiProcess> mpi;  // nullopt: mpirun did not start this process

  RankLayout rank_layout() const {
    return {.tensor = tensor_parallel_size, .pipeline = pipeline_parallel_size};
  }
  // Returns whether the ranks of several engines share experts. Such engines run their steps in lockstep.
  bool shares_experts() const { return nodes.expert_engines > 1; }
  int ranks_of_host() const { return mpi ? mpi->of_host : rank_layout().size() / nodes.count; }
};

struct KvCacheOptions {
  std::string dtype = "auto";  // auto: the data type of the activations
  // If num_blocks is not set, it is computed from memory_bytes.
  std::int64_t memory_bytes = 0;  // 0: depends on the available memory
  std::optional<int> num_blocks;
  int block_size = 16;
  bool sliding_window_groups = true;  // false: layers with a sliding window keep all tokens
  bool enable_prefix_caching = true;
  bool survives_engine =
      true;  // true: if the engine process is killed, the next engine process reuses the blocks (KeptCache)
  // File for the blocks on a file system in memory (such as /dev/shm), so that the next server reuses the
  // blocks. Empty: the blocks are freed when the server ends.
  std::string memory_file;
  HashAlgorithm prefix_hash = HashAlgorithm::xxh3_128;
  // Recurrent layers: number of tokens between two saved states in the prefix cache; a multiple of the
  // block size. nullopt: 256, or the block size if it is larger.
  std::optional<int> mamba_block_size;
};

// Maximum number of images, videos and sounds in a prompt. If a limit is 0, its encoder is not loaded.
// Images and videos use the same encoder.
struct MediaLimits {
  int images = 999, videos = 999, sounds = 999;
};

struct EngineOptions {
  int index = 0;
  // number of engines in servers with a lower rank; EngineInfo::index is first_index + index
  int first_index = 0;
  std::uint64_t seed = 0;  // seed for requests without a seed
  ModelOptions model;
  DeviceOptions device;
  ParallelOptions parallel;
  KvCacheOptions cache;
  KvEventOptions kv_events;
  KvTransferOptions kv_transfer;
  ScheduleOptions schedule;
  int max_queued = 4096;  // maximum number of waiting sequences, in addition to max_num_seqs running ones
  std::optional<SpeculativeOptions> speculation;  // nullopt: no speculative decoding
  LoraOptions lora;
  MediaLimits media;
  LogprobOptions logprobs;
  MetricsOptions metrics;
  SessionLimits sessions;
};

}  // namespace octavo
