// Remembers which worker stores a response or conversation. Requests that continue it must use the same
// worker.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace octavo::fleet {

// Thread-safe. Keeps the newest kResponsesMax ids.
class StoredResponses {
 public:
  static constexpr std::size_t kResponsesMax = 100'000;

  void learn(std::string_view id, const std::string& worker);
  // Returns "" if the worker is unknown.
  std::string worker_of(std::string_view id) const;

 private:
  struct Entry {
    std::string id, worker;
  };
  mutable std::mutex mutex_;
  std::list<Entry> newest_first_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
};

// Returns the first id with this prefix in a response or in the first event of a stream. Returns "" if
// it has no such id.
std::string_view created_id(std::string_view answer, std::string_view prefix);

}  // namespace octavo::fleet
