// --kv-transfer-config: vLLM's JSON object that lets engines hand KV blocks to each other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

struct KvTransferOptions {
  bool enabled = false;
  bool produces = false;    // keeps blocks of prompts for others
  bool consumes = false;    // takes blocks of prompts from others
  std::string engine_id{};  // "": a new one at each start

  // Where a producer listens, and what it tells consumers.
  std::string host{};         // "": 127.0.0.1
  std::optional<int> port{};  // of engine 0, the next ones follow; 0: the system chooses; nullopt: 5600

  int lease_seconds = 30;       // that blocks are kept for somebody to come
  int recompute_threshold = 0;  // prompts that lack at most so many tokens here are computed here
  bool shared_memory = true;    // false: TCP also between processes of one host
};

// Accepts vLLM's fields for its NixlConnector, which is what this does. Errors name the field.
Result<KvTransferOptions> parse_kv_transfer_config(std::string_view json);

}  // namespace octavo
