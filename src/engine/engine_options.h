// User options of an engine. app/ sets them; lower layers do not read the environment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/hash.h"
#include "dist/rank_layout.h"
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
  std::optional<int> max_cpu_loras;  // number of adapters in host memory; nullopt: max_loras
  // For prompts with images, videos or sounds: folder of the adapter, by type of media.
  std::map<std::string, std::string> by_media{};

  // Returns the number of adapters in memory. All of them can be in one batch.
  int in_memory() const { return enabled ? std::max(max_loras, max_cpu_loras.value_or(0)) : 0; }
};

// Hosts of the engine's ranks. Each host runs the same number of ranks.
struct NodeOptions {
  int count = 1;
  int rank = 0;                           // rank of this host; host 0 runs the server
  std::string master_addr = "127.0.0.1";  // address of host 0 for the other hosts
  int master_port = 29'501;
  int timeout_s = 0;  // seconds after which a rank that does not respond counts as hung; 0: automatic
  // Address of engine 0, where the ranks of engines that share experts connect.
  int expert_engines = 1;  // number of engines that share experts, over all servers
  std::string expert_address = "127.0.0.1";
  int expert_port = 0;
};

// Rank of this process among all processes that mpirun has started.
struct MpiPlace {
  int rank = 0;
  int of_host = 1;  // number of processes that mpirun started on this host
};

struct LogprobOptions {
  int max = 20;            // maximum number of logprobs per request; -1: complete vocabulary
  bool processed = false;  // true: logprobs after the sampling parameters are applied
};

// Statistics that make each step a little slower.
struct MetricsOptions {
  bool kv_cache = false;          // collect KvResidencyStats
  double kv_cache_sample = 0.01;  // fraction of the blocks in the sample, in (0, 1]
  bool work = false;              // collect WorkStats
};

// Files of the model, and how they are read.
struct ModelOptions {
  std::string dir;
  std::string weights_dir;  // folder of the weights; "": dir
  // auto: the files in the folder (also: hf, safetensors, pt). dummy: generated weights (weights/dummy.h).
  std::string load_format = "auto";
  std::string dtype = "auto";  // data type of the weights; auto: as in the checkpoint
  // Quantisation of plain matrices while loading: none, int8 or int4. The name of another method is accepted
  // if the checkpoint uses this method.
  std::string quantization = "none";
  std::string hf_overrides;          // JSON object whose fields replace those of config.json; "": no changes
  std::optional<int> max_model_len;  // maximum number of tokens of a sequence; nullopt: the model's limit
  std::string runner = "auto";       // auto (depends on the model), generate or pooling
  std::string convert = "auto";      // conversion of generating models: auto, none, embed or classify
  bool prompt_embeds = false;        // accept prompts as embeddings
  std::string pooling_type;          // CLS, LAST, MEAN or ALL, for pooling models; "": from the model's files
};

// Device on which the engine computes, and its limits.
struct DeviceOptions {
  std::string type = "auto";  // auto (cuda if available, else cpu), cpu, cuda or reference
  // local, simulated, simulated=NAME or simulated=FILE. A simulated engine loads and computes nothing. The
  // duration of its steps is that of the device NAME (timing/roofline.h), or is computed from the
  // coefficients in FILE.
  std::string executor = "local";
  bool enforce_eager = false;    // GPUs: do not record decoding steps (CUDA graphs)
  bool async_scheduling = true;  // GPUs: start a step before the tokens of the previous step are known
  // Fraction of the device memory for weights, workspaces and KV cache. Only for devices with separate
  // memory.
  double gpu_memory_utilization = 0.9;
  int threads = 0;  // CPU compute threads of all engines and ranks; 0: all processors that this process may
                    // use
  // Processors of each engine process on this host: lists such as "0-3|4-7", in the order of engines, then of
  // ranks. "": any processors.
  std::string processors;
};

// The processes that compute one model.
struct ParallelOptions {
  int data_parallel_size = 1;  // number of engines in this server; they share its processors and memory
  // CPU ranks, each in a separate process. Tensor parallel: each rank has a part of every layer. Pipeline
  // parallel: each stage has some complete layers.
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  bool enable_expert_parallel = false;  // whether the ranks of a stage have complete experts instead of a
                                        // part of each expert
  ExpertBalancing expert_balancing;
  NodeOptions nodes;
  std::optional<MpiPlace> mpi;  // nullopt: mpirun did not start this process

  RankLayout rank_layout() const {
    return {.tensor = tensor_parallel_size, .pipeline = pipeline_parallel_size};
  }
  // Returns true if the ranks of several engines share the experts. Such engines run their steps at the same
  // time.
  bool shares_experts() const { return nodes.expert_engines > 1; }
  int ranks_of_host() const { return mpi ? mpi->of_host : rank_layout().size() / nodes.count; }
};

struct KvCacheOptions {
  std::string dtype = "auto";  // auto: the data type of the activations
  // memory_bytes determines the number of blocks, unless num_blocks is set.
  std::int64_t memory_bytes = 0;  // size of the KV cache in bytes; 0: depends on the available memory
  std::optional<int> num_blocks;
  int block_size = 16;
  bool sliding_window_groups = true;  // false: layers with a sliding window keep all tokens
  bool enable_prefix_caching = true;
  bool survives_engine =
      true;  // whether blocks of a killed engine process are used by the next one (KeptCache)
  // File in memory for the blocks, which the next server uses, too; "": blocks end with the server.
  std::string memory_file;
  HashAlgorithm prefix_hash = HashAlgorithm::xxh3_128;
  // Number of tokens between two saved states of recurrent layers in the prefix cache; a multiple of the
  // block size. nullopt: 256, or one block if blocks are larger.
  std::optional<int> mamba_block_size;
};

struct ScheduleOptions {
  int max_num_batched_tokens = 2048;
  int max_num_seqs = 128;
  int max_queued = 4096;  // maximum number of waiting answers, in addition to max_num_seqs running ones
  int long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true;
  double watermark = 0.0;
  Policy policy = Policy::fcfs;
};

// Maximum numbers of media in one prompt. 0: the encoder is not loaded. Images and videos share one encoder.
struct MediaLimits {
  int images = 999, videos = 999, sounds = 999;
};

struct EngineOptions {
  int index = 0;           // index of the engine in its server
  int first_index = 0;     // number of engines in earlier servers; part of EngineInfo::index
  std::uint64_t seed = 0;  // seed for requests without a seed
  ModelOptions model;
  DeviceOptions device;
  ParallelOptions parallel;
  KvCacheOptions cache;
  KvEventOptions kv_events;
  KvTransferOptions kv_transfer;
  ScheduleOptions schedule;
  std::optional<SpeculativeOptions> speculation;  // nullopt: no speculative decoding
  LoraOptions lora;
  MediaLimits media;
  LogprobOptions logprobs;
  MetricsOptions metrics;
};

}  // namespace octavo
