// Stores the conversations of /v1/conversations. A conversation is a list of items that responses continue.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.h"

namespace octavo::openai {

// The total size is limited: if it is exceeded, the least recently used conversations are dropped. The
// functions return not_found if the conversation does not exist (any more). Any thread may call them.
class ConversationStore {
 public:
  explicit ConversationStore(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Creates a conversation and returns it as clients see it.
  Result<boost::json::object> create(const boost::json::array& items, const boost::json::object& metadata);
  Result<boost::json::object> show(const std::string& id);
  Result<boost::json::object> set_metadata(const std::string& id, const boost::json::object& metadata);
  Result<> remove(const std::string& id);

  // Returns the items, oldest first.
  Result<boost::json::array> items(const std::string& id);
  // Adds items, and gives an id to each item without an id. Returns the added items. Also returns
  // resource_exhausted if the conversation would be larger than bytes_max.
  Result<boost::json::array> add(const std::string& id, const boost::json::array& items);
  Result<> remove_item(const std::string& id, const std::string& item);

 private:
  struct Entry {
    std::string id;
    std::int64_t created_at = 0;
    std::string metadata;  // JSON object
    std::string items;     // JSON array

    std::size_t bytes() const { return 256 + 2 * id.size() + metadata.size() + items.size(); }
    boost::json::object shown() const;
  };
  using Entries = std::list<Entry>;

  // Finds the conversation and marks it as the most recently used one.
  Result<Entry*> find(const std::string& id);
  // Replaces the texts of an entry. Returns resource_exhausted if the entry would be larger than bytes_max_.
  Result<> set(Entry& entry, std::string metadata, std::string items);

  const std::size_t bytes_max_;
  std::mutex mutex_;  // guards all members below
  Entries entries_;   // the most recently used entry is last
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace octavo::openai
