// Statistics of one engine: current gauges, and counters since the engine started.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "request/histogram.h"
#include "request/session.h"

namespace octavo {

inline constexpr int kDraftTokensMax = 32;  // maximum number of draft tokens per sequence and step

// Histogram of the number of tokens in a step, with vLLM's buckets.
inline Histogram step_token_histogram() {
  return Histogram({1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384});
}

struct StepRecord {
  std::int64_t number = 0;  // step number, from 1; 0: the record is empty
  int prompt_tokens = 0;
  int answer_tokens = 0;  // number of output and draft tokens
  int sequences = 0;
  std::int64_t kv_tokens = 0;  // number of cached positions that attention reads, over all sequences
  std::int64_t pairs = 0;      // number of (query, key) pairs in attention
  std::int64_t began_us = 0;   // start time (now_us), not before the end of the previous step
  // host time to prepare and run the forward pass, or to launch it on a device
  std::int64_t forward_us = 0;
  std::int64_t microseconds = 0;
};

// The last 256 steps. Step n has the index n % size().
using RecentSteps = std::array<StepRecord, 256>;

// A node of the prefix tree: a run of cached blocks without a branch.
struct PrefixNode {
  int parent = -1;  // index of the parent node, always lower than the node's own index; -1: a root
  int blocks = 0;
  int used = 0;    // number of blocks that running requests use
  int shared = 0;  // number of blocks that more than one request uses
};
inline constexpr std::size_t kPrefixNodesMax = 96;
struct PrefixTree {
  std::vector<PrefixNode> nodes;  // the nodes with the most blocks in their subtrees
  std::int64_t left_out = 0;      // number of nodes of the tree that are not in `nodes`
};

// Unfinished answers that use one LoRA adapter.
struct AdapterStats {
  std::string name;
  int running = 0;
  int waiting = 0;
};

// Reasons why KV blocks could not be loaded from another engine or a tier. The engine then computes
// the prompt itself.
enum class KvTransferFailure : std::uint8_t {
  unreachable,  // no response from the other engine's address
  expired,      // the other engine no longer has the blocks
  mismatch,     // different model, cache format, block size or prompt
  corrupt,      // a checksum or a message is wrong
  lost,         // the connection broke, or the other engine stopped responding
  no_blocks,    // this engine has no free blocks for the load
};
inline constexpr int kKvTransferFailures = 6;
inline constexpr std::array<std::string_view, kKvTransferFailures> kKvTransferFailureNames = {
    "unreachable", "expired", "mismatch", "corrupt", "lost", "no_blocks"};

// Source of the loaded KV of prompt tokens.
enum class KvSource : std::uint8_t {
  peer,
  host,  // the tier in host memory
  disk,  // the tier on a disk or in a store
};
inline constexpr int kKvSources = 3;
inline constexpr std::array<std::string_view, kKvSources> kKvSourceNames = {"peer", "host", "disk"};

// KV blocks received from other engines and sent to them. The buckets are those of vLLM's
// NixlConnector.
struct KvTransferStats {
  bool enabled = false;
  // gauge: blocks held for other engines, or loaded for requests that have not started
  int held_blocks = 0;
  // number of uncached prompt tokens that were looked up in other engines or tiers
  std::int64_t queries = 0;
  std::int64_t hits = 0;
  // Number of loaded prompt tokens of started answers, by KvSource.
  // EngineStats::tokens.prompt_cached includes them.
  std::array<std::int64_t, kKvSources> used_by_source{};
  Histogram seconds{
      {.005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5}};  // seconds per load from another engine
  Histogram bytes{{2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432, 134217728, 536870912, 2147483648,
                   8589934592}};
  Histogram blocks{{10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000}};
  std::array<std::int64_t, kKvTransferFailures> failures{};  // by KvTransferFailure
  std::int64_t expired = 0;  // number of leases that ended before another engine loaded the blocks
};

// A tier of KV blocks outside the KV cache: host memory, a disk or a store.
struct KvTierStats {
  bool enabled = false;
  bool off = false;         // gauge: whether an error has disabled the tier until the engine restarts
  std::int64_t blocks = 0;  // gauge: number of blocks in the tier
  std::int64_t block_bytes = 0;
  std::int64_t bytes_max = 0;
  std::int64_t stored_blocks = 0;
  std::int64_t stored_bytes = 0;
  double store_seconds = 0;
  std::int64_t loaded_bytes = 0;
  double load_seconds = 0;
  std::int64_t evicted_blocks = 0;
  // number of blocks that were not written because the tier was too slow
  std::int64_t dropped_stores = 0;
  // number of prompts that the engine computed because loading would have been slower
  std::int64_t skipped_loads = 0;
};

// Histogram for the lifetimes of sampled KV blocks, with vLLM's buckets.
inline Histogram residency_histogram() {
  return Histogram(
      {.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800});
}
struct KvResidencyStats {
  bool enabled = false;
  Histogram lifetime = residency_histogram();           // seconds from allocation to eviction
  Histogram idle_before_evict = residency_histogram();  // seconds from the last use to eviction
  Histogram reuse_gap = residency_histogram();          // seconds between two uses
};

// Estimated work of all steps on one device or CPU rank.
struct WorkStats {
  bool enabled = false;
  double operations = 0;  // floating-point operations
  double read_bytes = 0;
  double written_bytes = 0;
};

// Look-ups in the cache of encoded images and sounds.
struct MediaCacheStats {
  std::int64_t queries = 0;
  std::int64_t hits = 0;
};

// State of an engine's process. `starting`: the process restarts, and requests wait. `unloaded`: no
// process exists until EngineClient::load(), and requests wait. `away`: ranks on other hosts are
// missing, and requests are rejected.
enum class EnginePresence : std::uint8_t { up, starting, unloaded, away };

struct GrammarStats {
  std::int64_t cache_bytes = 0;  // size of the cache of compiled grammars
  std::int64_t cache_hits = 0;
  std::int64_t cache_misses = 0;
  std::int64_t compile_us = 0;
  std::int64_t masks = 0;
  std::int64_t mask_ns = 0;         // time to fill token masks during steps
  std::int64_t masks_deferred = 0;  // number of masks that were not ready in time
};

struct RequestStats {
  int unfinished = 0;
  int running = 0;
  int waiting = 0;
  // number of waiting answers whose grammar, adapter, images or KV blocks are not ready
  int deferred = 0;
  std::int64_t bytes = 0;  // memory of tokens, keys and block tables
};

struct BlockStats {
  int total = 0;
  int used = 0;    // blocks that belong to requests
  int cached = 0;  // free blocks whose content is kept for reuse
};

// Gauges that decide whether the engine answers requests.
struct EngineCondition {
  bool healthy = true;  // false: the engine's thread has failed permanently
  bool hangs = false;   // whether the current step makes no progress
  EnginePresence presence = EnginePresence::up;
  int sleep_level = 0;  // 0: awake; see EngineClient::sleep
  bool paused = false;  // see EngineClient::pause
};

struct TokenStats {
  std::int64_t prompt = 0;         // prompt tokens of answers that have started
  std::int64_t prompt_cached = 0;  // prompt tokens that were in the prefix cache
  std::int64_t generation = 0;
};

// KV blocks that a restarted engine found in memory (--kv-survives-engine). The counters restart
// when the memory is cleared.
struct KeptBlockStats {
  std::int64_t kept = 0;
  std::int64_t discarded = 0;
};

struct PrefixCacheStats {
  std::int64_t queries = 0;  // counter: number of tokens looked up
  std::int64_t hits = 0;
  PrefixTree tree{};  // the tree at the last call of EngineClient::look_at_prefixes()
  SessionStats sessions{};
};

struct DraftStats {
  std::int64_t drafts = 0;
  std::int64_t tokens = 0;
  // number of accepted draft tokens, by position in the draft
  std::array<std::int64_t, kDraftTokensMax> accepted = {};
};

// Time that the engine's thread spends in steps. AnswerCost divides this time among the answers.
struct CostStats {
  std::int64_t compute_ns = 0;
  // the part of compute_ns for steps whose answers had all ended before the step ended
  std::int64_t unassigned_ns = 0;
  bool energy = false;  // whether the processors' energy counters can be read
};

struct EngineStats {
  int engine = 0;  // EngineInfo::index
  RequestStats requests{};
  std::vector<AdapterStats> adapters;  // only adapters with unfinished answers
  BlockStats blocks{};
  EngineCondition condition{};

  TokenStats tokens{};
  PrefixCacheStats prefix_cache{};
  KeptBlockStats kept_blocks{};
  std::int64_t preemptions = 0;
  DraftStats drafts{};
  GrammarStats grammars{};
  Histogram step_tokens = step_token_histogram();
  RecentSteps recent_steps = {};
  KvTransferStats kv_transfer{};
  KvTierStats kv_host_tier{};
  KvTierStats kv_tier{};  // the tier on a disk or in a store
  KvResidencyStats kv_residency{};
  WorkStats work{};
  CostStats costs{};
  MediaCacheStats media_cache{};
};

}  // namespace octavo
