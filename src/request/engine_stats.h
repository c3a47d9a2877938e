// What one engine tells about itself: gauges of this moment, counters since its start.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "request/histogram.h"

namespace octavo {

inline constexpr int kDraftTokensMax = 32;  // draft tokens of one sequence in a step

// Tokens in a step, in vLLM's buckets.
inline Histogram step_token_histogram() {
  return Histogram({1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384});
}

// Work and time of one step.
struct StepRecord {
  std::int64_t number = 0;  // 0: no such step
  int prompt_tokens = 0;
  int answer_tokens = 0;  // draft tokens included
  int sequences = 0;
  std::int64_t kv_tokens = 0;  // cached positions read: the length of each sequence after the step
  std::int64_t pairs = 0;      // (query, key) pairs of attention
  std::int64_t began_us = 0;   // of now_us(); no earlier than the end of the step before it
  std::int64_t forward_us = 0;  // of the host: packing and the forward pass, or its launch on a device
  std::int64_t microseconds = 0;
};

// The last steps; step n is at n % size().
using RecentSteps = std::array<StepRecord, 256>;

// Blocks of the prefix cache that follow one another without a fork.
struct PrefixNode {
  int parent = -1;  // index of the node that they follow, lower than this one's; -1: they begin a text
  int blocks = 0;
  int used = 0;    // by running requests
  int shared = 0;  // by more than one
};
inline constexpr std::size_t kPrefixNodesMax = 96;
struct PrefixTree {
  std::vector<PrefixNode> nodes;  // those with the most blocks in and after them
  std::int64_t left_out = 0;      // further ones
};

// Unfinished answers of one LoRA adapter.
struct AdapterStats {
  std::string name;
  int running = 0;
  int waiting = 0;
};

// Why blocks of another engine or of a tier were not taken: the prompt was computed here instead.
enum class KvTransferFailure : std::uint8_t {
  unreachable,  // no answer from that address
  expired,      // the other engine does not hold the blocks any more
  mismatch,     // another model, format of the cache, block size or prompt
  corrupt,      // a checksum or a message is wrong
  lost,         // the connection broke, or the other engine fell silent
  no_blocks,    // this engine has no free blocks for them
};
inline constexpr int kKvTransferFailures = 6;
inline constexpr std::array<std::string_view, kKvTransferFailures> kKvTransferFailureNames = {
    "unreachable", "expired", "mismatch", "corrupt", "lost", "no_blocks"};

// KV blocks fetched and handed over. Buckets are those of vLLM's NixlConnector.
struct KvTransferStats {
  bool enabled = false;
  int held_blocks = 0;  // gauge: for other engines, and loaded for waiting requests
  std::int64_t queries = 0;                                      // prompt tokens asked for and not cached here
  std::int64_t hits = 0;                                         // of those, fetched
  Histogram seconds{
      {.005, .01, .025, .05, .075, .1, .2, .3, .5, .75, 1, 5}};  // of a fetch from another engine
  Histogram bytes{{2048, 8192, 32768, 131072, 524288, 2097152, 8388608, 33554432, 134217728, 536870912, 2147483648,
                   8589934592}};
  Histogram blocks{{10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000}};
  std::array<std::int64_t, kKvTransferFailures> failures{};  // by KvTransferFailure
  std::int64_t expired = 0;  // leases that ended before an engine took the blocks
};

// A tier of KV blocks: host memory, a disk or a store.
struct KvTierStats {
  bool enabled = false;
  bool off = false;              // gauge: after an error, until the engine is started again
  std::int64_t blocks = 0;       // gauge: stored
  std::int64_t block_bytes = 0;  // of one block in the tier
  std::int64_t bytes_max = 0;
  std::int64_t stored_blocks = 0;
  std::int64_t stored_bytes = 0;
  double store_seconds = 0;
  std::int64_t loaded_bytes = 0;
  double load_seconds = 0;
  std::int64_t evicted_blocks = 0;
  std::int64_t dropped_stores = 0;  // blocks that were not written because the tier is slow
  std::int64_t skipped_loads = 0;   // prompts whose blocks were computed because that is faster
};

// State of an engine's process. starting: requests wait for the restart. away: ranks on other hosts are
// missing, and requests are refused.
enum class EnginePresence : std::uint8_t { up, starting, away };

struct EngineStats {
  int engine = 0;  // EngineInfo::index

  // Gauges.
  int unfinished = 0;  // answers accepted and not ended
  int running = 0;
  int waiting = 0;   // to be scheduled
  int deferred = 0;  // of these, for a grammar, an adapter, images or blocks of another engine
  int blocks_total = 0;
  int blocks_used = 0;             // owned by requests
  int blocks_cached = 0;           // free to take, content kept for reuse
  std::int64_t grammar_cache_bytes = 0;
  std::int64_t request_bytes = 0;  // tokens, keys and block tables of unfinished requests
  std::vector<AdapterStats> adapters;  // that have any
  bool healthy = true;             // false: the step loop has failed for good
  bool hangs = false;              // the step that runs makes no progress
  EnginePresence presence = EnginePresence::up;
  int sleep_level = 0;             // 0: awake; see EngineClient::sleep
  bool paused = false;             // see EngineClient::pause

  // Counters.
  std::int64_t prompt_tokens = 0;         // of answers that have begun
  std::int64_t prompt_tokens_cached = 0;  // of those, found in the prefix cache
  std::int64_t generation_tokens = 0;
  std::int64_t prefix_queries = 0;  // tokens looked up in the prefix cache
  std::int64_t prefix_hits = 0;     // tokens found
  std::int64_t preemptions = 0;
  std::int64_t grammar_cache_hits = 0;
  std::int64_t grammar_cache_misses = 0;
  std::int64_t grammar_compile_us = 0;
  std::int64_t grammar_masks = 0;    // filled for answers under a grammar
  std::int64_t grammar_mask_ns = 0;  // of steps that filling them took
  std::int64_t grammar_masks_deferred = 0;  // not ready in time: their sequences waited
  Histogram step_tokens = step_token_histogram();
  RecentSteps recent_steps = {};
  std::int64_t drafts = 0;                                         // times that draft tokens were verified
  std::int64_t draft_tokens = 0;                                   // verified
  std::array<std::int64_t, kDraftTokensMax> accepted_drafts = {};  // draft tokens accepted, by position
  KvTransferStats kv_transfer{};
  KvTierStats kv_host_tier{};
  KvTierStats kv_tier{};  // on a disk, or in a store
  PrefixTree prefixes{};  // when EngineClient::look_at_prefixes() was last called
};

}  // namespace octavo
