// The consumer's side of leases that it cannot use yet: tells their producers, a few times in the length of a
// lease, that somebody still wants the blocks (vLLM's heartbeats).
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "request/kv_transfer.h"
#include "request/request.h"

namespace octavo {

class LeaseKeeper {
 public:
  // lease: how long leases last; a sixth of it is from message to message.
  explicit LeaseKeeper(std::chrono::milliseconds lease);
  ~LeaseKeeper();

  // Any thread; neither waits.
  void keep(RequestId id, const KvTransferParams& from);
  void let_go(RequestId id);

 private:
  void run();

  const std::chrono::milliseconds interval_;
  std::mutex mutex_;  // guards all below
  std::condition_variable stops_;
  std::map<RequestId, KvTransferParams> kept_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace octavo
