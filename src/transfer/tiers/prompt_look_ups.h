// Looks up prompts in a shared KV store, on a separate thread and with a short time limit, so that the
// engine does not wait.
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
  // The separate thread calls look_up(keys), which must look up the keys in the store, and then wake().
  PromptLookUps(std::function<void(std::span<const Hash128>)> look_up, std::function<void()> wake);

  // Returns true if the lookup of the prompt is complete or its time limit has passed. The first call for a
  // prompt starts the lookup.
  bool done(const KvPrompt& prompt);
  // The prompt no longer needs the lookup.
  void forget(RequestId id);
  // Returns the time in microseconds at which the next time limit ends. done() then becomes true without a
  // call of `wake`.
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
  std::condition_variable_any arrived_;
  // Prompts stay here while they wait for the lookup or for free cache blocks.
  std::map<RequestId, LookUp> look_ups_;

  std::jthread thread_;
};

}  // namespace octavo
