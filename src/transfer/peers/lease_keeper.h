// Renews the leases of blocks that a consumer will fetch later, by heartbeats to the producers (as in vLLM).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "request/kv_transfer.h"
#include "request/request.h"

namespace octavo {

class LeaseKeeper {
 public:
  // Renews leases of the producer at this address.
  using Renew =
      std::function<Result<>(const std::string& host, int port, const std::vector<std::string>& leases)>;

  // lease: duration of a lease. The consumer sends six heartbeats in this time.
  LeaseKeeper(std::chrono::milliseconds lease, Renew renew);

  // Any thread may call these functions. Neither waits.
  void keep(RequestId id, const KvTransferParams& from);
  void let_go(RequestId id);
  // Waits for the running renewal. No renewal begins afterwards.
  void stop();

 private:
  void run(const std::stop_token& stop);

  const std::chrono::milliseconds interval_;
  const Renew renew_;
  std::mutex mutex_;  // guards kept_
  std::condition_variable_any stops_;
  std::map<RequestId, KvTransferParams> kept_;

  std::jthread thread_;
};

}  // namespace octavo
