// Which worker stores a response or conversation: the one that has created its id.
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace octavo::fleet {

// Thread-safe. Keeps the last kResponsesMax ids.
class StoredResponses {
 public:
  static constexpr std::size_t kResponsesMax = 100'000;

  void learn(std::string_view id, const std::string& worker);
  // Returns the name of the worker; "" if it is unknown.
  std::string worker_of(std::string_view id) const;

 private:
  struct Entry {
    std::string id, worker;
  };
  mutable std::mutex mutex_;
  std::list<Entry> newest_first_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
};

// Returns the first id with this prefix in the beginning of an answer, or in the first event of a stream; ""
// if none exists.
std::string_view created_id(std::string_view answer, std::string_view prefix);

}  // namespace octavo::fleet
