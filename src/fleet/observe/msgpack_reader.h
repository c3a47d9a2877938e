// Reads msgpack from untrusted senders. No read goes beyond the end of the text, nested values need no
// recursion, and lengths allocate no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::fleet {

// Each function reads one value. Returns nullopt if the value has another type or is incomplete.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  std::optional<std::uint32_t> array();  // number of items, which follow
  std::optional<std::uint32_t> map();    // number of pairs, which follow
  std::optional<std::int64_t> integer();
  std::optional<std::uint64_t> bits();  // bits of a signed or unsigned integer
  std::optional<std::string_view> text();
  std::optional<std::string_view> bytes();
  bool nil();
  // Skips one value with its contents. Returns false if it is incomplete or has an unknown type.
  bool skip();

 private:
  const char* at_;
  const char* end_;
};

}  // namespace octavo::fleet
