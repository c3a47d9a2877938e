// Lookups of prompts in a store, on a separate thread and with a short time limit.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "transfer/kv_connector.h"

namespace octavo {

class PromptLookUps {
 public:
  // look_up: looks up these block keys in the store; called on the separate thread. wake: called after each
  // lookup.
  PromptLookUps(std::function<void(std::span<const Hash128>)> look_up, std::function<void()> wake);

  // Starts the lookup of a new prompt. Returns true if the prompt has been looked up, or if its time limit is
  // over.
  bool done(const KvPrompt& prompt);
  // Called when the prompt no longer waits.
  void forget(RequestId id);
  // Returns the time, in microseconds, at which done() changes without a call of wake.
  std::int64_t wake_at_us() const;

 private:
  struct LookUp {
    std::vector<Hash128> keys;
    std::int64_t give_up_us = 0;
    bool done = false;
  };

  void loop(const std::stop_token& stop);

  const std::function<void(std::span<const Hash128>)> look_up_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;  // guards look_ups_
  std::condition_variable_any came_;
  std::map<RequestId, LookUp> look_ups_;  // lookups of prompts that wait for a result or for free blocks

  std::jthread thread_;
};

}  // namespace octavo
