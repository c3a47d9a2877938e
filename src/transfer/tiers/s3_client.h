// A connection to an S3 store over HTTP, for KV blocks in a shared store. It uses HEAD, GET, PUT and DELETE
// on the objects of one bucket under one prefix. URLs are path style: the bucket is part of the path.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/client.h"
#include "transfer/tiers/store_client.h"

namespace octavo {

struct S3Address {
  std::string host{};
  std::uint16_t port = 80;
  bool tls = false;
  std::string folder{};    // "/bucket/prefix/"
  int silence_ms = 5'000;  // time limit in ms without a byte from the server
};

// Format: http://host[:port]/bucket[/prefix], or https://. Errors name the invalid part.
Result<S3Address> parse_s3_url(std::string_view url);
// Returns true if the text begins with http:// or https://.
bool is_s3_url(std::string_view text);

// An object's name is the prefix and the key, with slashes instead of the key's colons.
class S3Client final : public StoreClient {
 public:
  // Returns the errors of StoreClient.
  static Result<std::unique_ptr<StoreClient>> connect(const S3Address& address, const StoreKeys& keys);

  Result<std::size_t> leading(std::span<const std::string> keys) override;
  Result<std::vector<bool>> contains(std::span<const std::string> keys) override;
  Result<bool> get(std::string_view key, std::span<std::byte> value) override;
  Result<> set(std::string_view key, std::span<const std::byte> value) override;
  Result<> remove(std::span<const std::string> keys) override;

 private:
  S3Client(S3Address address, StoreKeys keys, http::Client client)
      : address_(std::move(address)), keys_(std::move(keys)), client_(std::move(client)) {}

  Result<http::Response> open(std::string_view method, std::string_view key,
                              std::span<const std::byte> body = {});
  Result<bool> send(std::string_view method, std::string_view key, std::span<const std::byte> body = {});
  Result<std::string> rest();

  const S3Address address_;
  const StoreKeys keys_;
  http::Client client_;
  // true: an earlier request used the connection, so the server may have closed it since then
  bool used_ = false;
};

}  // namespace octavo
