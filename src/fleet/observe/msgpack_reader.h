// Reads msgpack from untrusted senders. Every step is checked against the end of the text, nested values need
// no stack, and counts do not allocate memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

// Each reader consumes one value. nullopt: the value has another type, or is incomplete.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<std::uint32_t> array();  // number of items that follow
  std::optional<std::uint32_t> map();    // number of pairs that follow
  std::optional<std::int64_t> integer();
  std::optional<std::uint64_t> bits();  // the bits of a signed or unsigned integer
  std::optional<std::string_view> text();
  std::optional<std::string_view> bytes();
  bool nil();
  // Skips one value of any type with its contents. False: the value is incomplete or has an unknown type.
  bool skip();

 private:
  const char* at_;
  const char* end_;
};

}  // namespace octavo::fleet
