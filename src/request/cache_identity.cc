#include "request/cache_identity.h"

#include <array>
#include <cstdint>
#include <span>

namespace octavo {

// The lengths are hashed too, so that different identities never produce the same bytes.
Hash128 CacheIdentity::digest() const {
  if (*this == CacheIdentity{}) return {};
  std::string bytes;
  for (const std::string* part : {&adapter, &tenant, &salt}) {
    const std::uint64_t size = part->size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += *part;
  }
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(bytes)), 0);
}

}  // namespace octavo
