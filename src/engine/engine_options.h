// Everything about an engine that somebody can choose. Filled in by app/, passed down; nothing below reads
// the environment.
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
  std::optional<int> max_cpu_loras;  // nullopt: max_loras
  std::map<std::string, std::string> by_media{};  // folders of those that prompts with images, videos or sounds have

  // All of them can be in one batch.
  int in_memory() const { return enabled ? std::max(max_loras, max_cpu_loras.value_or(0)) : 0; }
};

// The hosts of an engine's ranks, each with equally many of them.
struct NodeOptions {
  int count = 1;
  int rank = 0;  // of this host; 0 has the server
  std::string master_addr = "127.0.0.1";  // of host 0, where the others find it
  int master_port = 29'501;
};

// Of a process among those that mpirun has started.
struct MpiPlace {
  int rank = 0;
  int of_host = 1;  // how many of them are on this host
};

struct EngineOptions {
  int index = 0;               // among the engines behind one server
  int first_index = 0;         // how many are behind servers before this one; EngineInfo::index counts them
  int data_parallel_size = 1;  // how many these are; they share processors and memory
  std::string model_dir;
  std::string weights_dir;  // that the weights are read from, in place of model_dir's; "": model_dir's
  // auto: files, as found (hf, safetensors and pt say the same); dummy: weights are made up (weights/dummy.h).
  std::string load_format = "auto";
  std::string device = "auto";  // auto (cuda where there is one, else cpu), cpu, cuda or reference
  std::string dtype = "auto";   // of the weights
  std::string runner = "auto";  // auto (what the model is made for), generate or pooling
  std::string convert = "auto";  // what models that generate become: auto, none, embed or classify
  std::string pooling_type;  // CLS, LAST, MEAN or ALL: of models that read texts; "": as their files say
  std::string hf_overrides;  // JSON: fields of config.json that have other values; "": none
  // local; or simulated, simulated=NAME, simulated=FILE: steps take as long as they would on a device of that
  // name (timing/roofline.h), or by the coefficients in that file, and nothing is loaded or computed.
  std::string executor = "local";
  // Of plain matrices, when they are loaded: none, int8 or int4; or the checkpoint's own method, as it is.
  std::string quantization = "none";
  bool enforce_eager = false;    // GPUs: no recordings (CUDA graphs) of decoding steps
  bool async_scheduling = true;  // GPUs: a step begins before the last one's tokens are known
  int threads = 0;  // CPU compute threads, of all engines and ranks; 0: as many as this process may use
  // Which processors each process of the engines runs on, on this host: lists such as "0-3|4-7", engine by
  // engine and in each rank by rank. "": any.
  std::string processors;
  // CPUs: ranks, each a process: those that share every layer, and stages of layers.
  int tensor_parallel_size = 1;
  int pipeline_parallel_size = 1;
  bool enable_expert_parallel = false;  // ranks of a stage have some experts each, not a part of each
  ExpertBalancing expert_balancing;     // then
  NodeOptions nodes;
  std::optional<MpiPlace> mpi;    // nullopt: mpirun has not started this process
  int distributed_timeout_s = 0;  // a rank that others wait for longer is taken for hung; 0: chosen
  std::optional<int> max_model_len;  // nullopt: what the model was made for
  std::uint64_t seed = 0;            // for requests that bring none

  std::string kv_cache_dtype = "auto";  // auto: as the activations
  // The number of KV blocks follows from the bytes, unless it is given.
  std::int64_t kv_cache_memory_bytes = 0;  // 0: chosen from the memory that is there
  double gpu_memory_utilization = 0.9;     // of a device with memory of its own, everything included
  std::optional<int> num_blocks;
  int block_size = 16;
  bool sliding_window_groups = true;  // false: windowed layers keep their whole context
  bool enable_prefix_caching = true;
  HashAlgorithm prefix_hash = HashAlgorithm::xxh3_128;
  // Tokens between the states of recurrent layers that the prefix cache keeps, whole blocks; nullopt: 256 or
  // a block.
  std::optional<int> mamba_block_size;
  KvEventOptions kv_events;
  KvTransferOptions kv_transfer;

  int max_num_batched_tokens = 2048;
  int max_num_seqs = 128;
  int long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true;
  double watermark = 0.0;
  Policy policy = Policy::fcfs;

  // Of one prompt; 0: what encodes them is not loaded. Images and videos have one encoder.
  int images_max = 999, videos_max = 999, sounds_max = 999;

  std::optional<SpeculativeOptions> speculation;  // nullopt: none
  LoraOptions lora;

  int max_queued = 4096;  // answers accepted beyond the max_num_seqs that run
  int max_logprobs = 20;  // of one request; -1: the whole vocabulary
  bool processed_logprobs = false;

  RankLayout rank_layout() const { return {.tensor = tensor_parallel_size, .pipeline = pipeline_parallel_size}; }
  int ranks_of_host() const { return mpi ? mpi->of_host : rank_layout().size() / nodes.count; }
};

}  // namespace octavo
