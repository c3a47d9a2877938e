// The handshake of vLLM's NixlConnector: an engine sends a request over ZeroMQ, and the other engine answers
// with the metadata of its NIXL agent and the addresses of its KV cache. The values are msgpack.
//
//   request   ["get_meta_msg" (bytes), pipeline rank, tensor rank]
//   answer    {"compatibility_hash": text, "agent_metadata_bytes": bytes of a map}, and a second frame: a
//   clock
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "transfer/peer_socket.h"

namespace octavo {

// One region of the other engine's KV cache. vLLM has one region for each layer.
struct VllmRegion {
  std::uint64_t address = 0;
  std::int64_t block_bytes = 0;
  std::int64_t stride = 0;  // distance between two blocks in bytes
  std::int64_t blocks = 0;
};

// The fields of vLLM's NixlAgentMetadata that a reader needs.
struct VllmAgent {
  std::string engine_id{};
  std::string metadata{};  // NIXL's metadata of the agent (binary)
  std::string backend{};   // name of the attention backend, for example CPU_ATTN
  std::string layout{};    // name of the KV cache layout, for example LBHNC
  std::string memory = "DRAM";
  std::int64_t device = 0;
  std::int64_t block_size = 0;  // tokens of a block in memory
  // number of blocks in memory for each block id of a request
  std::int64_t blocks_of_an_id = 1;
  std::int64_t context_ranks = 1;  // ranks that share the tokens of a sequence (dcp_size * pcp_size)
  std::vector<VllmRegion> regions{};
};

inline constexpr std::int64_t kVllmMessageBytesMax = 1 << 20;

// Returns the request for the metadata of rank 0.
std::string vllm_handshake_request();
// Parses the answer. Returns corrupt if it is not valid msgpack, or if a field is missing or out of range.
// The error names the field.
Result<VllmAgent> parse_vllm_handshake(std::string_view answer);

// Sends the request, and waits for the answer. Returns unavailable if the engine does not answer in
// times.silence, or if `stop` becomes true.
Result<VllmAgent> ask_vllm(const std::string& host, int port, const PeerTimes& times,
                           const std::atomic<bool>& stop);

}  // namespace octavo
