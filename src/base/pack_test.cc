#include "base/pack.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo {
namespace {

enum class Colour : std::uint8_t { red, green };
struct Inner {
  std::int32_t a = 0;
  std::string b{};
};
struct Outer {
  bool yes = false;
  Colour colour = Colour::red;
  std::vector<Inner> inners{};
  std::optional<double> maybe{};
  std::array<std::int64_t, 3> three{};
  std::pair<int, float> two{};
  std::variant<int, Inner> either{};
};

std::string packed(const Outer& value) {
  std::string bytes;
  Packer(bytes).put(value);
  return bytes;
}

Outer some() {
  return {.yes = true,
          .colour = Colour::green,
          .inners = {{-1, "x"}, {2, std::string("\0y", 2)}},
          .maybe = 0.5,
          .three = {1, 2, 3},
          .two = {4, 1.5F},
          .either = Inner{7, "z"}};
}

TEST(Pack, AValueArrivesAsItWasPacked) {
  const std::string bytes = packed(some());
  Unpacker unpacker(std::as_bytes(std::span(bytes)));
  Outer read;
  unpacker.get(read);
  EXPECT_TRUE(unpacker.complete());
  EXPECT_EQ(read.inners[1].b, std::string("\0y", 2));
  EXPECT_EQ(std::get<Inner>(read.either).b, "z");
  EXPECT_EQ(packed(read), bytes);
}

TEST(Pack, BytesThatAreMissingAreFound) {
  const std::string bytes = packed(some());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Unpacker unpacker(std::as_bytes(std::span(bytes).first(size)));
    Outer read;
    unpacker.get(read);
    EXPECT_FALSE(unpacker.good()) << size;
  }
}

TEST(Pack, AValueOutOfRangeIsFound) {
  std::string bytes = packed(some());
  bytes[0] = 2;  // not a valid bool
  Unpacker unpacker(std::as_bytes(std::span(bytes)));
  Outer read;
  unpacker.get(read);
  EXPECT_FALSE(unpacker.good());
}

TEST(Pack, AVectorIsNoLongerThanItsBytes) {
  std::string bytes;
  Packer(bytes).put(std::uint64_t{1} << 60);
  Unpacker unpacker(std::as_bytes(std::span(bytes)));
  std::vector<std::int32_t> numbers;
  unpacker.get(numbers);
  EXPECT_FALSE(unpacker.good());
  EXPECT_TRUE(numbers.empty());
}

// Structs that each differ from Inner in one thing.
struct OneMore {
  std::int32_t a;
  std::string b;
  bool c;
};
struct OtherType {
  std::int64_t a;
  std::string b;
};
struct OtherSign {
  std::uint32_t a;
  std::string b;
};
struct OtherOrder {
  std::string b;
  std::int32_t a;
};
struct MayBeMissing {
  std::int32_t a;
  std::optional<std::string> b;
};
template <class T>
struct Around {
  std::vector<std::pair<int, T>> all;
};

TEST(Pack, AChangedStructHasAnotherLayout) {
  constexpr std::uint64_t all[] = {
      layout_hash<Inner>(),         layout_hash<OneMore>(),         layout_hash<OtherType>(),
      layout_hash<OtherSign>(),     layout_hash<OtherOrder>(),      layout_hash<MayBeMissing>(),
      layout_hash<Around<Inner>>(), layout_hash<Around<OneMore>>(), layout_hash<Around<OtherSign>>()};
  for (const std::uint64_t each : all) EXPECT_EQ(std::ranges::count(all, each), 1);
  EXPECT_EQ((layout_hash<Inner, OneMore>()), (layout_hash<Inner, OneMore>()));
  EXPECT_NE((layout_hash<Inner, OneMore>()), (layout_hash<OneMore, Inner>()));
}

}  // namespace
}  // namespace octavo
