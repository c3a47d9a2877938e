#include "transfer/peers/lease_keeper.h"

#include <utility>

#include "base/log.h"

namespace octavo {
namespace {

// heartbeats in the duration of one lease, as in vLLM
constexpr int kMessagesOfALease = 6;

}  // namespace

LeaseKeeper::LeaseKeeper(std::chrono::milliseconds lease, Renew renew)
    : interval_(lease / kMessagesOfALease),
      renew_(std::move(renew)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void LeaseKeeper::keep(RequestId id, const KvTransferParams& from) {
  const std::lock_guard lock(mutex_);
  kept_.try_emplace(id, from);
}

void LeaseKeeper::let_go(RequestId id) {
  const std::lock_guard lock(mutex_);
  kept_.erase(id);
}

void LeaseKeeper::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void LeaseKeeper::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stops_.wait_for(lock, stop, interval_, [&] { return stop.stop_requested(); })) {
    std::map<std::pair<std::string, int>, std::vector<std::string>> leases;  // lease ids of each producer
    for (const auto& [id, from] : kept_)
      leases[{from.remote_host, from.remote_port}].push_back(from.remote_request_id);
    lock.unlock();
    for (const auto& [producer, ids] : leases)
      if (const Result<> renewed = renew_(producer.first, producer.second, ids); !renewed)
        log(LogLevel::debug, "{} KV leases may expire: {}", ids.size(), renewed.error().message);
    lock.lock();
  }
}

}  // namespace octavo
