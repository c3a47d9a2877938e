// For tests and benches of this room: a backend that can only sample.
#pragma once

#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/sample.h"
#include "kernels/ops.h"

namespace octavo {

class TestDevice final : public Device {
 public:
  std::string name() const override { return "test"; }
  std::size_t memory_bytes() const override { return 0; }
  Result<Buffer> allocate(std::size_t bytes) override { return allocate_host(bytes); }
  void upload(Stream&, const View& device, const void* host) override {
    std::memcpy(device.data, host, static_cast<std::size_t>(device.bytes()));
  }
  void download(Stream&, void* host, const View& device) override {
    std::memcpy(host, device.data, static_cast<std::size_t>(device.bytes()));
  }
};

inline Backend test_backend(int threads) {
  static constexpr Ops kOps{.prepare = nullptr,
                            .kv_block_bytes = nullptr,
                            .supports = nullptr,
                            .make_attention_plan = nullptr,
                            .plan_attention = nullptr,
                            .embed = nullptr,
                            .add_norm = nullptr,
                            .matmul = nullptr,
                            .activate = nullptr,
                            .qkv_store = nullptr,
                            .attention = nullptr,
                            .gather_rows = nullptr,
                            .scale_logits = nullptr,
                            .sample = cpu::sample};
  return {"test", kOps, std::make_unique<TestDevice>(), std::make_unique<cpu::CpuStream>(threads)};
}

}  // namespace octavo
