// A blocking connection to a Redis or Valkey server, for KV blocks in a shared store. Protocol: RESP2, with
// only the commands that StoreClient needs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transfer/peer_socket.h"
#include "transfer/tiers/store_client.h"

namespace octavo {

struct RedisAddress {
  std::string host{};
  int port = 6379;
  std::string user{}, password{};  // "": no authentication
  int database = 0;
  int silence_ms = 5'000;  // time limit in ms without a byte from the server
};

// Format: redis://[[user]:password@]host[:port][/database], or valkey:// instead of redis://. Errors name the
// invalid part.
Result<RedisAddress> parse_redis_url(std::string_view url);
bool is_redis_url(std::string_view text);

class RedisClient final : public StoreClient {
 public:
  // Returns the errors of StoreClient.
  static Result<std::unique_ptr<StoreClient>> connect(const RedisAddress& address);

  Result<std::size_t> leading(std::span<const std::string> keys) override;
  Result<std::vector<bool>> contains(std::span<const std::string> keys) override;
  Result<bool> get(std::string_view key, std::span<std::byte> value) override;
  Result<> set(std::string_view key, std::span<const std::byte> value) override;
  Result<> remove(std::span<const std::string> keys) override;

 private:
  explicit RedisClient(PeerSocket socket) : socket_(std::move(socket)) {}

  Result<> send(std::span<const std::string_view> parts);
  Result<> read_line();
  Result<std::int64_t> integer(char kind);
  Result<> expect_ok();

  PeerSocket socket_;
  // last line from the server, without the line end
  std::string line_{};
};

}  // namespace octavo
