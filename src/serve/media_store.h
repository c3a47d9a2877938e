// Stores images, videos and sounds that have a `uuid` in a chat, so that later requests can send the uuid
// alone.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo {

// The total size is limited: if it is exceeded, the least recently used media are dropped. A client cannot
// read the media of another client. Any thread may call the functions.
class MediaStore {
 public:
  explicit MediaStore(std::size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // Sets the data of all media that have only a uuid. Returns an error with the field's name if the data is
  // not stored.
  Result<> restore(const std::string& client, std::vector<openai::ChatPrompt::Media>& media);
  // Stores the media that have a uuid. Their URLs must be fetched already.
  void keep(const std::string& client, const std::vector<openai::ChatPrompt::Media>& media);

 private:
  static constexpr std::size_t kBytesMax = std::size_t{256} << 20;

  struct Entry {
    std::string key;
    openai::ChatPrompt::Media media;
  };

  void drop(std::list<Entry>::iterator entry);

  const std::size_t bytes_max_;
  std::mutex mutex_;  // guards all members below
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace octavo
