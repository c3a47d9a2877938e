// For tests: a prefill server of vLLM's NixlConnector, without a model. It answers handshakes, and has blocks
// whose bytes are all equal to the number of the block.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "base/check.h"
#include "base/testing/eventually.h"
#include "transfer/peers/nixl/nixl_library.h"
#include "transfer/testing/vllm_handshake_text.h"

namespace octavo {

class VllmPrefill {
 public:
  static constexpr int kLayers = 2, kBlocks = 9;

  // block_bytes: bytes of one layer of a block. The library must be installed.
  VllmPrefill(std::string engine_id, std::int64_t block_bytes)
      : nixl_(*load_nixl("libnixl_capi.so").value()),
        memory_(static_cast<std::size_t>(kLayers * kBlocks * block_bytes)) {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_[i] = static_cast<std::byte>(i / static_cast<std::size_t>(block_bytes) % kBlocks);
    const NixlAgentSettings settings;
    CHECK(nixl_.create_agent(engine_id.c_str(), &settings, &agent_) == kNixlDone);
    CHECK(nixl_.create_params(&params_) == kNixlDone);
    CHECK(nixl_.create_backend(agent_, "UCX", params_, &backend_) == kNixlDone);
    CHECK(nixl_.create_reg_dlist(kNixlDram, &registration_) == kNixlDone);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    nixl_.reg_dlist_add_desc(registration_, address, memory_.size(), 0, "", 0);
    CHECK(nixl_.register_mem(agent_, registration_, nullptr) == kNixlDone);
    const auto layer = static_cast<std::uint64_t>(kBlocks * block_bytes);
    answer_ = vllm_handshake_text({.metadata = metadata(),
                                   .engine_id = engine_id,
                                   .addresses = {address, address + layer},
                                   .block_bytes = block_bytes,
                                   .stride = block_bytes,
                                   .blocks = kBlocks});
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    thread_ = std::jthread([this](const std::stop_token& stop) { answer_handshakes(stop); });
  }
  ~VllmPrefill() {
    thread_ = {};
    nixl_.deregister_mem(agent_, registration_, nullptr);
    nixl_.destroy_reg_dlist(registration_);
    nixl_.destroy_agent(agent_);
    nixl_.destroy_params(params_);
    nixl_.destroy_backend(backend_);
  }

  int port() const { return std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)); }

  // Waits for a notification, and returns its text.
  std::string notification() {
    std::string text;
    EXPECT_TRUE(eventually([&] { return !(text = take_notification()).empty(); }));
    return text;
  }

 private:
  template <class... Args>
  int call(const char* name, Args... args) {
    void* const library = dlopen("libnixl_capi.so", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<int (*)(Args...)>(dlsym(library, name))(args...);
  }

  std::string metadata() {
    void* bytes = nullptr;
    std::size_t size = 0;
    CHECK(call("nixl_capi_get_local_md", agent_, &bytes, &size) == kNixlDone);
    std::string text(static_cast<const char*>(bytes), size);
    std::free(bytes);
    return text;
  }

  std::string take_notification() {
    NixlNotifications* map = nullptr;
    std::size_t agents = 0, size = 0;
    const char* agent = nullptr;
    const void* bytes = nullptr;
    call("nixl_capi_create_notif_map", &map);
    call("nixl_capi_get_notifs", agent_, map, static_cast<NixlOptions*>(nullptr));
    call("nixl_capi_notif_map_size", map, &agents);
    std::string text;
    if (agents > 0 && call("nixl_capi_notif_map_get_agent_at", map, std::size_t{0}, &agent) == kNixlDone &&
        call("nixl_capi_notif_map_get_notif", map, agent, std::size_t{0}, &bytes, &size) == kNixlDone)
      text.assign(static_cast<const char*>(bytes), size);
    call("nixl_capi_destroy_notif_map", map);
    return text;
  }

  void answer_handshakes(const std::stop_token& stop) {
    zmq::pollitem_t readable{socket_.handle(), 0, ZMQ_POLLIN, 0};
    while (!stop.stop_requested()) {
      if (zmq::poll(&readable, 1, std::chrono::milliseconds(20)) == 0) continue;
      zmq::message_t identity, empty, request;
      (void)socket_.recv(identity);
      (void)socket_.recv(empty);
      (void)socket_.recv(request);
      socket_.send(identity, zmq::send_flags::sndmore);
      socket_.send(empty, zmq::send_flags::sndmore);
      socket_.send(zmq::buffer(answer_), zmq::send_flags::sndmore);
      socket_.send(zmq::buffer(std::string("\0", 1)), zmq::send_flags::none);
    }
  }

  const NixlLibrary& nixl_;
  std::vector<std::byte> memory_;
  NixlAgentHandle* agent_ = nullptr;
  NixlParams* params_ = nullptr;
  NixlBackendHandle* backend_ = nullptr;
  NixlRegistrations* registration_ = nullptr;
  std::string answer_;
  zmq::context_t context_{1};
  zmq::socket_t socket_{context_, zmq::socket_type::router};
  std::string endpoint_;
  std::jthread thread_;
};

}  // namespace octavo
