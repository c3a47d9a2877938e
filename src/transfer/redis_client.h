// A connection to a server that speaks the Redis protocol (Redis, Valkey and others), for a thread that
// waits: as much of RESP2 as values of a known size need.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transfer/peer_socket.h"

namespace octavo {

struct RedisAddress {
  std::string host{};
  int port = 6379;
  std::string user{}, password{};  // "": none
  int database = 0;
};

// redis://[[user]:password@]host[:port][/database], and valkey:// alike. Errors say what is wrong with it.
Result<RedisAddress> parse_redis_url(std::string_view url);
// Whether a text is meant as one.
bool is_redis_url(std::string_view text);

// Errors of all calls: unavailable, with what the server says where it is that it refuses; io when the
// connection broke; corrupt when it answers nonsense. After any of these the connection is of no use.
class RedisClient {
 public:
  static Result<RedisClient> connect(const RedisAddress& address);

  // How many of the keys are there, up to the first that is not.
  Result<std::size_t> leading(std::span<const std::string> keys);
  // A value of exactly as many bytes. False: there is none. Another size is corrupt.
  Result<bool> get(std::string_view key, std::span<std::byte> value);
  Result<> set(std::string_view key, std::span<const std::byte> value);
  Result<> remove(std::span<const std::string> keys);

 private:
  explicit RedisClient(PeerSocket socket) : socket_(std::move(socket)) {}

  Result<> send(std::span<const std::string_view> parts);
  Result<> read_line();
  Result<std::int64_t> integer(char kind);
  Result<> expect_ok();

  PeerSocket socket_;
  std::string line_{};  // the last one, without its end
};

}  // namespace octavo
