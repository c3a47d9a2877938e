// Remembers which worker stores a response or conversation, or has the blocks of a session. Later requests
// that name its id use the same worker.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Thread-safe. Keeps the newest kIdsMax ids.
class WorkerOfId {
 public:
  using Worker = std::shared_ptr<const Endpoint>;
  static constexpr std::size_t kIdsMax = 100'000;

  void learn(std::string_view id, Worker worker);
  // Forgets all ids of the worker with this name.
  void forget(std::string_view worker);
  // Returns null if the worker is unknown.
  Worker find(std::string_view id) const;

 private:
  struct Entry {
    std::string id;
    Worker worker;
  };
  mutable std::mutex mutex_;
  std::list<Entry> newest_first_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
};

// Returns the first id with this prefix in a response or in the first event of a stream. Returns "" if
// it has no such id.
std::string_view created_id(std::string_view answer, std::string_view prefix);

}  // namespace octavo::fleet
