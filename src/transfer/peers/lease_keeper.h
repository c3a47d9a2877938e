// Consumer side: renews the leases of blocks that the consumer cannot use yet. It sends several messages per
// lease duration to the producers (vLLM's heartbeats).
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
  // lease: duration of a lease, in which six messages are sent.
  explicit LeaseKeeper(std::chrono::milliseconds lease);

  // Any thread. keep() and let_go() do not wait.
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
