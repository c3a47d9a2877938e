// For tests: the answer of vLLM's NixlConnector to a handshake.
#pragma once

#include <msgpuck.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct VllmHandshakeFields {
  std::string metadata = "metadata";
  std::string engine_id = "e";
  std::vector<std::uint64_t> addresses{1, 0xFFFF'0000'0000'0001u};
  std::int64_t block_bytes = 64, stride = 128, blocks = 9, block_size = 32;
  std::vector<std::string> memory{"DRAM", "DRAM"};
  bool with_layout = true;
};

class VllmText {
 public:
  std::string text{};

  void map(std::uint32_t fields) {
    add([&](char* to) { return mp_encode_map(to, fields); });
  }
  void list(std::size_t items) {
    add([&](char* to) { return mp_encode_array(to, static_cast<std::uint32_t>(items)); });
  }
  void number(std::int64_t value) {
    add([&](char* to) {
      return value < 0 ? mp_encode_int(to, value) : mp_encode_uint(to, static_cast<std::uint64_t>(value));
    });
  }
  void address(std::uint64_t value) {
    add([&](char* to) { return mp_encode_uint(to, value); });
  }
  void string(std::string_view value) {
    add([&](char* to) { return mp_encode_strl(to, static_cast<std::uint32_t>(value.size())); });
    text += value;
  }
  void bytes(std::string_view value) {
    add([&](char* to) { return mp_encode_binl(to, static_cast<std::uint32_t>(value.size())); });
    text += value;
  }
  void field(std::string_view name, std::int64_t value) {
    string(name);
    number(value);
  }
  void field(std::string_view name, std::string_view value) {
    string(name);
    string(value);
  }
  void numbers(std::string_view name, std::size_t count, std::int64_t value) {
    string(name);
    list(count);
    for (std::size_t i = 0; i < count; ++i) number(value);
  }

 private:
  template <class Encode>
  void add(Encode encode) {
    std::array<char, 16> space;
    text.append(space.data(), encode(space.data()));
  }
};

inline std::string vllm_handshake_text(const VllmHandshakeFields& f) {
  const std::size_t regions = f.addresses.size();
  VllmText agent;
  agent.map(f.with_layout ? 16 : 15);
  agent.field("engine_id", f.engine_id);
  agent.string("agent_metadata");
  agent.bytes(f.metadata);
  agent.string("kv_caches_base_addr");
  agent.list(regions);
  for (const std::uint64_t address : f.addresses) agent.address(address);
  agent.field("device_id", 0);
  agent.field("num_blocks", f.blocks);
  agent.numbers("block_lens", regions, f.block_bytes);
  agent.numbers("block_strides", regions, f.stride);
  if (f.with_layout) agent.field("kv_cache_layout", "LBHNC");
  agent.field("block_size", f.block_size);
  agent.numbers("ssm_sizes", 2, 0);
  agent.field("attn_backend_name", "CPU_ATTN");
  agent.field("physical_blocks_per_logical_kv_block", 1);
  agent.numbers("region_num_blocks", regions, f.blocks);
  agent.string("region_mem_types");
  agent.list(f.memory.size());
  for (const std::string& kind : f.memory) agent.string(kind);
  agent.field("dcp_size", 1);
  agent.field("pcp_size", 1);
  VllmText answer;
  answer.map(2);
  answer.field("compatibility_hash", "hash");
  answer.string("agent_metadata_bytes");
  answer.bytes(agent.text);
  return answer.text;
}

}  // namespace octavo
