// --kv-transfer-config: vLLM's JSON object that selects where KV blocks outside an engine's cache come from
// and go to: other engines, and tiers below the cache.
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

// Credentials of an S3-style store. Requests are signed if there is an access key.
struct StoreKeys {
  std::string access{}, secret{}, session{};
  std::string region{};  // "": us-east-1
};

// Tiers of blocks: host memory, and below it a disk, or a store that several engines share.
struct KvTierOptions {
  std::int64_t host_bytes = 0;  // capacity of host memory; 0: this tier is disabled
  std::string place{};          // folder, or URL of a store (is_store_url); "": no tier below host memory
  StoreKeys keys{};
  std::int64_t bytes = std::int64_t{16} << 30;            // capacity of the folder, for all engines
  BlockCompression compression = BlockCompression::none;  // compression of blocks at `place`
  // true: host_bytes applies only if the engine's cache is on a device; `place` is unused.
  bool on_host_of_device = false;
  EvictionPolicy eviction = EvictionPolicy::lru;  // policy of host memory and of the folder
  int store_threshold = 0;             // a block is written when n prompts have used it; 0 or 1: at once
  int max_tracker_size = 64'000;       // maximum number of blocks whose uses are counted
  bool load_always = false;            // load blocks even if computing them is faster
  bool prompt_only = true;             // true: do not store blocks of answers
  bool use_odirect = false;            // true: the folder's files bypass the page cache
  int store_silence_ms = 5'000;        // a store that sends no response for longer has failed
  std::int64_t stuck_us = 20'000'000;  // if reading a piece takes longer, the file system is hung
};

class KvConnector;
struct KvConnectorSite;
using StartConnector = std::function<Result<std::unique_ptr<KvConnector>>(const KvConnectorSite&)>;

struct KvTransferOptions {
  bool enabled = false;

  bool produces = false;    // true: keeps blocks of prompts for other engines
  bool consumes = false;    // true: loads blocks of prompts from other engines
  std::string engine_id{};  // "": random at each start

  // Address on which a producer listens. The producer sends it to consumers.
  std::string host{};         // "": 127.0.0.1
  std::optional<int> port{};  // port of engine 0; engine n adds n. 0: chosen by the system; nullopt: 5600

  int lease_seconds = 30;       // time for which blocks are kept for a consumer
  int recompute_threshold = 0;  // consumers compute prompts with at most n uncached tokens
  bool one_host = true;         // false: use TCP even between processes of the same host
  bool ucx = false;             // true: use UCX if the producer supports it

  std::optional<KvTierOptions> tier{};
  std::vector<StartConnector> others{};  // connectors of further kinds
};

// Accepts the fields of vLLM's NixlConnector (other engines), OffloadingConnector (host memory, a disk),
// LMCacheConnectorV1 (host memory, a disk or a store), SharedStorageConnector (a disk), and of a
// MultiConnector of these. Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
