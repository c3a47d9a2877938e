#include "transfer/session_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/pack.h"

namespace octavo {
namespace {

SessionPartHeader some_header() {
  return {.format = {.fingerprint = "demo", .dtype = "f32", .block_size = 4, .bytes = 128},
          .tokens = {1, 2, 3, 4, 5, 6, 7, 8},
          .identity = {1, 2},
          .priority = 1,
          .ttl_s = 60,
          .pieces = 2,
          .first = 1,
          .count = 1};
}

std::string some_part() {
  std::string part = begin_session_part(some_header());
  return part + std::string(some_header().format.stride(), 'b');
}

TEST(SessionFile, RoundTrip) {
  const std::string bytes = some_part();
  EXPECT_EQ(session_part_bytes(bytes.substr(0, kSessionPartPrefixBytes)).value(), bytes.size());
  const auto part = read_session_part(bytes);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->header, some_header());
  EXPECT_EQ(part->blocks.size(), some_header().format.stride());
}

// If this test fails, increase kSessionFileVersion, because the format of files has changed.
TEST(SessionFile, TheVersionChangesWithTheHeader) {
  EXPECT_EQ(layout_hash<SessionPartHeader>(), 11407693481319841776u);
  EXPECT_EQ(kSessionFileVersion, 1u);
}

TEST(SessionFile, RefusesOtherVersionsAndDamage) {
  const std::string good = some_part();
  const std::size_t header_end = good.size() - some_header().format.stride();
  for (std::size_t i = 0; i < header_end; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    const auto part = read_session_part(bad);
    ASSERT_FALSE(part) << "byte " << i;
    EXPECT_EQ(part.error().field, "file");
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, header_end, good.size() - 1})
    EXPECT_FALSE(read_session_part(good.substr(0, size)));
  EXPECT_FALSE(read_session_part(good + "x"));
  std::string newer = good;
  newer[8] = 2;
  EXPECT_NE(read_session_part(newer).error().message.find("version 2"), std::string::npos);
}

TEST(SessionFile, RefusesHeadersThatContradictThemselves) {
  for (const auto change :
       {+[](SessionPartHeader& h) { h.first = 2; }, +[](SessionPartHeader& h) { h.count = 0; },
        +[](SessionPartHeader& h) { h.first = -1; }, +[](SessionPartHeader& h) { h.format.bytes = -64; },
        +[](SessionPartHeader& h) { h.format.block_size = 0; },
        +[](SessionPartHeader& h) { h.pieces = std::numeric_limits<int>::min(); }}) {
    SessionPartHeader header = some_header();
    change(header);
    EXPECT_FALSE(
        read_session_part(begin_session_part(header) + std::string(some_header().format.stride(), 'b')));
  }
}

}  // namespace
}  // namespace octavo
