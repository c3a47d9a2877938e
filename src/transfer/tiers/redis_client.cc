#include "transfer/tiers/redis_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/quoted_text.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 2> kRedisSchemes{"redis://", "valkey://"};
constexpr std::size_t kLineMax = 512;

bool read_number(std::string_view text, auto& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::unexpected<Error> nonsense() { return failure(ErrorCode::corrupt, "the store sent an invalid reply"); }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool is_redis_url(std::string_view text) {
  return std::ranges::any_of(kRedisSchemes,
                             [&](std::string_view scheme) { return text.starts_with(scheme); });
}

Result<RedisAddress> parse_redis_url(std::string_view url) {
  RedisAddress address;
  url.remove_prefix(url.find("://") + 3);
  if (const auto end = url.find('/'); end != url.npos) {
    const std::string_view database = url.substr(end + 1);
    if (!database.empty() && (!read_number(database, address.database) || address.database < 0))
      return invalid("", "the database must be a number, got {}", quoted_text(database));
    url = url.substr(0, end);
  }
  if (const auto at = url.rfind('@'); at != url.npos) {
    const std::string_view who = url.substr(0, at);
    const auto colon = who.find(':');
    if (colon == who.npos) return invalid("", "the user's name needs a password: write user:password@host");
    address.user = who.substr(0, colon);
    address.password = who.substr(colon + 1);
    url = url.substr(at + 1);
  }
  const auto colon = url.rfind(':');
  if (colon != url.npos && url.back() != ']') {
    if (!read_number(url.substr(colon + 1), address.port) || address.port < 1 || address.port > 65'535)
      return invalid("", "the port must be from 1 to 65535, got {}", quoted_text(url.substr(colon + 1)));
    url = url.substr(0, colon);
  }
  if (url.starts_with('[') && url.ends_with(']')) url = url.substr(1, url.size() - 2);
  if (url.empty()) return invalid("", "the URL has no host");
  address.host = url;
  return address;
}

Result<std::unique_ptr<StoreClient>> RedisClient::connect(const RedisAddress& address) {
  TRY(PeerSocket socket, PeerSocket::connect(address.host, address.port, {.silence = address.silence_ms}));
  std::unique_ptr<RedisClient> client(new RedisClient(std::move(socket)));
  if (!address.password.empty()) {
    std::vector<std::string_view> parts{"AUTH"};
    if (!address.user.empty()) parts.push_back(address.user);
    parts.push_back(address.password);
    TRY_VOID(client->send(parts));
    TRY_VOID(client->expect_ok());
  }
  if (address.database != 0) {
    const std::string database = std::to_string(address.database);
    TRY_VOID(client->send(std::array<std::string_view, 2>{"SELECT", database}));
    TRY_VOID(client->expect_ok());
  }
  return client;
}

Result<> RedisClient::send(std::span<const std::string_view> parts) {
  std::string command = fmt::format("*{}\r\n", parts.size());
  for (const std::string_view part : parts)
    command.append(fmt::format("${}\r\n", part.size())).append(part).append("\r\n");
  return socket_.send(std::as_bytes(std::span(command)));
}

// Reads a line of the response. Returns an error if the line is an error reply of the server.
Result<> RedisClient::read_line() {
  line_.clear();
  while (!line_.ends_with("\r\n")) {
    std::byte next{};
    TRY_VOID(socket_.receive(std::span(&next, 1)));
    line_.push_back(static_cast<char>(next));
    if (line_.size() > kLineMax) return nonsense();
  }
  line_.resize(line_.size() - 2);
  if (line_.starts_with('-'))
    return failure(ErrorCode::unavailable, "the store returned an error: {}", line_.substr(1));
  return {};
}

Result<std::int64_t> RedisClient::integer(char kind) {
  TRY_VOID(read_line());
  std::int64_t number = 0;
  if (!line_.starts_with(kind) || !read_number(std::string_view(line_).substr(1), number)) return nonsense();
  return number;
}

Result<> RedisClient::expect_ok() {
  TRY_VOID(read_line());
  if (line_ != "+OK") return nonsense();
  return {};
}

Result<std::size_t> RedisClient::leading(std::span<const std::string> keys) {
  TRY(const std::vector<bool> stored, contains(keys));
  return static_cast<std::size_t>(std::ranges::find(stored, false) - stored.begin());
}

Result<std::vector<bool>> RedisClient::contains(std::span<const std::string> keys) {
  for (const std::string& key : keys) TRY_VOID(send(std::array<std::string_view, 2>{"EXISTS", key}));
  std::vector<bool> stored;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    TRY(const std::int64_t count, integer(':'));
    stored.push_back(count == 1);
  }
  return stored;
}

Result<bool> RedisClient::get(std::string_view key, std::span<std::byte> value) {
  TRY_VOID(send(std::array<std::string_view, 2>{"GET", key}));
  TRY(const std::int64_t size, integer('$'));
  if (size < 0) return false;
  if (size != std::ssize(value))
    return failure(ErrorCode::corrupt, "the store returned {} bytes for a KV block of {} bytes", size,
                   value.size());
  TRY_VOID(socket_.receive(value));
  TRY_VOID(read_line());
  if (!line_.empty()) return nonsense();
  return true;
}

Result<> RedisClient::set(std::string_view key, std::span<const std::byte> value) {
  TRY_VOID(send(std::array<std::string_view, 3>{"SET", key, text_of(value)}));
  return expect_ok();
}

Result<> RedisClient::remove(std::span<const std::string> keys) {
  std::vector<std::string_view> parts{"DEL"};
  parts.insert(parts.end(), keys.begin(), keys.end());
  TRY_VOID(send(parts));
  TRY_VOID(integer(':'));
  return {};
}

}  // namespace octavo
