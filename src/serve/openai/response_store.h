// Stores responses of /v1/responses, so that clients can read, cancel or continue them.
#pragma once

#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "serve/openai/conversation_store.h"

namespace octavo::openai {

class EventLog;

// The total size is limited: if it is exceeded, the oldest responses are dropped. Any thread may call the
// functions.
class ResponseStore {
 public:
  explicit ResponseStore(std::size_t bytes_max)
      : conversations_(std::make_unique<ConversationStore>(bytes_max)), bytes_max_(bytes_max) {}

  // Returns the store of conversations, which has a separate limit of the same size.
  ConversationStore& conversations() const { return *conversations_; }

  // Adds a response that is generated in the background. conversation: all items before the response, as
  // JSON.
  void begin(const std::string& id, std::string response, std::string conversation);
  // Sets the response's status to "in_progress", and the function that cancels it. Does nothing if the
  // response is unknown or finished.
  void start(const std::string& id, std::function<void()> cancel);
  // Returns the bytes of all events of responses that are being generated.
  const std::shared_ptr<std::atomic<std::size_t>>& written_events() const { return written_events_; }
  // Keeps the events of a response that is generated in the background.
  void keep_events(const std::string& id, std::shared_ptr<EventLog> events);
  // Stores a finished response. conversation: all items including those of the response, as JSON, for the
  // next turn.
  void finish(const std::string& id, std::string response, std::string conversation);

  // Returns not_found if the response was never stored or was dropped.
  Result<std::string> response(const std::string& id) const;
  Result<boost::json::array> conversation(const std::string& id) const;
  // Returns null if the response has no events.
  Result<std::shared_ptr<EventLog>> events(const std::string& id) const;
  // Returns all items before the response, oldest first: the items of earlier responses, then the items of
  // the request. Each item has an id that never changes.
  Result<boost::json::array> input(const std::string& id) const;
  // Returns the id of the finished response whose output has this item; "" if it is not stored.
  std::string response_with(const std::string& item) const;
  // Deletes the response. If it is not finished, ends its generation.
  Result<> forget(const std::string& id);
  // Ends the response's generation, and returns the response with the status "cancelled". A response that is
  // cancelled twice stays as it is. Returns not_found for an unknown response, and invalid_argument if the
  // response is not generated in the background.
  Result<std::string> cancel(const std::string& id);

 private:
  struct Entry {
    std::string id;
    std::string response;
    std::string conversation{};
    std::function<void()> cancel{};
    bool made = false;
    std::vector<std::string> items{};  // ids of the output items
    std::shared_ptr<EventLog> events{};
    std::size_t event_bytes = 0;  // bytes of the events at the end of the response

    std::size_t bytes() const {
      return 256 + 2 * id.size() + response.size() + conversation.size() + 128 * items.size() + event_bytes;
    }
  };
  using Entries = std::list<Entry>;

  void put(Entry entry);
  void set_status(Entry& entry, std::string_view status);
  void drop(Entries::iterator entry);
  Result<Entries::const_iterator> find(const std::string& id) const;

  const std::unique_ptr<ConversationStore> conversations_;
  const std::size_t bytes_max_;
  const std::shared_ptr<std::atomic<std::size_t>> written_events_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  mutable std::mutex mutex_;
  Entries entries_;  // oldest first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::unordered_map<std::string, Entries::iterator> by_item_;
  std::unordered_set<std::string> forgotten_;  // deleted responses whose generation has not ended
  std::size_t bytes_ = 0;
};

}  // namespace octavo::openai
