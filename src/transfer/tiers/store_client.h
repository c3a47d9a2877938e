// Interface to a server that stores KV blocks by name. Calls block. Each protocol is in a separate file.
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

// All calls return unavailable if the server rejects the request (with its message), io if the connection
// breaks, or corrupt if the response is invalid. After an error, the connection is unusable.
class StoreClient {
 public:
  virtual ~StoreClient() = default;

  // Returns the number of keys before the first missing key.
  virtual Result<std::size_t> leading(std::span<const std::string> keys) = 0;
  virtual Result<std::vector<bool>> contains(std::span<const std::string> keys) = 0;
  // Reads a value of exactly value.size() bytes. Returns false if the key is missing, and corrupt if the
  // size differs.
  virtual Result<bool> get(std::string_view key, std::span<std::byte> value) = 0;
  virtual Result<> set(std::string_view key, std::span<const std::byte> value) = 0;
  virtual Result<> remove(std::span<const std::string> keys) = 0;
};

using ConnectStore = std::function<Result<std::unique_ptr<StoreClient>>()>;

// Store URLs begin with redis://, valkey://, http://, https:// or library:
bool is_store_url(std::string_view text);
// Returns a function that opens a connection to the store. keys: credentials for S3. silence_ms: time limit
// in ms without a byte from the server. Errors name the invalid part of the URL.
Result<ConnectStore> store_at(std::string_view url, const StoreKeys& keys, int silence_ms = 5'000);

}  // namespace octavo
