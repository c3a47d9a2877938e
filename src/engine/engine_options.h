// Everything about an engine that somebody can choose. Filled in by app/, passed down; nothing below reads
// the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.h"
#include "schedule/options.h"
#include "speculate/ngram_proposer.h"

namespace octavo {

struct EngineOptions {
  std::string model_dir;
  std::string device = "auto";  // auto (cuda where there is one, else cpu), cpu, cuda or reference
  std::string dtype = "auto";   // of the weights
  // Of plain matrices, when they are loaded: none, int8 or int4; or the checkpoint's own method, as it is.
  std::string quantization = "none";
  bool enforce_eager = false;        // GPUs: no recordings (CUDA graphs) of decoding steps
  bool async_scheduling = true;      // GPUs: a step begins before the last one's tokens are known
  int threads = 0;                   // CPU compute threads; 0: as many as this process may use
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

  int max_num_batched_tokens = 2048;
  int max_num_seqs = 128;
  int long_prefill_token_threshold = 0;
  bool enable_chunked_prefill = true;
  double watermark = 0.0;
  Policy policy = Policy::fcfs;

  std::optional<NgramOptions> speculation;  // nullopt: none

  int max_unfinished = 4096;  // answers accepted and not finished, running ones included
  int max_logprobs = 20;      // of one request; -1: the whole vocabulary
  bool processed_logprobs = false;
};

}  // namespace octavo
