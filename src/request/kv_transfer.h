// Prefill on one engine, decode on another: the kv_transfer_params of requests and replies, as vLLM's
// NixlConnector has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// do_remote_decode asks an engine to keep the blocks of the prompt. Its reply has the parameters of the
// request to the engine that decodes.
struct KvTransferParams {
  bool do_remote_prefill = false;  // the blocks are at the engine below
  bool do_remote_decode = false;   // keep the blocks for another engine
  std::string remote_engine_id{};
  std::string remote_request_id{};  // names the lease there, and is its secret
  std::string remote_host{};        // of the side channel
  int remote_port = 0;
  std::vector<std::vector<std::int64_t>> remote_block_ids{};  // of each cache group: one for each full block
  std::int64_t remote_num_tokens = 0;                         // of the prompt

  bool operator==(const KvTransferParams&) const = default;
};

}  // namespace octavo
