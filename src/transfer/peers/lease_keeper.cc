#include "transfer/peers/lease_keeper.h"

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "transfer/peers/messages.h"

namespace octavo {
namespace {

// heartbeats in the duration of one lease, as in vLLM
constexpr int kMessagesOfALease = 6;

Result<> renew(const std::string& host, int port, const std::vector<std::string>& leases) {
  TRY(PeerSocket socket, PeerSocket::connect(host, port));
  for (const std::string& lease : leases) TRY_VOID(send_message(socket, Keep{lease}));
  return {};
}

}  // namespace

LeaseKeeper::LeaseKeeper(std::chrono::milliseconds lease)
    : interval_(lease / kMessagesOfALease), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void LeaseKeeper::keep(RequestId id, const KvTransferParams& from) {
  const std::lock_guard lock(mutex_);
  kept_.try_emplace(id, from);
}

void LeaseKeeper::let_go(RequestId id) {
  const std::lock_guard lock(mutex_);
  kept_.erase(id);
}

void LeaseKeeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stops_.wait_for(lock, stop, interval_, [&] { return stop.stop_requested(); })) {
    std::map<std::pair<std::string, int>, std::vector<std::string>> leases;  // lease ids of each producer
    for (const auto& [id, from] : kept_)
      leases[{from.remote_host, from.remote_port}].push_back(from.remote_request_id);
    lock.unlock();
    for (const auto& [producer, ids] : leases)
      if (const Result<> renewed = renew(producer.first, producer.second, ids); !renewed)
        log(LogLevel::debug, "{} KV leases may expire: {}", ids.size(), renewed.error().message);
    lock.lock();
  }
}

}  // namespace octavo
