// Reads msgpack that strangers wrote: every step is checked against the end of the text, nesting costs no
// stack, and no count is believed before its items are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

// Each reader consumes one value. nullopt: the value has another type, or is incomplete.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<std::uint32_t> array();  // how many items follow
  std::optional<std::uint32_t> map();    // how many pairs follow
  std::optional<std::int64_t> integer();
  std::optional<std::uint64_t> bits();  // of an integer, signed or not
  std::optional<std::string_view> text();
  std::optional<std::string_view> bytes();
  bool nil();
  // Skips one value of any type with its contents. False: incomplete, or an unknown type.
  bool skip();

 private:
  const char* at_;
  const char* end_;
};

}  // namespace octavo::fleet
