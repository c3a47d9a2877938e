#include "transfer/tiers/store_client.h"

#include "transfer/tiers/library_store.h"
#include "transfer/tiers/redis_client.h"
#include "transfer/tiers/s3_client.h"

namespace octavo {

bool is_store_url(std::string_view text) {
  return is_redis_url(text) || is_s3_url(text) || is_library_url(text);
}

Result<ConnectStore> store_at(std::string_view url, const StoreKeys& keys, int silence_ms) {
  if (is_library_url(url)) return library_store_at(url);
  if (is_s3_url(url)) {
    TRY(S3Address address, parse_s3_url(url));
    address.silence_ms = silence_ms;
    return [address, keys] { return S3Client::connect(address, keys); };
  }
  TRY(RedisAddress address, parse_redis_url(url));
  address.silence_ms = silence_ms;
  return [address] { return RedisClient::connect(address); };
}

}  // namespace octavo
