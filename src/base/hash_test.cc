#include "base/hash.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/sha256.h"

namespace octavo {
namespace {

Hash128 of(HashAlgorithm algorithm, std::string_view text, std::uint64_t seed) {
  return hash_bytes(algorithm, std::as_bytes(std::span(text)), seed);
}

TEST(Hash, DependsOnBytesSeedAndAlgorithm) {
  for (auto algorithm : {HashAlgorithm::xxh3_128, HashAlgorithm::sha256}) {
    EXPECT_EQ(of(algorithm, "abc", 1), of(algorithm, "abc", 1));
    EXPECT_NE(of(algorithm, "abc", 1), of(algorithm, "abd", 1));
    EXPECT_NE(of(algorithm, "abc", 1), of(algorithm, "abc", 2));
    EXPECT_NE(of(algorithm, "", 1), of(algorithm, "a", 1));
  }
  EXPECT_NE(of(HashAlgorithm::xxh3_128, "abc", 1), of(HashAlgorithm::sha256, "abc", 1));
}

TEST(Hash, XxhashKnownAnswer) {
  // XXH3_128bits of the empty input with seed 0, from the specification.
  EXPECT_EQ(of(HashAlgorithm::xxh3_128, "", 0), (Hash128{0x6001c324468d497fULL, 0x99aa06d3014798d8ULL}));
}

TEST(Sha256, KnownAnswerInPieces) {
  Sha256 hash;  // FIPS 180-2: "abc"
  hash.add(std::as_bytes(std::span(std::string_view("a"))));
  hash.add(std::as_bytes(std::span(std::string_view("bc"))));
  EXPECT_EQ(hash.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, SecretSeedsDiffer) { EXPECT_NE(secret_seed(), secret_seed()); }

}  // namespace
}  // namespace octavo
