#include "base/hash.h"

#include <openssl/evp.h>
#include <sys/random.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3 with the widest vectors that the processor has
#else
#include <xxhash.h>
#endif

#include <array>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace octavo {

Hash128 hash_bytes(HashAlgorithm algorithm, std::span<const std::byte> bytes, std::uint64_t seed) {
  if (algorithm == HashAlgorithm::xxh3_128) {
    const XXH128_hash_t h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
    return {h.low64, h.high64};
  }
  // Creating a digest context costs more than hashing a block, so each thread keeps one.
  static thread_local const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                                       EVP_MD_CTX_free);
  std::array<unsigned char, 32> digest;
  CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  CHECK(EVP_DigestUpdate(context.get(), &seed, sizeof seed) == 1);
  CHECK(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1);
  CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1);
  Hash128 h;
  std::memcpy(&h, digest.data(), sizeof h);
  return h;
}

std::uint64_t secret_seed() {
  std::uint64_t seed = 0;
  CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return seed;
}

}  // namespace octavo
