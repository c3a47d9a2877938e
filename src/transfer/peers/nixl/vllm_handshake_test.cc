#include "transfer/peers/nixl/vllm_handshake.h"

#include <gtest/gtest.h>

#include "transfer/testing/vllm_handshake_text.h"

namespace octavo {
namespace {

TEST(VllmHandshake, ReadsVllmsFields) {
  const VllmAgent agent = parse_vllm_handshake(vllm_handshake_text({})).value();
  EXPECT_EQ(agent.engine_id, "e");
  EXPECT_EQ(agent.metadata, "metadata");
  EXPECT_EQ(agent.backend, "CPU_ATTN");
  EXPECT_EQ(agent.layout, "LBHNC");
  EXPECT_EQ(agent.memory, "DRAM");
  EXPECT_EQ(agent.block_size, 32);
  EXPECT_EQ(agent.blocks_of_an_id, 1);
  EXPECT_EQ(agent.context_ranks, 1);
  ASSERT_EQ(agent.regions.size(), 2u);
  EXPECT_EQ(agent.regions[1].address, 0xFFFF'0000'0000'0001u);
  EXPECT_EQ(agent.regions[1].block_bytes, 64);
  EXPECT_EQ(agent.regions[1].stride, 128);
  EXPECT_EQ(agent.regions[1].blocks, 9);
}

TEST(VllmHandshake, InvalidFieldsAreNamed) {
  const auto error = [](const VllmHandshakeFields& fields) {
    const auto agent = parse_vllm_handshake(vllm_handshake_text(fields));
    if (agent) return std::string("no error");
    EXPECT_EQ(agent.error().code, ErrorCode::corrupt);
    return agent.error().message;
  };
  const auto has = [](const std::string& text, std::string_view part) { return text.contains(part); };
  EXPECT_PRED2(has, error({.block_size = 0}), "block_size");
  EXPECT_PRED2(has, error({.block_size = -1}), "block_size");
  EXPECT_PRED2(has, error({.block_bytes = 0}), "block_lens");
  EXPECT_PRED2(has, error({.block_bytes = std::int64_t{1} << 50}), "block_lens");
  EXPECT_PRED2(has, error({.memory = {"DRAM", "VRAM"}}), "region_mem_types");
  EXPECT_PRED2(has, error({.memory = {"FILE", "FILE"}}), "region_mem_types");
  EXPECT_PRED2(has, error({.memory = {"DRAM"}}), "region_mem_types");
  EXPECT_PRED2(has, error({.with_layout = false}), "13 of 14 fields");
}

TEST(VllmHandshake, RejectsIncompleteText) {
  const std::string whole = vllm_handshake_text({});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_vllm_handshake(std::string_view(whole).substr(0, size))) << size;
  EXPECT_FALSE(parse_vllm_handshake("not msgpack"));
  // an array that claims 2^32 - 1 items
  EXPECT_FALSE(
      parse_vllm_handshake("\x81\xb4"
                           "agent_metadata_bytes\xdd\xff\xff\xff\xff"));
}

TEST(VllmHandshake, NobodyAnswers) {
  int port = 0;
  const int fd = listen_at("127.0.0.1", port).value();
  const std::atomic<bool> stop = false, stopped = true;
  EXPECT_EQ(ask_vllm("127.0.0.1", port, {.silence = 1}, stop).error().code, ErrorCode::unavailable);
  EXPECT_EQ(ask_vllm("127.0.0.1", port, {}, stopped).error().code, ErrorCode::unavailable);
  close(fd);
}

}  // namespace
}  // namespace octavo
