// Reads msgpack from untrusted senders. The reader never reads after the end of the text, does not recurse
// into nested values, and allocates no memory for lengths that a sender claims.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

// Each function reads one value, and returns nullopt if the value has a different type or is incomplete.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<std::uint32_t> array();  // number of items that follow
  std::optional<std::uint32_t> map();    // number of key-value pairs that follow
  std::optional<std::int64_t> integer();
  std::optional<std::uint64_t> bits();  // two's complement bits of a signed or unsigned integer
  std::optional<std::string_view> text();
  std::optional<std::string_view> bytes();
  bool nil();
  // Skips one value with all nested values. Returns false if the value is incomplete or has an unknown
  // type.
  bool skip();

 private:
  const char* at_;
  const char* end_;
};

}  // namespace octavo
