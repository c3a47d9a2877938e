// A blocking connection to a server that stores values under names. Each protocol is one file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

// All calls return unavailable if the server rejected the request (with its message), io if the connection
// broke, or corrupt if the response is invalid. After an error, the connection is unusable.
class StoreClient {
 public:
  virtual ~StoreClient() = default;

  // Returns the number of keys, from the first on, that exist.
  virtual Result<std::size_t> leading(std::span<const std::string> keys) = 0;
  virtual Result<std::vector<bool>> contains(std::span<const std::string> keys) = 0;
  // Reads a value of exactly value.size() bytes. Returns false if the key is missing, or corrupt if the value
  // has another size.
  virtual Result<bool> get(std::string_view key, std::span<std::byte> value) = 0;
  virtual Result<> set(std::string_view key, std::span<const std::byte> value) = 0;
  virtual Result<> remove(std::span<const std::string> keys) = 0;
};

using ConnectStore = std::function<Result<std::unique_ptr<StoreClient>>()>;

// Returns true if the text has the URL scheme of a store: redis://, valkey://, http://, https://, library:
bool is_store_url(std::string_view text);
// Returns a function that connects to the store at this URL. keys: credentials, if the store needs them.
// silence_ms: maximum time in ms without a byte before an error. Errors explain what is invalid.
Result<ConnectStore> store_at(std::string_view url, const StoreKeys& keys, int silence_ms = 5'000);

}  // namespace octavo
