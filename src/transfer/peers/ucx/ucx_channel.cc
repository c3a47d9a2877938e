// Implements UcxChannel in a separate library, which the program loads at first use (ucx_plugin.h). All
// messages have the same tag; UCX keeps their order. The TCP socket `beside` shows whether the other process
// still runs. So UCX may also use transports that cannot detect this (shared memory).
#include <poll.h>
#include <ucp/api/ucp.h>

#include <cstring>
#include <vector>

#include "transfer/peers/ucx_plugin.h"

namespace octavo {
namespace {

constexpr ucp_tag_t kTag = 1;
constexpr int kSpins = 500;  // polls before the thread sleeps
constexpr int kSilenceMs = 5'000;
// time in ms to wait for data that was already sent when the other process ended
constexpr int kClosedMs = 200;

Result<> result_of(ucs_status_t status) {
  return failure(ErrorCode::io, "UCX: {}", ucs_status_string(status));
}

// Returns the only UCX context of this process. Each UCX worker belongs to one thread.
ucs_status_t context(ucp_context_h& out) {
  static ucp_context_h made = nullptr;
  static const ucs_status_t status = [] {
    ucp_config_t* config = nullptr;
    if (const ucs_status_t read = ucp_config_read(nullptr, nullptr, &config); read != UCS_OK) return read;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    const ucs_status_t begun = ucp_init(&params, config, &made);
    ucp_config_release(config);
    return begun;
  }();
  out = made;
  return status;
}

class Channel final : public UcxChannel {
 public:
  ucs_status_t open() {
    ucp_context_h shared = nullptr;
    if (const ucs_status_t status = context(shared); status != UCS_OK) return status;
    ucp_worker_params_t params{};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const ucs_status_t status = ucp_worker_create(shared, &params, &worker_); status != UCS_OK)
      return status;
    return ucp_worker_get_efd(worker_, &wakes_);
  }
  ~Channel() override {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);  // also cancels pending operations
  }

  std::string address() const override {
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    if (ucp_worker_get_address(worker_, &address, &size) != UCS_OK) return "";
    const std::string bytes(reinterpret_cast<const char*>(address), size);
    ucp_worker_release_address(worker_, address);
    return bytes;
  }

  Result<> connect(std::string_view address) override {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    const ucs_status_t status = ucp_ep_create(worker_, &params, &other_);
    return status == UCS_OK ? Result<>() : result_of(status);
  }

  Result<> send(std::span<const std::span<const std::byte>> pieces, int beside) override {
    ucp_request_param_t plain{};
    std::vector<void*> requests;
    for (const std::span<const std::byte> piece : pieces)
      requests.push_back(ucp_tag_send_nbx(other_, piece.data(), piece.size(), kTag, &plain));
    TRY_VOID(finish(requests, beside));
    return flush(beside);
  }

  Result<> receive(std::span<const std::span<std::byte>> pieces, int beside) override {
    ucp_request_param_t plain{};
    std::vector<void*> requests;
    std::vector<ucp_tag_recv_info_t> got(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      plain.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
      plain.recv_info.tag_info = &got[i];
      requests.push_back(
          ucp_tag_recv_nbx(worker_, pieces[i].data(), pieces[i].size(), kTag, ~ucp_tag_t{0}, &plain));
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      TRY_VOID(finish(std::span(&requests[i], 1), beside, &got[i]));
      if (got[i].length != pieces[i].size())
        return failure(ErrorCode::corrupt, "{} bytes in place of {}", got[i].length, pieces[i].size());
    }
    return flush(beside);
  }

 private:
  // Polls until all sends are complete. UCX may need these polls even after the peer has received the data.
  Result<> flush(int beside) {
    ucp_request_param_t plain{};
    void* request = ucp_worker_flush_nbx(worker_, &plain);
    return finish(std::span(&request, 1), beside);
  }

  Result<> finish(std::span<void*> requests, int beside, ucp_tag_recv_info_t* got = nullptr) {
    for (void* request : requests) {
      if (request == nullptr) continue;
      if (UCS_PTR_IS_ERR(request)) return result_of(UCS_PTR_STATUS(request));
      ucs_status_t status = UCS_OK;
      const auto check = [&] {
        return got != nullptr ? ucp_tag_recv_request_test(request, got) : ucp_request_check_status(request);
      };
      for (int idle = 0; (status = check()) == UCS_INPROGRESS;) {
        if (ucp_worker_progress(worker_) != 0)
          idle = 0;
        else if (++idle > kSpins)
          TRY_VOID(sleep(beside));
      }
      ucp_request_free(request);
      if (status != UCS_OK) return result_of(status);
    }
    return {};
  }

  Result<> sleep(int beside) {
    if (ucp_worker_arm(worker_) != UCS_OK) return {};  // an event has just arrived
    pollfd both[] = {{wakes_, POLLIN, 0}, {beside, POLLRDHUP, 0}};
    if (poll(both, 2, kSilenceMs) == 0)
      return failure(ErrorCode::io, "UCX: no data arrived for {} s", kSilenceMs / 1000);
    if (both[0].revents == 0 && both[1].revents != 0 && poll(both, 1, kClosedMs) == 0)
      return failure(ErrorCode::io, "the other engine has stopped");
    return {};
  }

  ucp_worker_h worker_ = nullptr;
  ucp_ep_h other_ = nullptr;
  int wakes_ = -1;
};

}  // namespace
}  // namespace octavo

extern "C" __attribute__((visibility("default"))) octavo::UcxChannel* octavo_open_ucx_channel(
    char* why, std::size_t why_size) {
  auto channel = std::make_unique<octavo::Channel>();
  if (const ucs_status_t status = channel->open(); status != UCS_OK) {
    std::strncpy(why, ucs_status_string(status), why_size - 1);
    return nullptr;
  }
  return channel.release();
}
