#include "transfer/peers/nixl/nixl_agent.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"

namespace octavo {
namespace {

constexpr std::chrono::microseconds kPollPause{50};
// NIXL's thread sleeps until data arrives, but at most this time. NIXL's default, 0, would keep a quarter
// of a processor busy in an idle server.
constexpr std::uint64_t kProgressDelayUs = 10'000;

// Returns `code` with the name of the status, or success.
Result<> nixl_result(int status, ErrorCode code, std::string_view what) {
  if (status >= 0) return {};
  return failure(code, "NIXL cannot {}: {}", what, nixl_error(status));
}

}  // namespace

Result<std::unique_ptr<NixlAgent>> NixlAgent::start(const std::string& library, const std::string& backend) {
  TRY(const NixlLibrary* nixl, load_nixl(library));
  std::unique_ptr<NixlAgent> agent(new NixlAgent(*nixl));
  TRY_VOID(agent->open(backend));
  return agent;
}

Result<> NixlAgent::open(const std::string& backend) {
  // Names of agents must be unique.
  const std::string name = fmt::format("octavo-{:016x}{:016x}", secret_seed(), secret_seed());
  const NixlAgentSettings settings{.progress_delay_us = kProgressDelayUs};
  TRY_VOID(nixl_result(nixl_.create_agent(name.c_str(), &settings, &agent_), ErrorCode::unsupported,
                       "make an agent"));
  NixlParams* params = nullptr;
  TRY_VOID(nixl_result(nixl_.create_params(&params), ErrorCode::unsupported, "make parameters"));
  const int status = nixl_.create_backend(agent_, backend.c_str(), params, &backend_);
  nixl_.destroy_params(params);
  return nixl_result(status, ErrorCode::unsupported,
                     fmt::format("load the plugin {} (kv_connector_extra_config.backends)", backend));
}

NixlAgent::~NixlAgent() {
  kept_.clear();
  if (agent_ != nullptr) nixl_.destroy_agent(agent_);
  // The agent uses the backend, so the handle of the backend is freed last.
  if (backend_ != nullptr) nixl_.destroy_backend(backend_);
}

Result<std::string> NixlAgent::add(std::string_view metadata) {
  const std::lock_guard lock(mutex_);
  char* name = nullptr;
  TRY_VOID(nixl_result(nixl_.load_remote_md(agent_, metadata.data(), metadata.size(), &name),
                       ErrorCode::corrupt, "read the metadata of the other engine"));
  std::string agent(name);
  std::free(name);
  return agent;
}

void NixlAgent::remove(const std::string& agent) {
  const std::lock_guard lock(mutex_);
  nixl_.invalidate_remote_md(agent_, agent.c_str());
}

NixlBuffer::~NixlBuffer() {
  const std::lock_guard lock(agent_.mutex_);
  if (registration_ == nullptr) return;
  agent_.nixl_.deregister_mem(agent_.agent_, registration_, nullptr);
  agent_.nixl_.destroy_reg_dlist(registration_);
}

Result<std::unique_ptr<NixlBuffer>> NixlAgent::register_memory(Buffer buffer) {
  std::unique_ptr<NixlBuffer> made(new NixlBuffer(*this, std::move(buffer)));
  const std::lock_guard lock(mutex_);
  NixlRegistrations* registration = nullptr;
  nixl_.create_reg_dlist(kNixlDram, &registration);
  nixl_.reg_dlist_add_desc(registration, reinterpret_cast<std::uintptr_t>(made->buffer_.data()),
                           made->buffer_.bytes(), 0, "", 0);
  if (const int status = nixl_.register_mem(agent_, registration, nullptr); status < 0) {
    nixl_.destroy_reg_dlist(registration);
    return failure(ErrorCode::io, "NIXL cannot register memory: {}", nixl_error(status));
  }
  made->registration_ = registration;
  return made;
}

void NixlAgent::keep(std::unique_ptr<NixlBuffer> buffer) {
  std::unique_ptr<NixlBuffer> oldest;  // its destructor locks the mutex
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(buffer));
  if (kept_.size() <= kKeptBuffers) return;
  oldest = std::move(kept_.front());
  kept_.pop_front();
}

Result<NixlRequest*> NixlAgent::post(const NixlSource& from, std::span<const NixlRange> ranges,
                                     const NixlBuffer& to) {
  const std::lock_guard lock(mutex_);
  NixlRanges *local = nullptr, *remote = nullptr;
  nixl_.create_xfer_dlist(kNixlDram, &local);
  nixl_.create_xfer_dlist(from.memory, &remote);
  auto at = reinterpret_cast<std::uintptr_t>(to.buffer_.data());
  for (const NixlRange& range : ranges) {
    nixl_.xfer_dlist_add_desc(local, at, range.bytes, 0);
    nixl_.xfer_dlist_add_desc(remote, range.address, range.bytes, from.device);
    at += range.bytes;
  }
  NixlRequest* request = nullptr;
  int status = nixl_.create_xfer_req(agent_, kNixlRead, local, remote, from.agent.c_str(), &request, nullptr);
  nixl_.destroy_xfer_dlist(local);
  nixl_.destroy_xfer_dlist(remote);
  TRY_VOID(nixl_result(status, ErrorCode::io, "prepare a read of the other engine's memory"));
  status = nixl_.post_xfer_req(agent_, request, nullptr);
  if (status >= 0) return request;
  nixl_.release_xfer_req(agent_, request);
  nixl_.destroy_xfer_req(request);
  TRY_VOID(nixl_result(status, ErrorCode::io, "read the other engine's memory"));
  return nullptr;
}

Result<> NixlAgent::finish(NixlRequest* request, int most_ms, const std::atomic<bool>& stop) {
  const std::int64_t end_us = now_us() + std::int64_t{most_ms} * 1000;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      const int status = nixl_.get_xfer_status(agent_, request);
      if (status != kNixlRunning) return nixl_result(status, ErrorCode::io, "read the other engine's memory");
    }
    if (stop) return failure(ErrorCode::io, "this engine stops");
    if (now_us() > end_us) return failure(ErrorCode::io, "the read took longer than {} ms", most_ms);
    std::this_thread::sleep_for(kPollPause);
  }
}

Result<> NixlAgent::read(const NixlSource& from, std::span<const NixlRange> ranges, const NixlBuffer& to,
                         int most_ms, const std::atomic<bool>& stop) {
  std::size_t bytes = 0;
  for (const NixlRange& range : ranges) bytes += range.bytes;
  CHECK(bytes <= to.buffer_.bytes());
  TRY(NixlRequest * request, post(from, ranges, to));
  const Result<> finished = finish(request, most_ms, stop);
  const std::lock_guard lock(mutex_);
  nixl_.release_xfer_req(agent_, request);
  nixl_.destroy_xfer_req(request);
  return finished;
}

Result<> NixlAgent::notify(const std::string& agent, std::string_view text) {
  const std::lock_guard lock(mutex_);
  return nixl_result(nixl_.gen_notif(agent_, agent.c_str(), text.data(), text.size(), nullptr), ErrorCode::io,
                     "notify the other engine");
}

}  // namespace octavo
