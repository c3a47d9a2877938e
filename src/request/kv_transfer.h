// The kv_transfer_params of requests and responses, as in vLLM's NixlConnector: one engine computes
// the prompt (prefill), and another engine decodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo {

// With do_remote_decode, an engine keeps the KV blocks of the prompt and returns the parameters
// that the request to the decode engine needs.
struct KvTransferParams {
  bool do_remote_prefill = false;  // whether to load the blocks from the engine remote_engine_id
  bool do_remote_decode = false;   // whether to keep the blocks for another engine
  std::string remote_engine_id{};
  // name of the lease at the remote engine, which also serves as its secret
  std::string remote_request_id{};
  std::string remote_host{};
  int remote_port = 0;
  std::vector<std::vector<std::int64_t>> remote_block_ids{};  // by cache group: one id per full block
  std::int64_t remote_num_tokens = 0;

  bool operator==(const KvTransferParams&) const = default;
};

}  // namespace octavo
