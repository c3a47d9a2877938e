// Parses --kv-transfer-config, vLLM's JSON object. It selects from where KV blocks are loaded and to where
// they are stored: other engines, and tiers below the engine's cache.
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

// Credentials of an S3 store. Requests are signed if `access` is set.
struct StoreKeys {
  std::string access{}, secret{}, session{};
  std::string region{};  // "": us-east-1
};

// Options of the KV tiers: host memory, and below it a folder on a disk or a store that several engines
// share.
struct KvTierOptions {
  std::int64_t host_bytes = 0;  // capacity in bytes; 0: no tier in host memory
  // path of a folder, or URL of a store (is_store_url); "": no tier below host memory
  std::string path_or_url{};
  StoreKeys keys{};
  // capacity of the folder in bytes, for all engines together
  std::int64_t bytes = std::int64_t{16} << 30;
  BlockCompression compression = BlockCompression::none;
  // true: the tier in host memory is used only if the engine's cache is on a GPU. If the engine's cache is
  // in host memory, only `path_or_url` is used.
  bool on_host_of_device = false;
  EvictionPolicy eviction = EvictionPolicy::lru;  // applies to host memory and to the folder
  // A block is written after this number of prompts have used it. 0 or 1: every block is written.
  int store_threshold = 0;
  // maximum number of blocks whose uses are counted for store_threshold
  int max_tracker_size = 64'000;
  bool load_always = false;  // true: blocks are loaded even if computing them is faster
  bool prompt_only = true;   // true: blocks of output tokens are not stored
  bool use_odirect = false;  // true: files bypass the page cache
  // A store has failed if it sends no byte for this time in ms.
  int store_silence_ms = 5'000;
  // A read of one piece hangs if it takes longer than this time in microseconds.
  std::int64_t stuck_us = 20'000'000;
};

class KvConnector;
struct KvConnectorSite;
using StartConnector = std::function<Result<std::unique_ptr<KvConnector>>(const KvConnectorSite&)>;

struct KvTransferOptions {
  bool enabled = false;

  bool produces = false;    // whether the engine keeps blocks of prompts for other engines
  bool consumes = false;    // whether the engine loads blocks of prompts from other engines
  std::string engine_id{};  // "": chosen at random at each start

  // Address on which a producer listens. The producer's responses contain it, so that consumers can connect.
  std::string host{};         // "": 127.0.0.1
  // Port of engine 0. Engine n listens on this port plus n. 0: the operating system chooses. nullopt: 5600.
  std::optional<int> port{};

  // time in seconds for which the producer keeps blocks for a consumer
  int lease_seconds = 30;
  // If a prompt has at most this number of uncached tokens, a consumer computes it instead of fetching
  // blocks.
  int recompute_threshold = 0;
  // false: blocks are sent over TCP even if both processes run on the same host
  bool one_host = true;
  bool ucx = false;  // true: UCX is used if the producer supports it, too
  // Name of a NIXL plugin: blocks come from vLLM's prefill servers by NIXL. "": they come from Octavo's.
  std::string nixl_backend{};
  // path of libnixl_capi.so, or a name that the dynamic loader finds
  std::string nixl_library = "libnixl_capi.so";

  std::optional<KvTierOptions> tier{};
  std::vector<StartConnector> others{};
};

// Accepts these connectors of vLLM, each with its fields: NixlConnector (other engines), OffloadingConnector
// (host memory, a disk), LMCacheConnectorV1 (host memory, a disk or a store), SharedStorageConnector (a
// disk), and a MultiConnector that lists several of them. Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
