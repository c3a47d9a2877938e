// --kv-transfer-config: vLLM's JSON object. It selects the sources and destinations of KV blocks outside of
// an engine's cache: other engines, and tiers below the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "transfer/tiers/compressed_blocks.h"
#include "transfer/tiers/eviction_order.h"

namespace octavo {

// Credentials of an S3-style store. Requests are signed if an access key is set.
struct StoreKeys {
  std::string access{}, secret{}, session{};
  std::string region{};  // "": us-east-1
};

// Tiers of blocks: host memory, and below it a folder on a disk, or a store that several engines share.
struct KvTierOptions {
  std::int64_t host_bytes = 0;  // capacity of host memory in bytes; 0: this tier is disabled
  std::string place{};          // folder, or URL of a store (is_store_url); "": no tier below host memory
  StoreKeys keys{};
  std::int64_t bytes = std::int64_t{16} << 30;  // capacity of the folder in bytes, for all engines together
  BlockCompression compression = BlockCompression::none;  // compression of blocks at `place`
  // true: host_bytes applies only if the engine's cache is on a device; otherwise `place` is used
  bool on_host_of_device = false;
  EvictionPolicy eviction = EvictionPolicy::lru;  // eviction policy of host memory and of the folder
  int store_threshold = 0;  // number of prompts that must use a block before it is written; 0 or 1: all
                            // blocks are written
  int max_tracker_size = 64'000;       // maximum number of blocks whose uses are counted
  bool load_always = false;            // whether blocks are loaded even if computing them is faster
  bool prompt_only = true;             // whether blocks of output tokens are not stored
  bool use_odirect = false;            // whether the folder's files bypass the page cache
  int store_silence_ms = 5'000;        // time without a response, in ms, after which a store counts as failed
  std::int64_t stuck_us = 20'000'000;  // time to read a piece, in microseconds, after which the file system
                                       // counts as hung
};

class KvConnector;
struct KvConnectorSite;
using StartConnector = std::function<Result<std::unique_ptr<KvConnector>>(const KvConnectorSite&)>;

struct KvTransferOptions {
  bool enabled = false;

  bool produces = false;    // whether the engine keeps blocks of prompts for other engines
  bool consumes = false;    // whether the engine loads blocks of prompts from other engines
  std::string engine_id{};  // "": chosen at random at each start

  // Address on which a producer listens. The producer sends it to consumers.
  std::string host{};         // "": 127.0.0.1
  std::optional<int> port{};  // port of engine 0; engine n adds n. 0: the operating system chooses; nullopt:
                              // 5600

  int lease_seconds = 30;       // time in seconds for which blocks are kept for a consumer
  int recompute_threshold = 0;  // prompts with at most this number of uncached tokens are computed by
                                // consumers
  bool one_host = true;         // false: TCP is used even between processes of the same host
  bool ucx = false;             // whether UCX is used if the producer supports it

  std::optional<KvTierOptions> tier{};
  std::vector<StartConnector> others{};  // other connectors
};

// Parses the options. It accepts the fields of vLLM's NixlConnector (other engines), OffloadingConnector
// (host memory, a disk), LMCacheConnectorV1 (host memory, a disk or a store), SharedStorageConnector (a
// disk), and of a MultiConnector of these. Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
