// A connection to a server that keeps values under names, for a thread that waits. One file for each
// protocol.
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

// Errors of all calls: unavailable, with what the server says where it is that it refuses; io when the
// connection broke; corrupt when it answers nonsense. After any of these the connection is of no use.
class StoreClient {
 public:
  virtual ~StoreClient() = default;

  // How many of the keys are there, up to the first that is not.
  virtual Result<std::size_t> leading(std::span<const std::string> keys) = 0;
  virtual Result<std::vector<bool>> contains(std::span<const std::string> keys) = 0;
  // A value of exactly as many bytes. False: there is none. Another size is corrupt.
  virtual Result<bool> get(std::string_view key, std::span<std::byte> value) = 0;
  virtual Result<> set(std::string_view key, std::span<const std::byte> value) = 0;
  virtual Result<> remove(std::span<const std::string> keys) = 0;
};

using ConnectStore = std::function<Result<std::unique_ptr<StoreClient>>()>;

// Whether a text is meant as the URL of a store: redis://, valkey://, http://, https://, library:
bool is_store_url(std::string_view text);
// How the store of that URL is reached; who asks, where it wants to know by keys. Errors say what is wrong
// with it. silence_ms: after which a store that answers nothing is an error.
Result<ConnectStore> store_at(std::string_view url, const StoreKeys& keys, int silence_ms = 5'000);

}  // namespace octavo
