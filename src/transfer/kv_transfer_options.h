// --kv-transfer-config: vLLM's JSON object that selects the sources and destinations of KV blocks outside an
// engine's cache: other engines, and tiers below it.
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

// Credentials for an S3-style store. Requests are signed if there is an access key.
struct StoreKeys {
  std::string access{}, secret{}, session{};
  std::string region{};  // "": us-east-1
};

// Tiers of blocks: host memory, and below it a disk or a store that several engines share.
struct KvTierOptions {
  std::int64_t host_bytes = 0;  // capacity of host memory; 0 disables this tier
  std::string place{};          // a folder, or the URL of a store (is_store_url); "": no tier below
  StoreKeys keys{};
  std::int64_t bytes = std::int64_t{16} << 30;            // capacity of a folder, for all engines together
  BlockCompression compression = BlockCompression::none;  // compression of blocks at `place`
  // If the engine's cache is on a device, the capacity is for host memory and `place` is unused.
  bool on_host_of_device = false;
  EvictionPolicy eviction = EvictionPolicy::lru;  // policy of host memory and folders
  int store_threshold = 0;             // a block is written once n prompts have used it; 0 or 1: at once
  int max_tracker_size = 64'000;       // number of blocks with a use count
  bool load_always = false;            // load blocks even if computing them is faster
  bool prompt_only = true;             // blocks of answers are not stored
  bool use_odirect = false;            // the folder's files bypass the page cache
  int store_silence_ms = 5'000;        // a store without a response for longer has failed
  std::int64_t stuck_us = 20'000'000;  // a piece that takes longer to read means that the file system hangs
};

class KvConnector;
struct KvConnectorSite;
using StartConnector = std::function<Result<std::unique_ptr<KvConnector>>(const KvConnectorSite&)>;

struct KvTransferOptions {
  bool enabled = false;

  // Other engines.
  bool produces = false;    // keeps blocks of prompts for other engines
  bool consumes = false;    // loads blocks of prompts from other engines
  std::string engine_id{};  // "": random at each start

  // Address on which a producer listens, and which it sends to consumers.
  std::string host{};         // "": 127.0.0.1
  std::optional<int> port{};  // port of engine 0, others follow; 0: chosen by the system; nullopt: 5600

  int lease_seconds = 30;       // time that blocks are kept for a consumer
  int recompute_threshold = 0;  // prompts with at most n uncached tokens are computed by the consumer
  bool one_host = true;         // false: use TCP even between processes of one host
  bool ucx = false;             // use UCX if the producer has it

  std::optional<KvTierOptions> tier{};
  std::vector<StartConnector> others{};  // further kinds, added by read() of their rows
};

// Accepts vLLM's fields of its NixlConnector (other engines), OffloadingConnector (host memory, a disk),
// LMCacheConnectorV1 (the same, or a store), SharedStorageConnector (a disk) and its MultiConnector of these.
// Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
