// Renews the leases of blocks that a consumer will fetch later, by heartbeats to the producers (as in vLLM).
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

#include "request/kv_transfer.h"
#include "request/request.h"

namespace octavo {

class LeaseKeeper {
 public:
  // lease: duration of a lease. The consumer sends six heartbeats in this time.
  explicit LeaseKeeper(std::chrono::milliseconds lease);

  // Any thread may call these functions. Neither waits.
  void keep(RequestId id, const KvTransferParams& from);
  void let_go(RequestId id);

 private:
  void run(const std::stop_token& stop);

  const std::chrono::milliseconds interval_;
  std::mutex mutex_;  // guards kept_
  std::condition_variable_any stops_;
  std::map<RequestId, KvTransferParams> kept_;

  std::jthread thread_;
};

}  // namespace octavo
