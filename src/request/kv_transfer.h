// The kv_transfer_params of requests and responses, as in vLLM's NixlConnector: one engine computes the
// prompt (prefill), another one decodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// Parameters of a transfer. With do_remote_decode, an engine keeps the blocks of the prompt; its response
// contains the parameters of the request to the decode engine.
struct KvTransferParams {
  bool do_remote_prefill = false;  // whether to load the blocks from the engine below
  bool do_remote_decode = false;   // whether to keep the blocks for another engine
  std::string remote_engine_id{};
  std::string remote_request_id{};  // name of the lease at that engine, and its secret
  std::string remote_host{};        // host of the side channel
  int remote_port = 0;
  std::vector<std::vector<std::int64_t>> remote_block_ids{};  // by cache group: one id per full block
  std::int64_t remote_num_tokens = 0;                         // number of prompt tokens

  bool operator==(const KvTransferParams&) const = default;
};

}  // namespace octavo
