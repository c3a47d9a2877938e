// Backends for tests of operators, and copies of host memory to their devices.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/host_device.h"

#ifdef OCTAVO_CUDA_EMULATED
#include "kernels/cuda/emulator/memory.h"
#endif

namespace octavo {

#ifdef OCTAVO_CUDA_EMULATED
inline Result<Backend> make_emulated_hopper() {
  cuda::emulated::set_wgmma(true);
  auto backend = make_cuda_backend();
  cuda::emulated::set_wgmma(false);
  return backend;
}
#endif

struct TestBackend {
  std::string name;
  // Returns an error if the backend is not available on this machine.
  std::function<Result<Backend>(int threads)> make;
  bool slow = false;  // true: tests run fewer cases
};

// Returns the CPU backend with every instruction set, and the CUDA backend on the GPU or, in builds without
// CUDA, on the emulator.
inline std::vector<TestBackend> test_backends() {
  std::vector<TestBackend> list;
  for (const CpuIsa isa : kCpuIsas)
    list.push_back({std::string(name(isa)),
                    [isa](int threads) { return make_cpu_backend({.threads = threads, .isa = isa}); },
                    isa == CpuIsa::amx_modelled});
  const auto cuda = make_cuda_backend();
  list.push_back(
      {"cuda", [](int) { return make_cuda_backend(); }, cuda && cuda->device->name() == "emulated"});
  return list;
}
inline std::string test_backend_name(const testing::TestParamInfo<TestBackend>& test) {
  return test.param.name;
}

// Gives a backend's operators access to host views. If the device has separate memory, views are copied to
// the device, and fetch() copies them back.
class OnDevice {
 public:
  explicit OnDevice(Backend& backend)
      : backend_(backend), host_(dynamic_cast<HostDevice*>(backend.device.get()) != nullptr) {}

  // Returns the device view of a host view. If several views begin at one address, only the first view is
  // copied, and the other views must be inside it.
  View operator()(const View& host) {
    if (host_ || !host) return host;
    View device = host;
    const auto [at, is_new] = copies_.try_emplace(host.data);
    if (is_new) {
      at->second = {host, backend_.device->allocate(static_cast<std::size_t>(host.bytes())).value()};
      device.data = at->second.device.data();
      backend_.device->upload(*backend_.stream, device, host.data);
    }
    device.data = at->second.device.data();
    return device;
  }
  Norm operator()(Norm norm) {
    norm.weight = (*this)(norm.weight);
    norm.bias = (*this)(norm.bias);
    return norm;
  }

  void fetch() {
    for (const auto& [data, copy] : copies_) {
      View device = copy.host;
      device.data = copy.device.data();
      backend_.device->download(*backend_.stream, data, device);
    }
    backend_.stream->synchronize();
  }

 private:
  struct Copy {
    View host;
    Buffer device;
  };
  Backend& backend_;
  bool host_;
  std::map<void*, Copy> copies_;
};

// A test of a backend against the reference. It is skipped if this machine does not support the backend.
class BesideTheReference : public testing::TestWithParam<TestBackend> {
 protected:
  void SetUp() override {
    auto made = GetParam().make(3);
    if (!made) GTEST_SKIP() << made.error().message;
    tested.emplace(*std::move(made));
  }

  std::optional<Backend> tested;
  Backend reference = make_reference_backend();
};

}  // namespace octavo
