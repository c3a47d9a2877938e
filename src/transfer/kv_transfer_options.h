// --kv-transfer-config: vLLM's JSON object that says where KV blocks go to and come from, beside an engine's
// own cache: other engines, tiers below it.
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

// Who asks at an S3-style store. Without an access key requests are not signed.
struct StoreKeys {
  std::string access{}, secret{}, session{};
  std::string region{};  // "": us-east-1
};

// Tiers of blocks: in host memory, and below that on a disk, or in a store that several engines share.
struct KvTierOptions {
  std::int64_t host_bytes = 0;  // at most, in host memory; 0: nothing there
  std::string place{};          // a folder, or the URL of a store: see is_store_url; "": nothing below
  StoreKeys keys{};
  std::int64_t bytes = std::int64_t{16} << 30;    // at most, of a folder
  BlockCompression compression = BlockCompression::none;  // of what is at `place`
  // The bytes are of host memory, and nothing is at `place`, where the engine's cache is not in host memory itself.
  bool on_host_of_device = false;
  EvictionPolicy eviction = EvictionPolicy::lru;  // of host memory and of a folder
  int store_threshold = 0;        // a block is written when so many prompts have had it; up to 1: at once
  int max_tracker_size = 64'000;  // blocks for which that is counted
  bool load_always = false;       // also what is computed faster
  bool use_odirect = false;       // the folder's files go past the page cache
  int store_silence_ms = 5'000;   // a store that answers nothing for longer has failed
  std::int64_t stuck_us = 20'000'000;  // reading one piece takes longer: the file system hangs
};

class KvConnector;
struct KvConnectorSite;
using StartConnector = std::function<Result<std::unique_ptr<KvConnector>>(const KvConnectorSite&)>;

struct KvTransferOptions {
  bool enabled = false;

  // Other engines.
  bool produces = false;    // keeps blocks of prompts for others
  bool consumes = false;    // takes blocks of prompts from others
  std::string engine_id{};  // "": a new one at each start

  // Where a producer listens, and what it tells consumers.
  std::string host{};         // "": 127.0.0.1
  std::optional<int> port{};  // of engine 0, the next ones follow; 0: the system chooses; nullopt: 5600

  int lease_seconds = 30;       // that blocks are kept for somebody to come
  int recompute_threshold = 0;  // prompts that lack at most so many tokens here are computed here
  bool one_host = true;         // false: TCP also between processes of one host
  bool ucx = false;             // where the producer has it, too

  std::optional<KvTierOptions> tier{};
  std::vector<StartConnector> others{};  // further kinds: their rows' read() adds them
};

// Accepts vLLM's fields of its NixlConnector (other engines), OffloadingConnector (host memory, a disk),
// LMCacheConnectorV1 (the same, or a store) and SharedStorageConnector (a disk), and its MultiConnector of
// these. Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
