// Prefill on one engine, decode on another: the kv_transfer_params of requests and replies, as vLLM's
// NixlConnector has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// do_remote_decode makes an engine keep the blocks of the prompt. The reply has the parameters for the
// request to the decode engine.
struct KvTransferParams {
  bool do_remote_prefill = false;  // the blocks are at the engine below
  bool do_remote_decode = false;   // keep the blocks for another engine
  std::string remote_engine_id{};
  std::string remote_request_id{};  // names the lease there, and is its secret
  std::string remote_host{};        // host of the side channel
  int remote_port = 0;
  std::vector<std::vector<std::int64_t>> remote_block_ids{};  // per cache group: one id for each full block
  std::int64_t remote_num_tokens = 0;                         // tokens of the prompt

  bool operator==(const KvTransferParams&) const = default;
};

}  // namespace octavo
